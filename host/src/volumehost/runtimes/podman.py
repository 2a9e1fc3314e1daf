"""Arguments of ``podman run`` and ``podman create``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from volumehost.node.workloads.containers import NO_PROPAGATION
from volumehost.runtimes import engines
from volumehost.runtimes.demands import Runtime, is_recursive, propagation_option

if TYPE_CHECKING:
    from volumehost.node.workloads.containers import ContainerMount, ContainerMounts

#: Its ``ro`` leaves alone what is mounted below, and it has no option that does not.
PODMAN: Final = Runtime("podman", recursive_read_only=False, root=False)


def podman_arguments(container: ContainerMounts) -> list[str]:
    """``--mount``, ``--device`` and ``--group-add`` for a container.

    :raises ContainerRuntimeError: podman cannot do something, or cannot be told.
    """

    def mount_arguments(mount: ContainerMount) -> list[str]:
        options = ["ro"] if mount.read_only else []
        is_recursive(container, mount, PODMAN)
        if mount.propagation != NO_PROPAGATION:  # rprivate is its default
            options.append(f"bind-propagation={propagation_option(container, mount)}")
        if mount.selinux_relabel:
            options.append("relabel=shared")
        return ["--mount", engines.mount_field(container, mount, PODMAN, options)]

    return engines.arguments(container, PODMAN, mount_arguments)
