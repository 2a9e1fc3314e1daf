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
_DESCRIPTOR: Final = 64


#: Blocks that a last group or allocation group has at least, whatever else is in it.
_GROUP_MINIMUM: Final = 64


@dataclass(frozen=True, slots=True)
class Superblock:
    """A filesystem as its superblock describes it: ``family`` is ``ext`` or ``xfs``, ``size`` its bytes.

    ``slack``: what is left over at the end of a device is not used when it is less than this, in bytes.
    """

    family: str
    size: int
    slack: int

    def smaller_than(self, device_size: int) -> bool:
        """Whether the filesystem would grow to use the device."""
        return self.size + self.slack <= device_size


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
        return Superblock("xfs", block * blocks, block * _GROUP_MINIMUM)
    return _parse_ext(data[_EXT_BEGIN:])


def _parse_ext(data: bytes) -> Superblock | None:
    (blocks,) = struct.unpack_from("<I", data, 4)
    (log_block,) = struct.unpack_from("<I", data, 24)
    (blocks_per_group,) = struct.unpack_from("<I", data, 32)
    (inodes_per_group,) = struct.unpack_from("<I", data, 40)
    (magic,) = struct.unpack_from("<H", data, 56)
    (inode_size,) = struct.unpack_from("<H", data, 88)
    (incompatible,) = struct.unpack_from("<I", data, 96)
    (reserved_descriptors,) = struct.unpack_from("<H", data, 206)
    if magic != _EXT_MAGIC or log_block > 6 or not blocks_per_group:
        return None
    if incompatible & _EXT_64BIT:
        (high,) = struct.unpack_from("<I", data, 336)
        blocks |= high << 32
    block = 1024 << log_block
    # A last group that would hold little more than its own inode table and copies of descriptors is left out.
    descriptors = -(-(blocks // blocks_per_group + 1) * _DESCRIPTOR // block)
    own = -(-inodes_per_group * inode_size // block) + reserved_descriptors + descriptors
    return Superblock("ext", block * blocks, block * (own + _GROUP_MINIMUM))
