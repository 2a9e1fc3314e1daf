"""For each container of a pod: what to mount where, and which devices it gets, for whatever runs it.

Only data; nothing is mounted into anything.

Subpaths are the exception: they are bound to a safe place first, because a container could change the path meanwhile.
"""

from __future__ import annotations

import posixpath
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from volumehost.errors import FailedPreconditionError
from volumehost.mount.refs import find_containing_mount
from volumehost.node.populating.claims import group_of
from volumehost.node.workloads.pod_volumes import PodVolumes
from volumehost.node.workloads.subpaths import Subpaths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Container, Pod
    from volumehost.node.assembly import NodeParts
    from volumehost.node.mounting import PodMounting
    from volumehost.node.operations.common import Services
    from volumehost.node.status.records import PodStatus

#: Values of ``propagation``: none either way, from the host into the container, and both ways.
NO_PROPAGATION, HOST_TO_CONTAINER, BIDIRECTIONAL = "None", "HostToContainer", "Bidirectional"


@dataclass(frozen=True, slots=True)
class ContainerMount:
    """One mount of a container; paths are absolute, the container's one is clean.

    ``recursive_read_only``: what is mounted below it is to be read-only too; ``Disabled``, ``IfPossible``, ``Enabled``,
    "" for nothing said. ``propagation`` is ``None``, ``HostToContainer`` or ``Bidirectional``; where it is not
    ``None``, ``host_propagation`` tells what the host's own mount there is: ``shared``, ``slave`` or ``private``, of
    which only the first can do both. ``sub_path`` is the part of the volume that is mounted, expanded; ``host_path`` is
    that part already. ``selinux_relabel``: the files are to get the container's label, where the machine has SELinux.
    """

    volume: str
    host_path: str
    container_path: str
    read_only: bool = False
    recursive_read_only: str = ""
    propagation: str = NO_PROPAGATION
    sub_path: str = ""
    selinux_relabel: bool = False
    host_propagation: str = ""


@dataclass(frozen=True, slots=True)
class ContainerDevice:
    """One raw block device of a container: the device on the host, and where the container is to see it."""

    volume: str
    host_path: str
    container_path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class ContainerMounts:
    """The mounts and devices of one container, in the order of the manifest.

    ``kind`` is ``init``, ``regular`` or ``ephemeral``. ``supplemental_groups``: the groups that its processes need
    besides their own: those of the pod, ``fsGroup``, and those that its volumes name (VM-13).
    """

    container: str
    kind: str
    mounts: tuple[ContainerMount, ...] = ()
    devices: tuple[ContainerDevice, ...] = ()
    supplemental_groups: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """The reverse of :meth:`to_dict`; fields that are not known are passed over.

        :raises msgspec.ValidationError: they are no mounts.
        """
        import msgspec

        return msgspec.convert(data, cls)


def container_mounts(
    parts: NodeParts, mounting: PodMounting, api: ApiClient, pod: Pod | PodStatus
) -> list[ContainerMounts]:
    """The mounts of every container, in the order of the manifest; see ``VolumeManager.container_mounts``."""
    pod = _pod_of(parts, api, pod)
    mounting.notice_lost_mounts(pod.metadata.uid)
    services = parts.services
    volumes = PodVolumes(services, pod, parts.populator.uses_of(pod))
    relabelled: set[str] = set()
    spec = pod.spec
    groups = _groups(pod, volumes)
    kinds = (("init", spec.init_containers), ("regular", spec.containers), ("ephemeral", spec.ephemeral_containers))
    return [
        ContainerMounts(
            container.name,
            kind,
            tuple(_mounts(services, pod, container, volumes, relabelled)),
            tuple(_devices(services, container, volumes)),
            groups,
        )
        for kind, containers in kinds
        for container in containers
    ]


def _pod_of(parts: NodeParts, api: ApiClient, pod: Pod | PodStatus) -> Pod:
    """The pod as this manager was told of it, else as the API has it.

    :raises FailedPreconditionError: it is not mounted, or is being unmounted.
    """
    from volumehost.node.populating.pod_objects import find_pod
    from volumehost.node.status.records import PodStatus

    about = pod if isinstance(pod, PodStatus) else pod.metadata
    action = f"preparing the mounts of pod {about.namespace}/{about.name}"
    record = parts.populator.record(about.uid)
    if record is not None:
        return record.pod
    if parts.populator.has_ended(about.uid):
        raise FailedPreconditionError("it is being unmounted", action=action, subject=about.name)
    found = find_pod(api, about.name, about.namespace)
    if found is None or found.metadata.uid != about.uid:
        raise FailedPreconditionError(
            "it is not mounted", action=action, subject=about.name, hint="mount the pod first"
        )
    return found


def _mounts(
    services: Services, pod: Pod, container: Container, volumes: PodVolumes, relabelled: set[str]
) -> Iterator[ContainerMount]:
    subpaths = Subpaths(services.host, pod, container)
    for index, wanted in enumerate(container.volume_mounts):
        mount, attributes, path = volumes.mounted(wanted.name, container.name)
        relabel = (
            attributes.managed
            and attributes.selinux_relabel
            and mount.volume not in relabelled
            and services.host.get_host_util().get_selinux_support(path)
        )
        if relabel:
            relabelled.add(mount.volume)
        sub_path = subpaths.text_of(wanted)
        if sub_path:
            path = subpaths.prepare(wanted.name, mount, path, index, sub_path)
        propagation = wanted.mount_propagation or NO_PROPAGATION
        yield ContainerMount(
            volume=wanted.name,
            host_path=path,
            container_path=_absolute(wanted.mount_path),
            read_only=wanted.read_only or attributes.read_only,
            recursive_read_only=wanted.recursive_read_only or "",
            propagation=propagation,
            sub_path=sub_path,
            selinux_relabel=relabel,
            host_propagation="" if propagation == NO_PROPAGATION else _host_propagation(services, path),
        )


def _devices(services: Services, container: Container, volumes: PodVolumes) -> Iterator[ContainerDevice]:
    """The device itself, not the pod's link to it: not every runtime follows links."""
    for wanted in container.volume_devices:
        mount, use = volumes.mapped(wanted.name, container.name)
        yield ContainerDevice(
            volume=wanted.name,
            host_path=services.host.get_host_util().eval_host_symlinks(mount.path),
            container_path=_absolute(wanted.device_path),
            read_only=use.spec.read_only,
        )


def _groups(pod: Pod, volumes: PodVolumes) -> tuple[int, ...]:
    context = pod.spec.security_context
    groups: dict[int, None] = {}
    if context is not None:
        groups.update(dict.fromkeys(context.supplemental_groups))
        if context.fs_group is not None:
            groups[context.fs_group] = None
    named = [group_of(use.spec) for use in volumes.uses()]
    groups.update(dict.fromkeys(group for group in named if group is not None))
    return tuple(groups)


def _absolute(path: str) -> str:
    """As the kubelet does it: a relative path is one from the root; what leads out of it ends there."""
    return "/" + posixpath.normpath("/" + path).lstrip("/")


def _host_propagation(services: Services, path: str) -> str:
    """The kind of the mount through which the host sees the path (HOSTUTIL-07)."""
    resolved = services.host.get_host_util().eval_host_symlinks(path)
    entry = find_containing_mount(resolved, services.host.get_mounter().list_mounts())
    if entry.shared:
        return "shared"
    return "slave" if any(field.startswith("master:") for field in entry.optional_fields) else "private"
