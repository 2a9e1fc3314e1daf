"""The kernel calls that the mount room needs and that Python's ``os`` does not have; each raises OSError on failure.

Called by every other module of this room, by nobody else. Nothing is loaded before the first call, so that the module
imports on any platform.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
from typing import Any, Final, NamedTuple

CLONE_NEWNS: Final = 0x00020000

AT_FDCWD: Final = -100
AT_SYMLINK_NOFOLLOW: Final = 0x100
AT_NO_AUTOMOUNT: Final = 0x800
AT_EMPTY_PATH: Final = 0x1000
AT_STATX_DONT_SYNC: Final = 0x4000
AT_RECURSIVE: Final = 0x8000

MS_RDONLY: Final = 1
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_SYNCHRONOUS: Final = 16
MS_REMOUNT: Final = 32
MS_MANDLOCK: Final = 64
MS_DIRSYNC: Final = 128
MS_NOSYMFOLLOW: Final = 256
MS_NOATIME: Final = 1024
MS_NODIRATIME: Final = 2048
MS_BIND: Final = 4096
MS_MOVE: Final = 8192
MS_REC: Final = 16384
MS_SILENT: Final = 32768
MS_UNBINDABLE: Final = 1 << 17
MS_PRIVATE: Final = 1 << 18
MS_SLAVE: Final = 1 << 19
MS_SHARED: Final = 1 << 20
MS_RELATIME: Final = 1 << 21
MS_I_VERSION: Final = 1 << 23
MS_STRICTATIME: Final = 1 << 24
MS_LAZYTIME: Final = 1 << 25

MNT_FORCE: Final = 1
MNT_DETACH: Final = 2
UMOUNT_NOFOLLOW: Final = 8

MOUNT_ATTR_RDONLY: Final = 0x1
MOUNT_ATTR_NOSUID: Final = 0x2
MOUNT_ATTR_NODEV: Final = 0x4
MOUNT_ATTR_NOEXEC: Final = 0x8
MOUNT_ATTR_ATIME_MASK: Final = 0x70
MOUNT_ATTR_RELATIME: Final = 0x0
MOUNT_ATTR_NOATIME: Final = 0x10
MOUNT_ATTR_STRICTATIME: Final = 0x20
MOUNT_ATTR_NODIRATIME: Final = 0x80
MOUNT_ATTR_NOSYMFOLLOW: Final = 0x200000

RESOLVE_NO_XDEV: Final = 0x01
RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_NO_SYMLINKS: Final = 0x04
RESOLVE_BENEATH: Final = 0x08
RESOLVE_IN_ROOT: Final = 0x10
RESOLVE_CACHED: Final = 0x20

STATX_TYPE: Final = 0x1
STATX_MODE: Final = 0x2
STATX_UID: Final = 0x8
STATX_GID: Final = 0x10
STATX_INO: Final = 0x100
STATX_MNT_ID: Final = 0x1000
STATX_MNT_ID_UNIQUE: Final = 0x4000
STATX_ATTR_MOUNT_ROOT: Final = 0x2000

OPEN_TREE_CLONE: Final = 1
OPEN_TREE_CLOEXEC: Final = os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH: Final = 0x4
MOVE_MOUNT_T_EMPTY_PATH: Final = 0x40

# Numbers of calls that came after the architectures agreed on one list.
_NR_OPEN_TREE: Final = 428
_NR_MOVE_MOUNT: Final = 429
_NR_FSOPEN: Final = 430
_NR_FSCONFIG: Final = 431
_NR_OPENAT2: Final = 437
_NR_MOUNT_SETATTR: Final = 442
_NR_STATMOUNT: Final = 457

FSCONFIG_SET_FLAG: Final = 0
FSCONFIG_SET_STRING: Final = 1

_STATMOUNT_FS_TYPE: Final = 0x20
_STATMOUNT_STRINGS: Final = 512  # where the string area of the answer begins
_STATX_SIZE: Final = 256
# mask, attributes, (links,) uid, gid, mode, inode, (size, blocks,) known attributes, (times, device,) device, mount id
_STATX: Final = struct.Struct("<I4xQ4xIIH2xQ16xQ72xIIQ")


class _Libc:
    """The C library's entry points, with argument types set once."""

    __slots__ = ("mount", "statx", "syscall", "umount2", "unshare")

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self.mount: Any = library.mount
        self.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
        self.umount2: Any = library.umount2
        self.umount2.argtypes = [ctypes.c_char_p, ctypes.c_int]
        self.unshare: Any = library.unshare
        self.unshare.argtypes = [ctypes.c_int]
        self.statx: Any = library.statx
        self.statx.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p]
        self.syscall: Any = library.syscall
        self.syscall.restype = ctypes.c_long


@functools.cache
def _libc() -> _Libc:
    return _Libc()


def _failed(path: str | bytes | None = None) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), os.fsdecode(path) if path is not None else None)


def encode(text: str) -> bytes:
    """A path or option string as the kernel takes it.

    :raises ValueError: it holds a NUL, which the kernel would read as the end of a shorter string.
    """
    data = os.fsencode(text)
    if b"\0" in data:
        raise ValueError("embedded null byte")
    return data


