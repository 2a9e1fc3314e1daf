"""Copies an image: shares its blocks where the filesystem can (reflink), else copies them and leaves holes as holes."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import Final

_FICLONE: Final = 0x40049409
_CANNOT_CLONE: Final = frozenset({errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS})
_CHUNK: Final = 64 << 20


def copy_contents(source_fd: int, target_fd: int) -> bool:
    """Make an empty file equal to another, size included; whether their blocks are shared.

    :raises OSError: it cannot be read or written, ENOSPC above all.
    """
    try:
        fcntl.ioctl(target_fd, _FICLONE, source_fd)
    except OSError as error:
        if error.errno not in _CANNOT_CLONE:
            raise
    else:
        return True
    size = os.fstat(source_fd).st_size
    os.ftruncate(target_fd, size)
    for begin, end in data_extents(source_fd, size):
        _copy_extent(source_fd, target_fd, begin, end)
    return False


def data_extents(fd: int, size: int) -> list[tuple[int, int]]:
    """Where a file has data: (begin, end) in bytes. All of it, where the filesystem does not know."""
    extents: list[tuple[int, int]] = []
    position = 0
    while position < size:
        try:
            begin = os.lseek(fd, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                break
            if error.errno == errno.EINVAL:
                return [(0, size)]
            raise
        position = os.lseek(fd, begin, os.SEEK_HOLE)
        extents.append((begin, position))
    return extents


def _copy_extent(source_fd: int, target_fd: int, begin: int, end: int) -> None:
    by_kernel = True
    while begin < end:
        count = min(end - begin, _CHUNK)
        if by_kernel:
            try:
                copied = os.copy_file_range(source_fd, target_fd, count, begin, begin)
            except OSError as error:
                if error.errno not in _CANNOT_CLONE:
                    raise
                by_kernel = False
                continue
        else:
            copied = os.pwrite(target_fd, os.pread(source_fd, min(count, 1 << 20), begin), begin)
        if not copied:
            raise OSError(errno.EIO, "the source became shorter while it was copied")
        begin += copied
