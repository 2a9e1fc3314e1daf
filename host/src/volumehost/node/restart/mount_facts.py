"""Where something is mounted, as the kernel tells: of all paths by one read of its table, of one path by one call.

Nothing is asked of what is mounted there, which may hang.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.mount.mountinfo import MOUNT_TABLE, read_consistently, split_table

if TYPE_CHECKING:
    from volumehost.node.operations.common import Services


def mounted_paths(services: Services) -> frozenset[str]:
    """Where something is mounted (BR-57).

    :raises MountError: the table cannot be read.
    """
    from volumehost.mount.mounter import LinuxMounter

    mounter = services.host.get_mounter()
    if isinstance(mounter, LinuxMounter):
        return frozenset(path for _, _, path in split_table(read_consistently(MOUNT_TABLE)))
    return frozenset(mount.path for mount in mounter.list_mounts())


def is_mounted(services: Services, path: str) -> bool:
    """Whether something is mounted exactly there; a path that cannot be reached is none.

    :raises MountError: the table, which old kernels need for that, cannot be read.
    """
    from volumehost.mount.mounter import LinuxMounter

    mounter = services.host.get_mounter()
    if path and isinstance(mounter, LinuxMounter):
        try:
            found = mounter.has_mount_at(path)
        except OSError:
            return False
        if found is not None:
            return found
    return path in mounted_paths(services)
