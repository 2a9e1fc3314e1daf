"""Which kind of filesystem holds a path: the number that statfs(2) gives and that Python's ``os`` leaves out."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

#: ``f_type`` of tmpfs, and of hugetlbfs.
TMPFS_MAGIC = 0x01021994
HUGETLBFS_MAGIC = 0x958458F6

_STATFS_SIZE = 256
_TYPE_BYTES = 4 if os.uname().machine == "s390x" else 8


def filesystem_magic(path: str) -> int:
    """``f_type`` of the filesystem that the path lies on, as 32 bits; links are followed (EMPTYDIR-35).

    :raises OSError: the path cannot be reached, or the filesystem does not answer.
    """
    statfs, make_buffer = _statfs()
    buffer = make_buffer()
    if statfs(os.fsencode(path), buffer) != 0:
        import ctypes

        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return int.from_bytes(buffer.raw[:_TYPE_BYTES], sys.byteorder) & 0xFFFFFFFF


@functools.cache
def _statfs() -> tuple[Any, Any]:
    """The C library's function, and the type of what it fills."""
    import ctypes

    statfs = ctypes.CDLL(None, use_errno=True).statfs
    statfs.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    return statfs, ctypes.c_char * _STATFS_SIZE
