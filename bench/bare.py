"""The bare system calls that ours are measured against: ctypes and nothing around it."""

from __future__ import annotations

import ctypes
import os

MS_BIND = 4096
UMOUNT_NOFOLLOW = 8

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, fs_type: str = "", flags: int = 0, data: str = "") -> None:
    """``mount(2)``."""
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), fs_type.encode() or None, ctypes.c_ulong(flags), data.encode() or None
    )
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def umount(target: str) -> None:
    """``umount2(2)``."""
    if _libc.umount2(os.fsencode(target), UMOUNT_NOFOLLOW) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def unmount_below(directory: str) -> None:
    """Unmount all that is mounted below the directory, the last first."""
    with open("/proc/self/mountinfo") as file:
        paths = [line.split(" ", 5)[4] for line in file]
    for path in reversed(paths):
        if path.startswith(f"{directory}/"):
            umount(path)
