"""Makes bind mounts with the options asked for, never showing a read-only one read-write where the kernel allows that.

Called by the mounter. With ``mount_setattr`` (kernel 5.12) a detached copy of the mount gets its attributes before it
is put in place; older kernels need the two steps of MOUNT-08, the second undone when it fails (MOUNT-10).
"""

from __future__ import annotations

import errno
import logging
import os
from typing import Final

from volumehost.mount import syscalls
from volumehost.mount.options import MountOptions

logger = logging.getLogger(__name__)

#: Flags of the source that a remount would otherwise drop (MOUNT-09): statvfs flag to mount flag.
_KEPT_FLAGS: Final[dict[int, int]] = {
    os.ST_RDONLY: syscalls.MS_RDONLY,
    os.ST_NODEV: syscalls.MS_NODEV,
    os.ST_NOEXEC: syscalls.MS_NOEXEC,
    os.ST_NOSUID: syscalls.MS_NOSUID,
    os.ST_NOATIME: syscalls.MS_NOATIME,
    os.ST_RELATIME: syscalls.MS_RELATIME,
    os.ST_NODIRATIME: syscalls.MS_NODIRATIME,
}
_ATIME_FLAGS: Final = syscalls.MS_NOATIME | syscalls.MS_RELATIME | syscalls.MS_STRICTATIME


def bind_mount(source: str, target: str, options: MountOptions) -> None:
    """Bind ``source`` on ``target``; nothing is left mounted when any part fails.

    :raises OSError: as the kernel gave it.
    """
    to_set, to_clear = options.attributes()
    if not to_set and not to_clear and not options.propagation:
        # The copy has the flags of the original, so there is nothing that a second step could add.
        syscalls.mount(source, target, "", _bind_flags(options), "")
        return
    try:
        _bind_with_attributes(source, target, options, to_set, to_clear)
    except OSError as error:
        if error.errno not in {errno.ENOSYS, errno.EOPNOTSUPP}:
            raise
        bind_mount_in_two_steps(source, target, options)


def _bind_flags(options: MountOptions) -> int:
    return options.flags & (syscalls.MS_BIND | syscalls.MS_REC)


def _bind_with_attributes(source: str, target: str, options: MountOptions, to_set: int, to_clear: int) -> None:
    recursive = syscalls.AT_RECURSIVE if options.flags & syscalls.MS_REC else 0
    tree = syscalls.open_tree(syscalls.AT_FDCWD, source, syscalls.OPEN_TREE_CLONE | recursive)
    try:
        if to_set or to_clear:
            syscalls.mount_setattr(tree, "", syscalls.AT_EMPTY_PATH, to_set, to_clear)
        for propagation in options.propagation:
            reach = syscalls.AT_RECURSIVE if propagation & syscalls.MS_REC else 0
            syscalls.mount_setattr(
                tree, "", syscalls.AT_EMPTY_PATH | reach, 0, 0, propagation=propagation & ~syscalls.MS_REC
            )
        syscalls.move_mount(tree, "", syscalls.AT_FDCWD, target, syscalls.MOVE_MOUNT_F_EMPTY_PATH)
    finally:
        os.close(tree)


def bind_mount_in_two_steps(source: str, target: str, options: MountOptions) -> None:
    """The way of kernels before 5.12 (MOUNT-07 to -10): bind, then remount with the flags; undone on failure."""
    syscalls.mount(source, target, "", _bind_flags(options), "")
    try:
        flags = options.flags & ~syscalls.MS_REC | _flags_of(source, options.flags)
        syscalls.mount("", target, "", flags | syscalls.MS_BIND | syscalls.MS_REMOUNT, "")
        for propagation in options.propagation:
            syscalls.mount("", target, "", propagation, "")
    except OSError:
        try:
            syscalls.umount2(target, syscalls.UMOUNT_NOFOLLOW | syscalls.MNT_DETACH)
        except OSError:
            logger.exception("undoing the bind mount at %s failed, it stays without its options", target)
        raise


def _flags_of(source: str, wanted: int) -> int:
    present = os.statvfs(source).f_flag
    flags = 0
    for there, flag in _KEPT_FLAGS.items():
        # One access time rule at a time: the one asked for wins.
        if present & there and not (flag & _ATIME_FLAGS and wanted & _ATIME_FLAGS):
            flags |= flag
    return flags
