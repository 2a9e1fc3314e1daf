"""Arguments of ``bwrap`` (bubblewrap), for a sandbox that brings its own root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from volumehost.node.workloads.containers import BIDIRECTIONAL, ContainerDevice, ContainerMount
from volumehost.runtimes.demands import Runtime, in_order, propagation_option, refusal
from volumehost.runtimes.device_files import is_device, is_read_only

if TYPE_CHECKING:
    from volumehost.node.workloads.containers import ContainerMounts

#: Its read-only bind is always one with all that is mounted below, and its mounts always follow those of the host.
BWRAP: Final = Runtime("bwrap", recursive_read_only=True, root=True)


def bwrap_arguments(container: ContainerMounts) -> list[str]:
    """``--bind``, ``--ro-bind`` and ``--dev-bind`` for a container, in the order in which bwrap has to mount.

    They belong after the arguments that make the root and ``/dev``. Supplemental groups are none of bwrap's business:
    it keeps those that it is started with.

    :raises ContainerRuntimeError: bwrap cannot do something.
    """
    found: list[str] = []
    for item in in_order(container, BWRAP):
        option = _device(container, item) if isinstance(item, ContainerDevice) else _mount(container, item)
        found += [option, item.host_path, item.container_path]
    return found


def _mount(container: ContainerMounts, mount: ContainerMount) -> str:
    if mount.propagation == BIDIRECTIONAL:
        raise refusal(container, mount, "bwrap does not let mounts out of a sandbox: mountPropagation Bidirectional")
    if mount.recursive_read_only == "Disabled":
        raise refusal(
            container,
            mount,
            "bwrap makes a mount read-only with all that is mounted below it: recursiveReadOnly Disabled",
            hint="without recursiveReadOnly it is done so",
        )
    propagation_option(container, mount)
    if is_device(mount.host_path):  # any other bind of it could not be opened
        return "--dev-bind"
    return "--ro-bind" if mount.read_only else "--bind"


def _device(container: ContainerMounts, device: ContainerDevice) -> str:
    if device.read_only and not is_read_only(device):
        reason = f"bwrap cannot keep a sandbox from writing to the block device {device.host_path}"
        raise refusal(container, device, reason, hint="'blockdev --setro' makes the device itself read-only")
    return "--dev-bind"
