"""Ways in which a file rots, and the snapshot of a root directory from which it is made whole again."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import random
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from volumehost.mount import syscalls
from volumehost.mount.mountinfo import read_mount_table

#: What stands for a name in a class of files: a uid, a hash, a number.
_VARIABLE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{16,64}|\d+")
_FS_IOC_GETFLAGS, _FS_IOC_SETFLAGS = 0x80086601, 0x40086602
_IMMUTABLE = 0x10
VICTIM = b"belongs to somebody else\n"


@dataclass(frozen=True)
class Kept:
    """One entry of a directory tree; ``content`` of a file, ``target`` of a link."""

    mode: int
    content: bytes = b""
    target: str = ""


class Snapshot:
    """All small files, links and directories below some, not below mounts; made whole again by :meth:`restore`.

    :param skip: paths that are left alone: users' data, and what grows as it likes.
    """

    def __init__(self, roots: Sequence[str], skip: Callable[[str], bool]) -> None:
        self._roots = roots
        self._skip = skip
        self.entries = dict(self._read())

    def _read(self) -> Iterator[tuple[str, Kept]]:
        mounted = {mount.path for mount in read_mount_table()}
        stack = [*self._roots]
        while stack:
            directory = stack.pop()
            for name in os.listdir(directory):
                path = f"{directory}/{name}"
                status = os.lstat(path)
                if path in mounted or self._skip(path) or stat.S_ISSOCK(status.st_mode):
                    continue
                if stat.S_ISLNK(status.st_mode):
                    yield path, Kept(status.st_mode, target=os.readlink(path))
                elif stat.S_ISREG(status.st_mode):
                    with open(path, "rb") as file:
                        yield path, Kept(status.st_mode, file.read())
                elif stat.S_ISDIR(status.st_mode):
                    yield path, Kept(status.st_mode)
                    stack.append(path)

    def files(self) -> dict[str, str]:
        """One path for each class of files: those whose paths differ in uids, hashes and numbers only."""
        found: dict[str, str] = {}
        for path, kept in self.entries.items():
            if stat.S_ISREG(kept.mode):
                root = next(root for root in self._roots if path.startswith(f"{root}/"))
                found[_VARIABLE.sub("*", os.path.relpath(path, os.path.dirname(root)))] = path
        return found

    def restore(self) -> None:
        """Make everything what it was. Nobody may be using it."""
        now = dict(self._read())
        for path in sorted(now, reverse=True):
            if path not in self.entries or stat.S_IFMT(now[path].mode) != stat.S_IFMT(self.entries[path].mode):
                _remove(path)
        for path, kept in sorted(self.entries.items()):
            if now.get(path) == kept:
                continue
            if stat.S_ISDIR(kept.mode):
                os.makedirs(path, exist_ok=True)
            elif stat.S_ISLNK(kept.mode):
                _remove(path)
                os.symlink(kept.target, path)
            else:
                _remove(path)
                _write(path, kept.content, stat.S_IMODE(kept.mode))


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        set_immutable(path, on=False)
        os.unlink(path)


def _write(path: str, content: bytes, mode: int = 0o600) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


# --- ways to rot ----------------------------------------------------------------------------------------------------

Rot = Callable[[str, bytes, str, random.Random], None]


def _newer(path: str, content: bytes, _victim: str, _random: random.Random) -> None:
    """As a later program would have written it."""
    more = {"version": 999, "formatVersion": "v99", "kindOfFuture": {"unknown": ["field"]}}
    try:
        found = json.loads(content)
    except ValueError:
        _write(path, content.replace(b'"format":1', b'"format":999').replace(b'"version":1', b'"version":999') + b"\n")
        return
    _write(path, json.dumps({**found, **more} if isinstance(found, dict) else [found, more]).encode())


def _as_directory(path: str, _content: bytes, _victim: str, _random: random.Random) -> None:
    os.unlink(path)
    os.mkdir(path)


def _as_link(path: str, _content: bytes, victim: str, _random: random.Random) -> None:
    os.unlink(path)
    os.symlink(victim, path)


def _to_nowhere(path: str, _content: bytes, _victim: str, _random: random.Random) -> None:
    os.unlink(path)
    os.symlink("/nonexistent/file", path)


def _unreadable(path: str, _content: bytes, _victim: str, _random: random.Random) -> None:
    """Every read fails with EIO, as of a process's memory at address 0."""
    syscalls.mount("/proc/self/mem", path, "", syscalls.MS_BIND, "")


ROTS: Mapping[str, Rot] = {
    "empty": lambda path, content, victim, chance: _write(path, b""),
    "cut in half": lambda path, content, victim, chance: _write(path, content[: len(content) // 2]),
    "garbage": lambda path, content, victim, chance: _write(path, chance.randbytes(max(64, len(content)))),
    "another type": lambda path, content, victim, chance: _write(path, b"[]"),
    "newer version": _newer,
    "gone": lambda path, content, victim, chance: os.unlink(path),
    "a directory": _as_directory,
    "a link to another's file": _as_link,
    "a link to nowhere": _to_nowhere,
    "cannot be changed": lambda path, content, victim, chance: set_immutable(path, on=True),
    "cannot be read": _unreadable,
}


def whole_again(path: str) -> None:
    """Take away what a snapshot cannot: a mount, a mark that forbids changes."""
    while any(mount.path == path for mount in read_mount_table()):
        syscalls.umount2(path, syscalls.MNT_DETACH)
    if os.path.isfile(path) and not os.path.islink(path):
        set_immutable(path, on=False)


def set_immutable(path: str, *, on: bool) -> None:
    """``chattr +i`` or ``-i``; does nothing on filesystems that do not have it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    try:
        flags = ctypes.c_long()
        fcntl.ioctl(descriptor, _FS_IOC_GETFLAGS, flags)
        flags.value = flags.value | _IMMUTABLE if on else flags.value & ~_IMMUTABLE
        fcntl.ioctl(descriptor, _FS_IOC_SETFLAGS, flags)
    except OSError:
        return
    finally:
        os.close(descriptor)
