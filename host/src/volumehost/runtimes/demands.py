"""What mounts ask of a container runtime and not each can do: order, recursive read-only, propagation.

Called by the module of each runtime. What one cannot do is an error that says so, never left out in silence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from volumehost.errors import ContainerRuntimeError
from volumehost.node.workloads.containers import BIDIRECTIONAL, NO_PROPAGATION

if TYPE_CHECKING:
    from volumehost.node.workloads.containers import ContainerDevice, ContainerMount, ContainerMounts

#: The mount option for each kind of propagation; with all that is mounted below, as Kubernetes has it.
PROPAGATION_OPTIONS: Final = {NO_PROPAGATION: "rprivate", "HostToContainer": "rslave", BIDIRECTIONAL: "rshared"}


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a runtime can do. ``recursive_read_only``: make all that is mounted below a mount read-only with it.

    ``root``: mount a volume in place of the container's own root.
    """

    name: str
    recursive_read_only: bool
    root: bool


def in_order(container: ContainerMounts, runtime: Runtime) -> list[ContainerMount | ContainerDevice]:
    """Mounts and devices, each after those that it lies in: a mount hides what was mounted below it before.

    :raises ContainerRuntimeError: two would be at one place, or one in the place of the root where that cannot be.
    """
    found: dict[str, ContainerMount | ContainerDevice] = {}
    items: tuple[ContainerMount | ContainerDevice, ...] = (*container.mounts, *container.devices)
    for item in items:
        other = found.setdefault(item.container_path, item)
        if other is not item:
            reason = f"volumes {other.volume} and {item.volume} would be at the same place"
            raise refusal(container, item, reason, hint="give each a mountPath of its own")
        if item.container_path == "/" and not runtime.root:
            raise refusal(container, item, f"{runtime.name} cannot mount a volume in place of the container's root")
    return sorted(found.values(), key=lambda item: 0 if item.container_path == "/" else item.container_path.count("/"))


def is_recursive(container: ContainerMounts, mount: ContainerMount, runtime: Runtime) -> bool:
    """Whether all that is mounted below the mount is to be read-only too.

    :raises ContainerRuntimeError: it has to be, and the runtime cannot do it.
    """
    if not mount.read_only or mount.recursive_read_only not in {"Enabled", "IfPossible"}:
        return False
    if mount.recursive_read_only == "Enabled" and not runtime.recursive_read_only:
        raise refusal(
            container,
            mount,
            f"{runtime.name} cannot make a mount read-only with all that is mounted below it",
            hint="recursiveReadOnly: IfPossible does without where it cannot be",
        )
    return runtime.recursive_read_only


def propagation_option(container: ContainerMounts, mount: ContainerMount) -> str:
    """``rprivate``, ``rslave`` or ``rshared``.

    :raises ContainerRuntimeError: the host's mount does not pass on what the container is to see, or the reverse.
    """
    needed = {"shared"} if mount.propagation == BIDIRECTIONAL else {"shared", "slave"}
    if mount.propagation != NO_PROPAGATION and mount.host_propagation not in needed:
        raise refusal(
            container,
            mount,
            f"mountPropagation {mount.propagation} needs a host mount that is {' or '.join(sorted(needed))}; the one "
            f"that holds {mount.host_path} is {mount.host_propagation or 'not known'}",
            hint="'mount --make-rshared' on it changes that; 'volumehost agent' does it for the root directory",
        )
    return PROPAGATION_OPTIONS[mount.propagation]


def refusal(
    container: ContainerMounts, item: ContainerMount | ContainerDevice, reason: str, *, hint: str = ""
) -> ContainerRuntimeError:
    """The error that a runtime cannot have this."""
    return ContainerRuntimeError(
        reason,
        action=f"exporting volume {item.volume} at {item.container_path} of container {container.container}",
        subject=item.container_path,
        hint=hint,
    )
