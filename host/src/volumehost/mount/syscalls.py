"""The kernel calls that the mount room needs and that Python's ``os`` does not have; each raises OSError on failure.

Called by every other module of this room, by nobody else. Nothing is loaded before the first call, so that the module
imports on any platform.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct
import sys
from typing import Any, Final, NamedTuple

CLONE_NEWNS: Final = 0x00020000

AT_FDCWD: Final = -100
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

# By number because other platforms lack the name.
_O_PATH: Final = 0o10000000

# Calls that came after 2019 have one number on all architectures, statx has not.
_NR_STATX: Final = {"x86_64": 332, "i686": 383, "armv7l": 397, "ppc64le": 383, "s390x": 379}
_NR_STATX_GENERIC: Final = 291

FSCONFIG_SET_FLAG: Final = 0
FSCONFIG_SET_STRING: Final = 1

_STATMOUNT_FS_TYPE: Final = 0x20
_STATMOUNT: Final = struct.Struct("<8xQ20xI")  # what was answered, (...,) offset of the type
_MOUNT_ID_REQUEST: Final = struct.Struct("<IIQQ")
_OPEN_HOW: Final = struct.Struct("<QQQ")
_MOUNT_ATTR: Final = struct.Struct("<QQQQ")
_STATMOUNT_STRINGS: Final = 512  # where the string area of the answer begins
_STATX_SIZE: Final = 256
# mask, attributes, (links,) uid, gid, mode, inode, (size, blocks,) known attributes, (times, device,) device, mount id
_STATX: Final = struct.Struct("<I4xQ4xIIH2xQ16xQ72xIIQ")


# Made once: create_string_buffer, which makes the type of its size each time, takes four times as long.
_StatxBuffer: Final = ctypes.c_char * _STATX_SIZE
_StatmountBuffer: Final = ctypes.c_char * 1024

_ENCODING: Final = sys.getfilesystemencoding()
_ERRORS: Final = sys.getfilesystemencodeerrors()

_INT, _UINT, _TEXT, _SIZE = ctypes.c_int, ctypes.c_uint, ctypes.c_char_p, ctypes.c_size_t


class _Libc:
    """The C library's entry points, with argument types set once."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)

        def function(name: str, *arguments: type[Any]) -> Any:
            entry = library[name]
            entry.argtypes = arguments
            return entry

        def call(number: int, *arguments: type[Any]) -> Any:
            # Each lookup by index gives an entry of its own, so that every call keeps its own argument types.
            entry = function("syscall", ctypes.c_long, *arguments)
            entry.restype = ctypes.c_long
            return functools.partial(entry, number)

        self.mount = function("mount", _TEXT, _TEXT, _TEXT, ctypes.c_ulong, _TEXT)
        self.umount2 = function("umount2", _TEXT, _INT)
        self.unshare = function("unshare", _INT)
        statx_arguments = (_INT, _TEXT, _INT, _UINT, _TEXT)
        if hasattr(library, "statx"):
            self.statx = function("statx", *statx_arguments)
        else:  # older musl
            self.statx = call(_NR_STATX.get(os.uname().machine, _NR_STATX_GENERIC), *statx_arguments)
        self.openat2 = call(437, _INT, _TEXT, _TEXT, _SIZE)
        self.open_tree = call(428, _INT, _TEXT, _UINT)
        self.move_mount = call(429, _INT, _TEXT, _INT, _TEXT, _UINT)
        self.mount_setattr = call(442, _INT, _TEXT, _UINT, _TEXT, _SIZE)
        self.fsopen = call(430, _TEXT, _UINT)
        self.fsconfig = call(431, _INT, _UINT, _TEXT, _TEXT, _INT)
        self.statmount = call(457, _TEXT, _TEXT, _SIZE, _UINT)


@functools.cache
def _libc() -> _Libc:
    return _Libc()


def _failed(path: str | None = None) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), path)


