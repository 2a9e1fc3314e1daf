"""The kernel's inotify, as little of it as the registration directory needs.

By ctypes: three system calls. ``watchfiles`` would bring threads of its own, a delay that gathers changes, and a watch
on the whole tree below, which is just what must not be watched here (BR-24).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

IN_MOVED_FROM = 0x00000040
IN_MOVED_TO = 0x00000080
IN_CREATE = 0x00000100
IN_DELETE = 0x00000200
IN_DELETE_SELF = 0x00000400
IN_MOVE_SELF = 0x00000800
IN_UNMOUNT = 0x00002000
IN_Q_OVERFLOW = 0x00004000
IN_IGNORED = 0x00008000
IN_ISDIR = 0x40000000

_IN_ONLYDIR = 0x01000000
_IN_DONT_FOLLOW = 0x02000000
_IN_EXCL_UNLINK = 0x04000000
_APPEARED_OR_LEFT = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF

_HEADER = struct.Struct("iIII")
_BUFFER_BYTES = 64 * 1024

#: Watches or instances of this user, or the memory for them, are used up; or the kernel has no inotify.
EXHAUSTED = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSYS})


@dataclass(frozen=True, slots=True)
class Event:
    """Something appeared in a watched directory or left it; ``name`` is "" where it is about the directory itself."""

    watch: int
    mask: int
    name: str


class Inotify:
    """One inotify instance. Not for several threads at once.

    :raises OSError: there is none to be had; ``errno`` is one of :data:`EXHAUSTED` as a rule.
    """

    def __init__(self) -> None:
        self.fd = _checked(_libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify_init1")

    def watch(self, directory: str, *, follow: bool = False) -> int:
        """Watch a directory for entries that appear or leave; the same directory has the same number each time.

        :param follow: the directory may be a link to one.
        :raises OSError: it cannot be watched.
        """
        mask = _APPEARED_OR_LEFT | _IN_ONLYDIR | _IN_EXCL_UNLINK | (0 if follow else _IN_DONT_FOLLOW)
        return _checked(_libc().inotify_add_watch(self.fd, os.fsencode(directory), ctypes.c_uint32(mask)), directory)

    def unwatch(self, watch: int) -> None:
        """Watch it no longer; fine when it is gone."""
        _libc().inotify_rm_watch(self.fd, watch)

    def read(self) -> Iterator[Event]:
        """The events that are there, without waiting for any.

        :raises OSError: the instance cannot be read.
        """
        while True:
            try:
                data = os.read(self.fd, _BUFFER_BYTES)
            except BlockingIOError:
                return
            position = 0
            while position < len(data):
                watch, mask, _, length = _HEADER.unpack_from(data, position)
                position += _HEADER.size
                yield Event(watch, mask, os.fsdecode(data[position : position + length].rstrip(b"\0")))
                position += length

    def close(self) -> None:
        """Give the instance back to the kernel."""
        os.close(self.fd)


@cache
def _libc() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "inotify_init1"):
        raise OSError(errno.ENOSYS, "this system has no inotify")
    return library


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result