def mount(source: str, target: str, fs_type: str, flags: int, data: str) -> None:
    """System call mount; empty strings become NULL where the kernel allows it."""
    result = _libc().mount(
        encode(source) if source else None,
        encode(target),
        encode(fs_type) if fs_type else None,
        flags,
        encode(data) if data else None,
    )
    if result != 0:
        raise _failed(target)


def umount2(target: str, flags: int) -> None:
    """System call umount2."""
    if _libc().umount2(encode(target), flags) != 0:
        raise _failed(target)


def unshare(flags: int) -> None:
    """System call unshare, for the calling thread alone."""
    if _libc().unshare(flags) != 0:
        raise _failed(None)


class Statx(NamedTuple):
    """What this room wants of statx(2). ``mount_root`` is None where the kernel cannot tell (before 5.8).

    ``mount_id`` is the unique id where ``unique_id``, the reusable one of the mount table otherwise, None if unknown.
    """

    mode: int
    uid: int
    gid: int
    inode: int
    device: tuple[int, int]
    mount_root: bool | None
    mount_id: int | None
    unique_id: bool


def statx(dir_fd: int, path: str, flags: int, mask: int) -> Statx:
    """System call statx; with AT_STATX_DONT_SYNC the filesystem answers from what it knows, without a peer."""
    buffer = ctypes.create_string_buffer(_STATX_SIZE)
    if _libc().statx(dir_fd, encode(path), flags, mask, buffer) != 0:
        raise _failed(path)
    got, attributes, uid, gid, mode, inode, known, major, minor, mount_id = _STATX.unpack_from(buffer)
    return Statx(
        mode,
        uid,
        gid,
        inode,
        (major, minor),
        bool(attributes & STATX_ATTR_MOUNT_ROOT) if known & STATX_ATTR_MOUNT_ROOT else None,
        mount_id if got & (STATX_MNT_ID | STATX_MNT_ID_UNIQUE) else None,
        bool(got & STATX_MNT_ID_UNIQUE),
    )


def openat2(dir_fd: int, path: str, flags: int, resolve: int, mode: int = 0) -> int:
    """System call openat2 (kernel 5.6): the descriptor, always close-on-exec."""
    how = struct.pack("<QQQ", flags | os.O_CLOEXEC, mode, resolve)
    fd = _libc().syscall(_NR_OPENAT2, dir_fd, encode(path), how, ctypes.c_size_t(len(how)))
    if fd < 0:
        raise _failed(path)
    return int(fd)


def open_tree(dir_fd: int, path: str, flags: int) -> int:
    """System call open_tree (kernel 5.2): a descriptor of the place, or of a detached copy of its mount."""
    fd = _libc().syscall(_NR_OPEN_TREE, dir_fd, encode(path), ctypes.c_uint(flags | OPEN_TREE_CLOEXEC))
    if fd < 0:
        raise _failed(path)
    return int(fd)


def move_mount(from_fd: int, from_path: str, to_fd: int, to_path: str, flags: int) -> None:
    """System call move_mount (kernel 5.2)."""
    if _libc().syscall(_NR_MOVE_MOUNT, from_fd, encode(from_path), to_fd, encode(to_path), ctypes.c_uint(flags)) != 0:
        raise _failed(to_path)


def mount_setattr(dir_fd: int, path: str, flags: int, attr_set: int, attr_clear: int, *, propagation: int = 0) -> None:
    """System call mount_setattr (kernel 5.12)."""
    attributes = struct.pack("<QQQQ", attr_set, attr_clear, propagation, 0)
    result = _libc().syscall(
        _NR_MOUNT_SETATTR, dir_fd, encode(path), ctypes.c_uint(flags), attributes, ctypes.c_size_t(len(attributes))
    )
    if result != 0:
        raise _failed(path)


def fsopen(fs_type: str) -> int:
    """System call fsopen (kernel 5.2): a descriptor on which a filesystem's options can be tried."""
    fd = _libc().syscall(_NR_FSOPEN, encode(fs_type), ctypes.c_uint(1))
    if fd < 0:
        raise _failed(None)
    return int(fd)


def fsconfig(fd: int, command: int, key: str, value: str | None) -> None:
    """System call fsconfig: give the context one option."""
    data = encode(value) if value is not None else None
    if _libc().syscall(_NR_FSCONFIG, fd, ctypes.c_uint(command), encode(key), data, 0) != 0:
        raise _failed(None)


def mount_fs_type(unique_mount_id: int) -> str:
    """The filesystem type of a mount by statmount(2) (kernel 6.8), without touching the mount.

    :param unique_mount_id: from ``statx`` with STATX_MNT_ID_UNIQUE.
    """
    request = struct.pack("<IIQQ", 24, 0, unique_mount_id, _STATMOUNT_FS_TYPE)
    answer = ctypes.create_string_buffer(1024)
    if _libc().syscall(_NR_STATMOUNT, request, answer, ctypes.c_size_t(len(answer)), ctypes.c_uint(0)) != 0:
        raise _failed(None)
    raw = answer.raw
    (got,) = struct.unpack_from("<Q", raw, 8)
    if not got & _STATMOUNT_FS_TYPE:
        return ""
    (offset,) = struct.unpack_from("<I", raw, 36)
    begin = _STATMOUNT_STRINGS + offset
    return raw[begin : raw.index(b"\0", begin)].decode("utf-8", "surrogateescape")