def encode(text: str) -> bytes:
    """A path or option string as the kernel takes it.

    :raises ValueError: it holds a NUL, which the kernel would read as the end of a shorter string.
    """
    data = text.encode(_ENCODING, _ERRORS)  # a quarter of what os.fsencode costs
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
        raise _failed()


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
    buffer = _StatxBuffer()
    data = encode(path)
    while _libc().statx(dir_fd, data, flags, mask, buffer) != 0:
        error = _failed(path)
        if error.errno != errno.EINTR:
            raise error
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
    how = _OPEN_HOW.pack(flags | os.O_CLOEXEC, mode, resolve)
    data = encode(path)
    while (fd := _libc().openat2(dir_fd, data, how, _OPEN_HOW.size)) < 0:
        error = _failed(path)
        if error.errno != errno.EINTR:
            raise error
    return int(fd)


class OpenPath:
    """System call openat2 with O_PATH, for callers that look at many paths of which most are not there.

    It costs a third of :func:`openat2` then, since no error is made.

    :param resolve: RESOLVE flags.
    """

    __slots__ = ("_how",)

    def __init__(self, resolve: int) -> None:
        self._how = _OPEN_HOW.pack(_O_PATH | os.O_CLOEXEC, 0, resolve)

    def open(self, dir_fd: int, path: str) -> int:
        """The descriptor, or the negative number of the error."""
        data = encode(path)
        while (fd := _libc().openat2(dir_fd, data, self._how, _OPEN_HOW.size)) < 0:
            number = ctypes.get_errno()
            if number != errno.EINTR:
                return -number
        return int(fd)


def open_tree(dir_fd: int, path: str, flags: int) -> int:
    """System call open_tree (kernel 5.2): a descriptor of the place, or of a detached copy of its mount."""
    fd = _libc().open_tree(dir_fd, encode(path), flags | OPEN_TREE_CLOEXEC)
    if fd < 0:
        raise _failed(path)
    return int(fd)


def move_mount(from_fd: int, from_path: str, to_fd: int, to_path: str, flags: int) -> None:
    """System call move_mount (kernel 5.2)."""
    if _libc().move_mount(from_fd, encode(from_path), to_fd, encode(to_path), flags) != 0:
        raise _failed(to_path)


def mount_setattr(dir_fd: int, path: str, flags: int, attr_set: int, attr_clear: int, *, propagation: int = 0) -> None:
    """System call mount_setattr (kernel 5.12)."""
    attributes = _MOUNT_ATTR.pack(attr_set, attr_clear, propagation, 0)
    if _libc().mount_setattr(dir_fd, encode(path), flags, attributes, _MOUNT_ATTR.size) != 0:
        raise _failed(path)


def fsopen(fs_type: str) -> int:
    """System call fsopen (kernel 5.2): a descriptor on which a filesystem's options can be tried."""
    fd = _libc().fsopen(encode(fs_type), 1)
    if fd < 0:
        raise _failed()
    return int(fd)


def fsconfig(fd: int, command: int, key: str, value: str | None) -> None:
    """System call fsconfig: give the context one option."""
    if _libc().fsconfig(fd, command, encode(key), encode(value) if value is not None else None, 0) != 0:
        raise _failed()


def mount_fs_type(unique_mount_id: int) -> str:
    """The filesystem type of a mount by statmount(2) (kernel 6.8), without touching the mount.

    :param unique_mount_id: from ``statx`` with STATX_MNT_ID_UNIQUE.
    """
    request = _MOUNT_ID_REQUEST.pack(_MOUNT_ID_REQUEST.size, 0, unique_mount_id, _STATMOUNT_FS_TYPE)
    answer = _StatmountBuffer()
    if _libc().statmount(request, answer, len(answer), 0) != 0:
        raise _failed()
    raw = answer.raw
    got, offset = _STATMOUNT.unpack_from(raw)
    if not got & _STATMOUNT_FS_TYPE:
        return ""
    begin = _STATMOUNT_STRINGS + offset
    return raw[begin : raw.index(b"\0", begin)].decode("utf-8", "surrogateescape")
