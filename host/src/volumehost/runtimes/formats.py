"""The formats by name, and a container's mounts as plain data. ``volumehost export`` calls this."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from volumehost.runtimes.bwrap import bwrap_arguments
from volumehost.runtimes.docker import docker_arguments
from volumehost.runtimes.podman import podman_arguments

if TYPE_CHECKING:
    from volumehost.node.workloads.containers import ContainerDevice, ContainerMount, ContainerMounts

#: Programs that take a container's mounts as command line arguments.
ARGUMENTS: Final[dict[str, Callable[[ContainerMounts], list[str]]]] = {
    "podman": podman_arguments,
    "docker": docker_arguments,
    "bwrap": bwrap_arguments,
}


def container_data(container: ContainerMounts) -> dict[str, Any]:
    """All that is known of a container's mounts; for programs that bring their own runtime."""
    return {
        "container": container.container,
        "kind": container.kind,
        "mounts": [_mount_data(mount) for mount in container.mounts],
        "devices": [_device_data(device) for device in container.devices],
        "supplementalGroups": list(container.supplemental_groups),
    }


def _mount_data(mount: ContainerMount) -> dict[str, Any]:
    return {
        "volume": mount.volume,
        "hostPath": mount.host_path,
        "containerPath": mount.container_path,
        "readOnly": mount.read_only,
        "recursiveReadOnly": mount.recursive_read_only,
        "propagation": mount.propagation,
        "hostPropagation": mount.host_propagation,
        "subPath": mount.sub_path,
        "selinuxRelabel": mount.selinux_relabel,
    }


def _device_data(device: ContainerDevice) -> dict[str, Any]:
    return {
        "volume": device.volume,
        "hostPath": device.host_path,
        "containerPath": device.container_path,
        "readOnly": device.read_only,
    }
