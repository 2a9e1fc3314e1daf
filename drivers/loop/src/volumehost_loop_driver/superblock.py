"""Reads from an image which filesystem is on it and how large that is: a read of 2 KiB in place of a program.

Used while staging, to find out whether a filesystem is smaller than its volume (a clone or a restored snapshot that
was asked for larger, an expansion that was cut short). Never used to decide that something is empty.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Final

_LENGTH: Final = 2048
_EXT_BEGIN: Final = 1024
_EXT_MAGIC: Final = 0xEF53
_EXT_64BIT: Final = 0x80


@dataclass(frozen=True, slots=True)
class Superblock:
    """A filesystem as its superblock describes it: ``family`` is ``ext`` or ``xfs``, ``size`` and ``block`` bytes."""

    family: str
    size: int
    block: int

    def smaller_than(self, device_size: int) -> bool:
        """Whether at least one block of the device is left over."""
        return self.size + self.block <= device_size


def read_superblock(path: str) -> Superblock | None:
    """The superblock of an image or device that is not mounted, None when it has neither ext2, 3, 4 nor xfs.

    :raises OSError: it cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.pread(fd, _LENGTH, 0)
    finally:
        os.close(fd)
    return parse_superblock(data)


def parse_superblock(data: bytes) -> Superblock | None:
    """The same of the first 2 KiB; None for anything shorter or senseless."""
    if len(data) < _LENGTH:
        return None
    if data.startswith(b"XFSB"):
        block, blocks = struct.unpack_from(">IQ", data, 4)
        return Superblock("xfs", block * blocks, block)
    (magic,) = struct.unpack_from("<H", data, _EXT_BEGIN + 56)
    (log_block,) = struct.unpack_from("<I", data, _EXT_BEGIN + 24)
    if magic != _EXT_MAGIC or log_block > 6:
        return None
    (blocks,) = struct.unpack_from("<I", data, _EXT_BEGIN + 4)
    (incompatible,) = struct.unpack_from("<I", data, _EXT_BEGIN + 96)
    if incompatible & _EXT_64BIT:
        (high,) = struct.unpack_from("<I", data, _EXT_BEGIN + 0x150)
        blocks |= high << 32
    block = 1024 << log_block
    return Superblock("ext", block * blocks, block)
