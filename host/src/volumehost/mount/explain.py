"""Turns errno of mount and unmount calls into what happened and what to do, for the errors of this room."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Final

from volumehost.mount import syscalls

_MOUNT: Final[dict[int, tuple[str, str]]] = {
    errno.EPERM: (
        "the kernel does not permit it",
        "mounting needs root with CAP_SYS_ADMIN, outside of a user namespace unless the filesystem allows it",
    ),
    errno.EACCES: (
        "access denied: a directory on the way may not be searched, or the device is write-protected",
        'to mount a write-protected device, use the option "ro"',
    ),
    errno.EROFS: ("the device is read-only", 'use the option "ro"'),
    errno.EBUSY: ("it is in use: the device or the mount point is busy, or mounted in a way that conflicts", ""),
    errno.EINVAL: (
        "invalid option, filesystem or source",
        "the kernel log may say more",
    ),
    errno.ENODEV: ("the kernel does not know this filesystem type", "a kernel module may be missing"),
    errno.ENOENT: ("the source or the target does not exist", ""),
    errno.ENOTBLK: ("the source is not a block device", ""),
    errno.ENOTDIR: ("source and target must both be directories or both be files", ""),
    errno.ENXIO: ("there is no such device", ""),
    errno.ENOSPC: (
        "no space left: the kernel's limit of mounts is reached, or the filesystem is full",
        "see fs.mount-max",
    ),
    errno.ELOOP: ("too many symbolic links, or a loop of mounts", ""),
    errno.ENAMETOOLONG: ("a name or the list of options is too long", ""),
    117: (  # EUCLEAN, which only Linux has
        "the filesystem is damaged",
        "check it with fsck",
    ),
    errno.EIO: ("the device has failed", "the kernel log may say more"),
}

_UNMOUNT: Final[dict[int, tuple[str, str]]] = {
    errno.EPERM: ("the kernel does not permit it", "unmounting needs root with CAP_SYS_ADMIN"),
    errno.EINVAL: (
        "the mount is locked to another one, as it is in a user namespace that inherited it",
        "unmount it where it was mounted",
    ),
    errno.EACCES: ("a directory on the way may not be searched", ""),
}


def explain_mount(number: int) -> tuple[str, str]:
    """(reason, hint) for an errno of a mount call."""
    return _explain(_MOUNT, number)


def explain_unmount(number: int) -> tuple[str, str]:
    """(reason, hint) for an errno of an unmount call."""
    return _explain(_UNMOUNT, number)


def _explain(table: dict[int, tuple[str, str]], number: int) -> tuple[str, str]:
    reason, hint = table.get(number, ("", ""))
    text = os.strerror(number)
    return (f"{text}: {reason}" if reason else text), hint


def complaint_about_options(fs_type: str, options: Sequence[str]) -> str:
    """What the filesystem itself says against its options, "" when it says nothing; mounts nothing.

    The text can quote values, so the caller masks what is secret.
    """
    try:
        fd = syscalls.fsopen(fs_type)
    except (OSError, ValueError):
        return ""
    try:
        for option in options:
            name, equals, value = option.partition("=")
            command = syscalls.FSCONFIG_SET_STRING if equals else syscalls.FSCONFIG_SET_FLAG
            syscalls.fsconfig(fd, command, name, value.strip('"') if equals else None)
    except (OSError, ValueError):
        return _message(fd)
    finally:
        os.close(fd)
    return ""


def _message(fd: int) -> str:
    try:
        return os.read(fd, 8192).decode(errors="replace").removeprefix("e ").strip()
    except OSError:
        return ""
