"""Arguments of ``docker run`` and ``docker create``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from volumehost.node.workloads.containers import NO_PROPAGATION
from volumehost.runtimes import engines
from volumehost.runtimes.demands import Runtime, is_recursive, propagation_option, refusal

if TYPE_CHECKING:
    from volumehost.node.workloads.containers import ContainerMount, ContainerMounts

#: From version 25 on; older ones refuse the option, so that nothing is left writable by mistake.
DOCKER: Final = Runtime("docker", recursive_read_only=True, root=False)


def docker_arguments(container: ContainerMounts) -> list[str]:
    """``--mount``, ``--volume`` (for relabelling, which ``--mount`` lacks), ``--device``, ``--group-add``.

    :raises ContainerRuntimeError: docker cannot do something, or cannot be told.
    """

    def mount_arguments(mount: ContainerMount) -> list[str]:
        if mount.selinux_relabel:
            return ["--volume", _volume(container, mount)]
        options = ["readonly"] if mount.read_only else []
        if _must_recurse(container, mount):
            options += ["bind-recursive=readonly", f"bind-propagation={propagation_option(container, mount)}"]
        elif mount.read_only and mount.recursive_read_only == "Disabled":
            options.append("bind-recursive=writable")
        if mount.propagation != NO_PROPAGATION:  # rprivate is its default
            options.append(f"bind-propagation={propagation_option(container, mount)}")
        return ["--mount", engines.mount_field(container, mount, DOCKER, options)]

    return engines.arguments(container, DOCKER, mount_arguments)


def _must_recurse(container: ContainerMounts, mount: ContainerMount) -> bool:
    """IfPossible is what ``readonly`` does by itself: recursively where both docker and the kernel can."""
    return is_recursive(container, mount, DOCKER) and mount.recursive_read_only == "Enabled"


def _volume(container: ContainerMounts, mount: ContainerMount) -> str:
    for path in (mount.host_path, mount.container_path):
        if ":" in path:
            raise refusal(container, mount, f"docker --volume, which relabels, takes no path with a colon: {path}")
    if _must_recurse(container, mount):
        raise refusal(container, mount, "docker cannot relabel a mount and make it recursively read-only too")
    options = ["ro" if mount.read_only else "rw", "z"]
    if mount.propagation != NO_PROPAGATION:
        options.append(propagation_option(container, mount))
    return f"{mount.host_path}:{mount.container_path}:{','.join(options)}"
