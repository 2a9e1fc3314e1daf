"""Makes bind mounts with the options asked for, never showing a read-only one read-write where the kernel allows that.

Called by the mounter and by the subpath code. With ``mount_setattr`` (kernel 5.12) a detached copy of the mount gets
its attributes before it is put in place; older kernels need the two steps of MOUNT-08, the second undone when it fails.
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import stat
from typing import Final

from volumehost.mount import syscalls
from volumehost.mount.options import MountOptions
from volumehost.mount.places import look_at_fd, open_place

logger = logging.getLogger(__name__)

#: Flags of the source that a remount would otherwise drop (MOUNT-09): statvfs flag to mount flag.
#: Numbers, because the names are missing from ``os`` on other platforms, where this module must still import.
_KEPT_FLAGS: Final[dict[int, int]] = {
    0x1: syscalls.MS_RDONLY,
    0x2: syscalls.MS_NOSUID,
    0x4: syscalls.MS_NODEV,
    0x8: syscalls.MS_NOEXEC,
    0x400: syscalls.MS_NOATIME,
    0x800: syscalls.MS_NODIRATIME,
    0x1000: syscalls.MS_RELATIME,
}
_ATIME_FLAGS: Final = syscalls.MS_NOATIME | syscalls.MS_RELATIME | syscalls.MS_STRICTATIME
_CLONE: Final = syscalls.OPEN_TREE_CLONE | syscalls.AT_EMPTY_PATH
_ONTO: Final = syscalls.MOVE_MOUNT_F_EMPTY_PATH | syscalls.MOVE_MOUNT_T_EMPTY_PATH
#: What a kernel says to calls that it does not have, and what a seccomp filter says to calls that it does not know.
_UNKNOWN_CALL: Final = frozenset({errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM})


@functools.cache
def changes_whole_trees() -> bool:
    """Whether the kernel changes a mount together with all that is mounted below it (mount_setattr, 5.12)."""
    flags = syscalls.AT_EMPTY_PATH | syscalls.AT_RECURSIVE
    try:
        syscalls.mount_setattr(-1, "", flags, syscalls.MOUNT_ATTR_RDONLY, 0)
    except OSError as error:
        return error.errno not in _UNKNOWN_CALL
    return True


def bind_mount(source: str, target: str, options: MountOptions, resolve: int = 0) -> None:
    """Bind ``source`` on ``target``; nothing is left mounted when any part fails.

    :param resolve: RESOLVE flags of openat2(2) for both paths.
    :raises OSError: as the kernel gave it.
    """
    # Nested try blocks, not contexts: this is the busiest path of the room, and those cost as much as a system call.
    source_fd = open_place(source, resolve)
    try:
        target_fd = open_place(target, resolve)
        try:
            bind_descriptors(source_fd, target_fd, options)
        except OSError as error:
            if error.errno not in _UNKNOWN_CALL:
                raise _precise(error, source_fd, target_fd) from None
        else:
            return
        finally:
            os.close(target_fd)
    finally:
        os.close(source_fd)
    if resolve:
        # The old calls walk the paths again: they belong under a deadline.
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), target)
    bind_mount_in_two_steps(source, target, options)


def _precise(error: OSError, source_fd: int, target_fd: int) -> OSError:
    """The new calls say EINVAL where mount(2) says ENOTDIR."""
    kinds = {stat.S_ISDIR(look_at_fd(fd).stat.mode) for fd in (source_fd, target_fd)}
    if error.errno == errno.EINVAL and len(kinds) > 1:
        return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), error.filename)
    return error


def bind_descriptors(source_fd: int, target_fd: int, options: MountOptions) -> None:
    """Bind what one descriptor shows on what the other shows; path-only descriptors serve.

    :raises OSError: as the kernel gave it; ENOSYS before kernel 5.12 when options are given, before 5.2 always.
    """
    to_set, to_clear = options.attributes()
    recursive = syscalls.AT_RECURSIVE if options.flags & syscalls.MS_REC else 0
    # Without options the copy has the flags of the original: there is nothing to set (MOUNT-09).
    tree = syscalls.open_tree(source_fd, "", _CLONE | recursive)
    try:
        if to_set or to_clear:
            syscalls.mount_setattr(tree, "", syscalls.AT_EMPTY_PATH, to_set, to_clear)
        for propagation in options.propagation:
            reach = syscalls.AT_RECURSIVE if propagation & syscalls.MS_REC else 0
            kind = propagation & ~syscalls.MS_REC
            syscalls.mount_setattr(tree, "", syscalls.AT_EMPTY_PATH | reach, 0, 0, propagation=kind)
        syscalls.move_mount(tree, "", target_fd, "", _ONTO)
    finally:
        os.close(tree)


def bind_mount_in_two_steps(source: str, target: str, options: MountOptions) -> None:
    """The way of kernels before 5.12 (MOUNT-07 to -10): bind, then remount with the flags; undone on failure."""
    syscalls.mount(source, target, "", options.flags & (syscalls.MS_BIND | syscalls.MS_REC), "")
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


def remount(target: str, options: MountOptions) -> None:
    """Change the options of what is mounted; flags that are not spoken of stay, as mount(8) has it.

    With ``bind`` those of the mount alone, without it those of the filesystem, for all its mounts.

    :raises OSError: as the kernel gave it.
    """
    kept = _flags_of(target, options.flags) & ~options.cleared
    syscalls.mount("", target, "", options.flags | kept, ",".join(options.data))


def _flags_of(path: str, wanted: int) -> int:
    """Flags of the mount at the path, without those that would contradict the flags wanted."""
    present = os.statvfs(path).f_flag
    flags = 0
    for there, flag in _KEPT_FLAGS.items():
        # One access time rule at a time: the one asked for wins.
        if present & there and not (flag & _ATIME_FLAGS and wanted & _ATIME_FLAGS):
            flags |= flag
    return flags
