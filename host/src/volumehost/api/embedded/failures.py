"""What SQLite reports, in the words of whoever must do something about it."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from volumehost.errors import StoreError

_HINTS = {
    "SQLITE_FULL": "free space, or files, on that filesystem; nothing was changed",
    "SQLITE_READONLY": "the file or its filesystem is read-only: make it writable, or choose another root directory",
    "SQLITE_CANTOPEN": "check that its directory exists and can be written by this user",
    "SQLITE_PERM": "run as the user who owns the file",
    "SQLITE_AUTH": "run as the user who owns the file",
    "SQLITE_BUSY": "another process keeps it locked: find it with fuser, or try again",
    "SQLITE_LOCKED": "another process keeps it locked: find it with fuser, or try again",
    "SQLITE_IOERR": "the disk reports errors or is full: see the kernel log",
    "SQLITE_PROTOCOL": "the filesystem does not lock files as it must: keep the root directory on a local disk",
    "SQLITE_NOLFS": "the filesystem cannot hold a file of that size",
    "SQLITE_TOOBIG": "the object is too large",
}
_SYSTEM_HINTS = {
    errno.ENOSPC: _HINTS["SQLITE_FULL"],
    errno.EDQUOT: _HINTS["SQLITE_FULL"],
    errno.EROFS: _HINTS["SQLITE_READONLY"],
    errno.EACCES: _HINTS["SQLITE_PERM"],
    errno.EPERM: _HINTS["SQLITE_PERM"],
    errno.ELOOP: "it is a symbolic link: put the file itself there",
    errno.ENOTDIR: _HINTS["SQLITE_CANTOPEN"],
    errno.EIO: _HINTS["SQLITE_IOERR"],
}
_DAMAGED = (
    "the file has been left as it is: stop every volumehost process, move it aside together with its -wal and -shm "
    "files, and start again; volumes that are mounted are found from disk. "
    "What can be saved from it, 'sqlite3 FILE .recover' prints"
)


@contextmanager
def store_errors(path: str, action: str) -> Iterator[None]:
    """Turn SQLite's and the system's errors into StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(path, action, error) from error
    except OSError as error:
        hint = _SYSTEM_HINTS.get(error.errno or 0, "")
        raise StoreError(f"{path}: {error.strerror or error}", action=action, subject=path, hint=hint) from error


def store_error(path: str, action: str, error: sqlite3.Error) -> StoreError:
    """The StoreError for one of SQLite's."""
    name = getattr(error, "sqlite_errorname", None) or ""
    # Extended codes refine the primary one: SQLITE_IOERR_WRITE, SQLITE_READONLY_DBMOVED.
    primary = "_".join(name.split("_")[:2])
    if primary in {"SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT"}:
        return StoreError(f"{path} is damaged: {error}", action=action, subject=path, hint=_DAMAGED)
    if primary in {"SQLITE_CANTOPEN", "SQLITE_IOERR"} and _is_full(path):  # SQLite does not say so itself
        reason = f"{path}: {error}: the filesystem is full"
        return StoreError(reason, action=action, subject=path, hint=_HINTS["SQLITE_FULL"])
    return StoreError(f"{path}: {error}", action=action, subject=path, hint=_HINTS.get(primary, ""))


def _is_full(path: str) -> bool:
    """Whether the filesystem has no space left, or no file. Some have no fixed number of files, and tell 0."""
    try:
        filesystem = os.statvfs(os.path.dirname(path))
    except OSError:
        return False
    return filesystem.f_bavail == 0 or (filesystem.f_files > 0 and filesystem.f_favail == 0)
