"""What the options of podman and docker have in common: how mounts, devices and groups are written.

Called by ``podman`` and ``docker``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from volumehost.node.workloads.containers import ContainerMount
from volumehost.runtimes.demands import in_order, refusal

if TYPE_CHECKING:
    from volumehost.node.workloads.containers import ContainerDevice, ContainerMounts
    from volumehost.runtimes.demands import Runtime


def arguments(
    container: ContainerMounts, runtime: Runtime, mount_arguments: Callable[[ContainerMount], list[str]]
) -> list[str]:
    """The command line arguments for a container.

    :raises ContainerRuntimeError: the runtime cannot do something, or cannot be told.
    """
    found: list[str] = []
    for item in in_order(container, runtime):
        found += mount_arguments(item) if isinstance(item, ContainerMount) else _device(container, item, runtime)
    for group in container.supplemental_groups:
        found += ["--group-add", str(group)]
    return found


def mount_field(container: ContainerMounts, mount: ContainerMount, runtime: Runtime, options: Sequence[str]) -> str:
    """``type=bind,src=...,dst=...`` and the options, quoted as the engines read it.

    :raises ContainerRuntimeError: a path cannot be said that way.
    """
    for path in (mount.host_path, mount.container_path):
        if "\r" in path:  # their reader drops it before a line break
            raise refusal(container, mount, f"{runtime.name} --mount takes no path with a carriage return: {path!r}")
    fields = ["type=bind", f"src={mount.host_path}", f"dst={mount.container_path}", *options]
    return ",".join(_quoted(field) for field in fields)


def _quoted(field: str) -> str:
    """One value among comma-separated ones (RFC 4180)."""
    if not any(character in field for character in ',"\n'):
        return field
    return '"' + field.replace('"', '""') + '"'


def _device(container: ContainerMounts, device: ContainerDevice, runtime: Runtime) -> list[str]:
    """Access as the kubelet gives it: all, or to read alone."""
    for path in (device.host_path, device.container_path):
        if ":" in path:
            raise refusal(container, device, f"{runtime.name} --device takes no path with a colon: {path}")
    return ["--device", f"{device.host_path}:{device.container_path}:{'r' if device.read_only else 'rwm'}"]
