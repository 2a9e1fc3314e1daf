"""Removes directory trees without ever crossing a mount or following a link (RMALL rules, BR-62).

Used by plugins and the node for every directory that may have held a volume. Works by directory descriptors: a mount
is recognised before anything in it is touched, also a bind mount of the same filesystem.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from volumehost.errors import RemovalError, StillMountedError, VolumeHostError
from volumehost.mount import syscalls

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_LEVELS: Final = 64  # descriptors kept open at once; deeper trees reopen their parents
_NAMES_SHOWN: Final = 5


def remove_all_one_filesystem(path: str) -> None:
    """Remove the path and everything in it, files too, but stop in front of every mount (RMALL-01 to -03).

    What can be removed is removed, also after a failure. Success when the path does not exist.

    :raises StillMountedError: the path is a mount point, or mounts are left in the tree; ``subject`` is the first.
    :raises RemovalError: something else could not be removed; ``paths`` lists what.
    """
    _remove(path, files=True)


def remove_all_at(dir_fd: int, name: str, path: str) -> None:
    """The same for an entry of a directory that the caller holds open, which nobody can move from under it.

    :param path: what errors call the entry.
    """
    _remove_at(dir_fd, name, path, _Removal(files=True))


def remove_dirs_one_filesystem(path: str) -> None:
    """The same, but only directories are removed: files are kept, reported, and make the call fail (RMALL-04).

    The form for directories that may hold user data, the pods' ``volumes`` above all (RMALL-05).

    :raises StillMountedError: as above.
    :raises RemovalError: files are left, or something could not be removed.
    """
    _remove(path, files=False)


def remove_dirs_at(dir_fd: int, name: str, path: str) -> None:
    """The same for an entry of a directory that the caller holds open; see :func:`remove_all_at`."""
    _remove_at(dir_fd, name, path, _Removal(files=False))


def _remove_at(dir_fd: int, name: str, path: str, removal: _Removal) -> None:
    if name in {"", ".", ".."} or "/" in name:
        raise RemovalError("it does not name a directory entry", action=f"remove {path}", subject=path)
    removal.entry(dir_fd, name, path)
    removal.finish(path)


def _remove(path: str, *, files: bool) -> None:
    stripped = path.rstrip("/")
    name = stripped.rpartition("/")[2]
    if name in {"", ".", ".."}:
        raise RemovalError("it does not name a directory entry", action=f"remove {path}", subject=path)
    if _removed_at_once(stripped, files):
        return
    removal = _Removal(files)
    try:
        parent_fd = os.open(os.path.dirname(stripped) or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise RemovalError(error.strerror or str(error), action=f"remove {path}", subject=path) from error
    try:
        removal.entry(parent_fd, name, stripped)
    finally:
        os.close(parent_fd)
    removal.finish(path)


def _removed_at_once(path: str, files: bool) -> bool:
    """Whether it is gone by the plain calls, enough for a file or an empty directory.

    Neither of them follows a link at the end of the path, and both refuse what something is mounted on. Whatever they
    refuse is left to those who can tell why.
    """
    try:
        _remove_entry(path, None, files)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _remove_entry(name: str, dir_fd: int | None, files: bool) -> None:
    """Remove a file (with ``files``) or an empty directory."""
    if files:
        try:
            os.unlink(name, dir_fd=dir_fd)
        except IsADirectoryError:
            os.rmdir(name, dir_fd=dir_fd)
    else:
        os.rmdir(name, dir_fd=dir_fd)


@dataclass(slots=True)
class _Level:
    """A directory on the way down: its descriptor (None while closed), who it is, and what is still to be done."""

    path: str
    name: str
    names: Iterator[str]
    fd: int | None
    identity: tuple[int, int, int] | None = None


@dataclass(slots=True)
class _Removal:
    """One removal: how it treats files, and what it met."""

    files: bool
    mounts: list[str] = field(default_factory=list)
    kept_files: list[str] = field(default_factory=list)
    failures: list[tuple[str, OSError]] = field(default_factory=list)

    def entry(self, parent_fd: int, name: str, path: str) -> None:
        """Remove one entry of a directory, with what is in it."""
        level = self._try(parent_fd, name, path)
        if level is not None:
            self._walk(parent_fd, level)

    def finish(self, path: str) -> None:
        """Raise what is to be said at the end."""
        action = f"remove {path}"
        if self.mounts:
            error: VolumeHostError = StillMountedError(
                f"cannot delete directory {self.mounts[0]}: it is a mount point{_more(self.mounts)}",
                action=action,
                subject=self.mounts[0],
                hint="what is mounted there was left untouched; unmount it first",
                errno=errno.EBUSY,
            )
        elif self.kept_files:
            shown = ", ".join(self.kept_files[:_NAMES_SHOWN])
            error = RemovalError(
                f"it holds files, which were kept: {shown}{_more(self.kept_files, _NAMES_SHOWN)}",
                action=action,
                subject=path,
                hint="move them away if they matter, then remove them",
                paths=self.kept_files,
            )
        elif self.failures:
            first, failure = self.failures[0]
            error = RemovalError(
                f"{first}: {failure.strerror}{_more(self.failures)}",
                action=action,
                subject=path,
                paths=[name for name, _ in self.failures],
            )
            error.__cause__ = failure
        else:
            return
        raise error

    def _walk(self, parent_fd: int, top: _Level) -> None:
        """Depth first without recursion: a hostile tree can be deeper than any stack."""
        levels = [top]
        try:
            while levels:
                level = levels[-1]
                name = next(level.names, None)
                if name is not None:
                    below = self._try(_open_fd(level), name, f"{level.path}/{name}")
                    if below is not None:
                        levels.append(below)
                        if len(levels) > _OPEN_LEVELS:
                            _close_for_now(levels[-1 - _OPEN_LEVELS])
                    continue
                if not self._leave(levels, parent_fd):
                    return
        finally:
            for level in levels:
                _close(level)

    def _leave(self, levels: list[_Level], parent_fd: int) -> bool:
        """Remove the directory whose entries are done, and go up; False when the way up is lost."""
        level = levels.pop()
        above = levels[-1] if levels else None
        try:
            if above is not None and above.fd is None:
                _reopen_from_below(above, _open_fd(level))
        except OSError as error:
            self.failures.append((level.path, error))
            return False
        finally:
            _close(level)
        self._rmdir(parent_fd if above is None else _open_fd(above), level.name, level.path)
        return True

    def _rmdir(self, dir_fd: int, name: str, path: str) -> None:
        try:
            os.rmdir(name, dir_fd=dir_fd)
        except FileNotFoundError:
            return
        except OSError as error:
            self._failed(path, error)

    def _try(self, dir_fd: int, name: str, path: str) -> _Level | None:
        """Remove an entry at once if it can be; otherwise open it as the next level down."""
        try:
            _remove_entry(name, dir_fd, self.files)
        except FileNotFoundError:
            return None
        except NotADirectoryError as error:
            if self.files:  # swapped for a file between the two calls
                self._failed(path, error)
            else:
                self.kept_files.append(path)
            return None
        except OSError as error:
            return self._open_level(dir_fd, name, path, error)
        return None

    def _open_level(self, dir_fd: int, name: str, path: str, refusal: OSError) -> _Level | None:
        try:
            fd = open_without_crossing(dir_fd, name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.EXDEV:
                self.mounts.append(path)
            elif error.errno in {errno.ENOTDIR, errno.ELOOP}:
                self._failed(path, refusal)
            else:
                self._failed(path, error)
            return None
        try:
            names = iter(os.listdir(fd))
        except OSError as error:
            os.close(fd)
            self._failed(path, error)
            return None
        return _Level(path, name, names, fd)

    def _failed(self, path: str, error: OSError) -> None:
        if error.errno == errno.EBUSY:
            self.mounts.append(path)
        elif error.errno in {errno.ENOTEMPTY, errno.EEXIST} and (self.mounts or self.kept_files or self.failures):
            # The consequence of what is recorded already.
            return
        else:
            self.failures.append((path, error))


def open_without_crossing(dir_fd: int, name: str) -> int:
    """Open a directory by its name in another, neither following a link nor entering a mount.

    :raises OSError: EXDEV when something is mounted there, ELOOP or ENOTDIR for a link or a file.
    """
    try:
        return syscalls.openat2(dir_fd, name, _DIRECTORY, syscalls.RESOLVE_NO_XDEV | syscalls.RESOLVE_NO_SYMLINKS)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
    return open_comparing_mounts(dir_fd, name)


def open_comparing_mounts(dir_fd: int, name: str) -> int:
    """For kernels before 5.6: opening the place itself as a path only, and compare mounts before reading it."""
    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        if _mount_of(fd) != _mount_of(dir_fd):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        return os.open(".", _DIRECTORY, dir_fd=fd)
    finally:
        os.close(fd)


def _mount_of(fd: int) -> int:
    """The mount that a descriptor belongs to: by statx (kernel 5.8), else from what proc says of the descriptor."""
    mount_id = syscalls.statx(fd, "", syscalls.AT_EMPTY_PATH, syscalls.STATX_MNT_ID).mount_id
    if mount_id is not None:
        return mount_id
    with open(f"/proc/thread-self/fdinfo/{fd}", encoding="ascii") as file:
        for line in file:
            if line.startswith("mnt_id:"):
                return int(line[7:])
    raise OSError(errno.ENOSYS, "the kernel does not tell the mount of a descriptor")


def _identity(fd: int) -> tuple[int, int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino, _mount_of(fd)


def _open_fd(level: _Level) -> int:
    if level.fd is None:
        raise OSError(errno.EBADF, "the directory was closed")
    return level.fd


def _reopen_from_below(level: _Level, below_fd: int) -> None:
    fd = os.open("..", _DIRECTORY, dir_fd=below_fd)
    if _identity(fd) != level.identity:
        os.close(fd)
        raise OSError(errno.ESTALE, "the directory was moved while it was being removed")
    level.fd = fd


def _close_for_now(level: _Level) -> None:
    """Close it, and remember who it is, so that the way up leads to the very same directory."""
    if level.fd is not None:
        level.identity = _identity(level.fd)
        _close(level)


def _close(level: _Level) -> None:
    if level.fd is not None:
        os.close(level.fd)
        level.fd = None


def _more(items: list[str] | list[tuple[str, OSError]], shown: int = 1) -> str:
    return f" and {len(items) - shown} more" if len(items) > shown else ""
