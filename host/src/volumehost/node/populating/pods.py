"""What a pod's manifest says about its volumes: which are used and how; for populator, operations and containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.api.objects import Container, ContainerStatus, Pod, SELinuxOptions, Volume

#: Phases in which no container of the pod runs any more or ever will again.
ENDED_PHASES = frozenset({"Succeeded", "Failed"})

#: The annotation, with the value "true", by which a user or a program gives the word that the pod's workload has ended.
ENDED_ANNOTATION = "volumehost.io/workload-ended"


@dataclass(frozen=True, slots=True)
class UsedVolumes:
    """Names of the volumes that some container uses, and the SELinux options of those that mount one (UTIL-17)."""

    mounts: frozenset[str]
    devices: frozenset[str]
    selinux: Mapping[str, tuple[SELinuxOptions, ...]] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.mounts or name in self.devices


def containers_of(pod: Pod) -> tuple[Container, ...]:
    """Init, regular and ephemeral containers, in that order."""
    spec = pod.spec
    return (*spec.init_containers, *spec.containers, *spec.ephemeral_containers)


def used_volumes(pod: Pod) -> UsedVolumes:
    """The volumes that some container mounts or maps; the others are not set up (UTIL-17, POP-11)."""
    mounts: set[str] = set()
    devices: set[str] = set()
    selinux: dict[str, tuple[SELinuxOptions, ...]] = {}
    context = pod.spec.security_context
    default = context.se_linux_options if context is not None else None
    for container in containers_of(pod):
        names = {mount.name for mount in container.volume_mounts}
        mounts |= names
        devices.update(device.name for device in container.volume_devices)
        own = container.security_context.se_linux_options if container.security_context is not None else None
        options = own if own is not None else default
        if options is not None:
            selinux |= {name: (*selinux.get(name, ()), options) for name in names}
    return UsedVolumes(frozenset(mounts), frozenset(devices), selinux)


def fs_user_of(pod: Pod) -> int | None:
    """The user that all containers share, None when it is unset somewhere or differs (UTIL-18)."""
    context = pod.spec.security_context
    default = context.run_as_user if context is not None else None
    user: int | None = None
    for container in containers_of(pod):
        own = container.security_context.run_as_user if container.security_context is not None else None
        effective = own if own is not None else default
        if effective is None or (user is not None and user != effective):
            return None
        user = effective
    return user


def workload_has_ended(pod: Pod) -> bool:
    """Whether the pod itself says that its workload is over: phase Succeeded or Failed, or the annotation for that.

    A deletion timestamp alone is no such word (BR-51): its containers may still be in their grace period. It is one
    with a status that tells of each container that it has ended. A phase is none while a container is told to run:
    others than those who run it set that too, when its node does not answer.
    """
    if pod.metadata.annotations.get(ENDED_ANNOTATION) == "true":
        return True
    if pod.status.phase in ENDED_PHASES:
        return not any(status.state.running is not None for status in _container_statuses(pod))
    return pod.metadata.deletion_timestamp is not None and _has_only_ended_containers(pod)


def _container_statuses(pod: Pod) -> Iterator[ContainerStatus]:
    status = pod.status
    yield from status.init_container_statuses
    yield from status.container_statuses
    yield from status.ephemeral_container_statuses


def _has_only_ended_containers(pod: Pod) -> bool:
    """Whether its status tells of every container that ever was to run, and that none does or will."""
    states = {status.name: status.state for status in _container_statuses(pod)}
    if any(state.running is not None for state in states.values()):
        return False
    return all(
        container.name in states and states[container.name].terminated is not None for container in pod.spec.containers
    )


def is_local_ephemeral(volume: Volume) -> bool:
    """Whether the volume's data lie on the node's own disk and count against its limits (UTIL-16)."""
    if volume.empty_dir is not None:
        return volume.empty_dir.medium == ""
    return volume.git_repo is not None or volume.config_map is not None


def local_ephemeral_size_limit(volume: Volume, pod: Pod) -> int | None:
    """The limit in bytes of a local ephemeral volume, None for no limit or another kind (DSW-03).

    The pod's total ephemeral-storage limit; for emptyDir its own limit when that is smaller or the only one.
    """
    if not is_local_ephemeral(volume):
        return None
    limit = _pod_ephemeral_storage_limit(pod)
    if volume.empty_dir is not None and volume.empty_dir.size_limit:
        from volumehost.sdk.quantity import parse_quantity

        own = parse_quantity(volume.empty_dir.size_limit).value()
        if own > 0 and (limit == 0 or own < limit):
            limit = own
    return limit or None


def _pod_ephemeral_storage_limit(pod: Pod) -> int:
    """The pod's limit as Kubernetes adds it up, 0 when there is none.

    Regular containers and sidecars (init containers that go on running) add up; any other init container runs
    beside the sidecars before it only, and counts when that alone is more.
    """
    sidecars = largest_init = 0
    for container in pod.spec.init_containers:
        limit = _ephemeral_storage_limit(container)
        if container.restart_policy == "Always":
            sidecars += limit
        largest_init = max(largest_init, sidecars if container.restart_policy == "Always" else sidecars + limit)
    return max(largest_init, sidecars + sum(_ephemeral_storage_limit(container) for container in pod.spec.containers))


def _ephemeral_storage_limit(container: Container) -> int:
    text = container.resources.limits.get("ephemeral-storage") if container.resources is not None else None
    if not text:
        return 0
    from volumehost.sdk.quantity import parse_quantity

    return parse_quantity(text).value()
