"""For each container of a pod: what to mount where, and which devices it gets, for whatever runs it.

Only data; nothing is mounted into anything.

Subpaths are the exception: they are bound to a safe place first, because a container could change the path meanwhile.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from volumehost.errors import FailedPreconditionError, UnsafePathError, VolumeHostError
from volumehost.host_services import Subpath
from volumehost.node.environment import expand_subpath
from volumehost.node.states import MountState
from volumehost.sdk.paths import validate_path_no_backsteps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from volumehost.api.objects import Container, Pod, VolumeMount
    from volumehost.node.operations import Services
    from volumehost.node.records import MountedVolume


@dataclass(frozen=True, slots=True)
class ContainerMount:
    """One mount of a container. ``propagation`` is ``None``, ``HostToContainer`` or ``Bidirectional``."""

    volume: str
    host_path: str
    container_path: str
    read_only: bool = False
    recursive_read_only: str = ""
    propagation: str = "None"
    sub_path: str = ""
    selinux_relabel: bool = False


@dataclass(frozen=True, slots=True)
class ContainerDevice:
    """One raw block device of a container: the device on the host, and where the container is to see it."""

    volume: str
    host_path: str
    container_path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class ContainerMounts:
    """The mounts and devices of one container. ``kind`` is ``init``, ``regular`` or ``ephemeral``."""

    container: str
    kind: str
    mounts: tuple[ContainerMount, ...] = ()
    devices: tuple[ContainerDevice, ...] = ()

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


def container_mounts(services: Services, pod: Pod) -> list[ContainerMounts]:
    """The mounts of every container, in the order of the manifest.

    :raises FailedPreconditionError: a volume is not mounted (SUBPATH-05).
    :raises UnsafePathError: a subpath leads out of its volume (SUBPATH-01).
    """
    relabelled: set[str] = set()
    spec = pod.spec
    kinds = (("init", spec.init_containers), ("regular", spec.containers), ("ephemeral", spec.ephemeral_containers))
    return [
        ContainerMounts(
            container.name,
            kind,
            tuple(_mounts(services, pod, container, relabelled)),
            tuple(_devices(services, pod, container)),
        )
        for kind, containers in kinds
        for container in containers
    ]


def _mounts(services: Services, pod: Pod, container: Container, relabelled: set[str]) -> list[ContainerMount]:
    names = services.desired.names_of_pod(pod.metadata.uid)
    found = []
    for index, wanted in enumerate(container.volume_mounts):
        mount = services.actual.get_mount(names.get(wanted.name, ""), pod.metadata.uid)
        if mount is None or mount.mounter is None or mount.state is not MountState.MOUNTED:
            raise _not_there("mount", wanted.name, container, pod)
        attributes = mount.mounter.get_attributes()
        relabel = attributes.managed and attributes.selinux_relabel and mount.volume not in relabelled
        if relabel:
            relabelled.add(mount.volume)
        path, sub_path = mount.mounter.get_path(), _sub_path(wanted, container, pod, services)
        if sub_path:
            path = _prepare(services, mount, index, container.name, sub_path)
        found.append(
            ContainerMount(
                volume=wanted.name,
                host_path=path,
                container_path=wanted.mount_path,
                read_only=wanted.read_only or attributes.read_only,
                recursive_read_only=wanted.recursive_read_only or "",
                propagation=wanted.mount_propagation or "None",
                sub_path=sub_path,
                selinux_relabel=relabel,
            )
        )
    return found


def _devices(services: Services, pod: Pod, container: Container) -> Iterator[ContainerDevice]:
    """The device itself, not the pod's link to it: not every runtime follows links."""
    uses = {name: use for use in services.desired.uses_of_pod(pod.metadata.uid) for name in use.outer_names}
    for wanted in container.volume_devices:
        use = uses.get(wanted.name)
        mount = services.actual.get_mount(use.volume, use.pod_uid) if use is not None else None
        if use is None or mount is None or mount.mapper is None or mount.state is not MountState.MOUNTED:
            raise _not_there("map", wanted.name, container, pod)
        yield ContainerDevice(
            volume=wanted.name,
            host_path=services.host.get_host_util().eval_host_symlinks(mount.path),
            container_path=wanted.device_path,
            read_only=use.spec.read_only,
        )


def _not_there(verb: str, name: str, container: Container, pod: Pod) -> FailedPreconditionError:
    return FailedPreconditionError(
        f'cannot find volume "{name}" to {verb} into container "{container.name}"',
        action=f"preparing the mounts of pod {pod.metadata.namespace}/{pod.metadata.name}",
        subject=name,
        hint="mount the pod first",
    )


def _sub_path(wanted: VolumeMount, container: Container, pod: Pod, services: Services) -> str:
    text = wanted.sub_path
    if wanted.sub_path_expr:
        text = expand_subpath(wanted.sub_path_expr, container, pod, services.host.get_node_name())
    if text.startswith("/"):
        raise UnsafePathError(f"error SubPath `{text}` must not be an absolute path", subject=text)
    validate_path_no_backsteps(text)
    return text


def _prepare(services: Services, mount: MountedVolume, index: int, container: str, sub_path: str) -> str:
    """SUBPATH-02, -03. What users are told hides details, which could disclose the host's filesystem."""
    path = mount.path
    subpather, host_util = services.host.get_subpather(), services.host.get_host_util()
    where = f'for volumeMount "{mount.inner_name}" of container "{container}"'
    full = f"{path}/{sub_path}"
    try:
        exists = host_util.path_exists(full)
    except OSError:
        exists = True  # the next step finds out
    try:
        if not exists:
            subpather.safe_make_dir(sub_path, path, host_util.get_mode(path))
    except (OSError, VolumeHostError) as error:
        raise UnsafePathError(f"failed to create subPath directory {where}", subject=sub_path) from error
    wanted = Subpath(
        volume_mount_index=index,
        path=full,
        volume_name=mount.inner_name,
        volume_path=path,
        pod_dir=services.host.layout.pod_dir(mount.pod_uid),
        container_name=container,
    )
    try:
        return subpather.prepare_safe_subpath(wanted)
    except (OSError, VolumeHostError) as error:
        raise UnsafePathError(f"failed to prepare subPath {where}", subject=sub_path) from error
