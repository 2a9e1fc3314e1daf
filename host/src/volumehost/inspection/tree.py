"""Reads a directory tree that may be in use, hostile or broken, and changes nothing: not even a time of access.

Links are never followed and mounts never entered, so that nothing here can hang on a volume; what is mounted is seen
in the mount table. Every part of an inspection reads through it.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Final, Self

from volumehost.mount import syscalls
from volumehost.mount.deadline import DeadlineRunner
from volumehost.mount.places import ANSWER_SECONDS
from volumehost.mount.removal import open_comparing_mounts

#: Directories of the root that an administrator may have put on a disk of their own; a mount there is entered.
BASES: Final = ("pods", "plugins", "plugins_registry", "drivers")

#: Longest file that is read, in bytes: records are small.
MOST_BYTES: Final = 1 << 20

_NO_CROSSING: Final = syscalls.RESOLVE_NO_XDEV | syscalls.RESOLVE_NO_SYMLINKS
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLACE: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class EntryKind(StrEnum):
    """What is at a path."""

    MISSING = "missing"
    DIRECTORY = "directory"
    FILE = "file"
    LINK = "link"
    MOUNT = "mount"
    SOCKET = "socket"
    FIFO = "fifo"
    BLOCK_DEVICE = "block device"
    CHARACTER_DEVICE = "character device"
    UNREADABLE = "unreadable"


_KINDS: Final = {
    stat.S_IFDIR: EntryKind.DIRECTORY,
    stat.S_IFREG: EntryKind.FILE,
    stat.S_IFLNK: EntryKind.LINK,
    stat.S_IFSOCK: EntryKind.SOCKET,
    stat.S_IFIFO: EntryKind.FIFO,
    stat.S_IFBLK: EntryKind.BLOCK_DEVICE,
    stat.S_IFCHR: EntryKind.CHARACTER_DEVICE,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What is at a path. Of a mount nothing else is known; times are in seconds since the epoch."""

    kind: EntryKind
    size: int = 0
    changed_at: float = 0.0
    modified_at: float = 0.0
    inode: int = 0
    device: int = 0


class Tree:
    """The tree below one root directory, as a context manager. Paths are relative to the root, "" is the root itself.

    ``problems`` collects what could not be looked at: (path, why).

    :raises OSError: the root directory cannot be opened.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.problems: list[tuple[str, str]] = []
        self._bases: dict[str, int] = {}
        runner = DeadlineRunner()  # each may be a mount, and need not answer
        self._root_fd = _open_in_time(runner, root, None)
        for base in BASES:
            try:
                self._bases[base] = _open_in_time(runner, base, self._root_fd)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    self._problem(base, error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for descriptor in (self._root_fd, *self._bases.values()):
            os.close(descriptor)

    def path(self, relative: str) -> str:
        """The absolute path."""
        return f"{self.root}/{relative}" if relative else self.root

    def look(self, relative: str) -> Entry:
        """What is there; never a mount's own root, never through a link."""
        try:
            with self._place(relative) as descriptor:
                found = os.fstat(descriptor)
        except (FileNotFoundError, NotADirectoryError):
            return Entry(EntryKind.MISSING)
        except OSError as error:
            if error.errno == errno.EXDEV:
                return Entry(EntryKind.MOUNT)
            if error.errno == errno.ELOOP:
                return Entry(EntryKind.LINK)
            self._problem(relative, error)
            return Entry(EntryKind.UNREADABLE)
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), EntryKind.UNREADABLE)
        return Entry(kind, found.st_size, found.st_ctime, found.st_mtime, found.st_ino, found.st_dev)

    def names(self, relative: str, limit: int | None = None) -> list[str]:
        """The names in a directory, sorted, at most ``limit``; none where there is no directory of this filesystem."""
        try:
            descriptor = self._open(relative, _DIRECTORY)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV):
                self._problem(relative, error)
            return []
        try:
            with os.scandir(descriptor) as entries:
                return sorted(entry.name for entry in itertools.islice(entries, limit))
        except OSError as error:
            self._problem(relative, error)
            return []
        finally:
            os.close(descriptor)

    def read(self, relative: str) -> bytes:
        """The content of a regular file.

        :raises OSError: it is no regular file, or too long, or cannot be read; FileNotFoundError when there is none.
        """
        with self._place(relative) as place:
            if not stat.S_ISREG(os.fstat(place).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file", self.path(relative))
            descriptor = open_quietly(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES} bytes", self.path(relative))
        return data

    # --- inside -------------------------------------------------------------------------------------------------

    @contextmanager
    def _place(self, relative: str) -> Iterator[int]:
        descriptor = self._open(relative, _PLACE)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _open(self, relative: str, flags: int) -> int:
        first, _, rest = relative.partition("/")
        start = self._bases.get(first)
        if start is None:
            start, rest = self._root_fd, relative
        return _open_without_crossing(start, rest, flags)

    def _problem(self, relative: str, error: OSError) -> None:
        self.problems.append((self.path(relative), error.strerror or str(error)))


def _open_in_time(runner: DeadlineRunner, path: str, dir_fd: int | None) -> int:
    return runner.run(
        open_quietly, path, _DIRECTORY, dir_fd, timeout=ANSWER_SECONDS, what=f"open {path}", discard=os.close
    )


def open_quietly(path: str, flags: int, dir_fd: int | None = None) -> int:
    """Open without changing the time of the last access, which only the owner and root may ask for."""
    try:
        return os.open(path, flags | os.O_NOATIME, dir_fd=dir_fd)
    except PermissionError:
        return os.open(path, flags, dir_fd=dir_fd)


def _open_without_crossing(dir_fd: int, relative: str, flags: int) -> int:
    """Open what lies below a directory, neither following a link nor entering a mount on the way or at the end.

    :raises OSError: EXDEV for a mount, ELOOP for a link.
    """
    if not relative:
        return open_quietly(f"/proc/self/fd/{dir_fd}", flags & ~os.O_NOFOLLOW)
    quiet = 0 if flags & os.O_PATH else os.O_NOATIME
    try:
        return syscalls.openat2(dir_fd, relative, flags | quiet, _NO_CROSSING)
    except PermissionError:
        if quiet:
            return syscalls.openat2(dir_fd, relative, flags, _NO_CROSSING)
        raise
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
    return open_step_by_step(dir_fd, relative, flags)


def open_step_by_step(dir_fd: int, relative: str, flags: int) -> int:
    """For kernels before 5.6."""
    *above, last = relative.split("/")
    opened = os.dup(dir_fd)
    try:
        for name in above:
            below = open_comparing_mounts(opened, name)
            os.close(opened)
            opened = below
        place = os.open(last, _PLACE, dir_fd=opened)
        try:
            if stat.S_ISLNK(os.fstat(place).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), relative)
            if _mount_id(place) != _mount_id(opened):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), relative)
            if flags & os.O_PATH:
                return os.dup(place)
            return open_quietly(f"/proc/self/fd/{place}", flags & ~os.O_NOFOLLOW)
        finally:
            os.close(place)
    finally:
        os.close(opened)


def _mount_id(descriptor: int) -> int | None:
    return syscalls.statx(descriptor, "", syscalls.AT_EMPTY_PATH, syscalls.STATX_MNT_ID).mount_id
