"""One generation of a payload on disk: writing it and comparing it, by descriptors and never through a link.

Used by the atomic writer alone. A generation is a directory that may lie in a volume which the workload can write to,
so nothing found in it is trusted.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress

from volumehost.sdk.directories import DIRECTORY_FLAGS
from volumehost.sdk.payload import FileProjection, parents
from volumehost.sdk.tree_walk import TreeWalk

#: Bits that applying a group may have added to a file after it was written (FSGRP-03).
OWNERSHIP_BITS = 0o660

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def write_generation(generation: int, payload: Mapping[str, FileProjection], *, sync: bool) -> None:
    """Write all files below the empty directory that the descriptor stands for (ATOMIC-11).

    Modes are exact whatever the umask. With ``sync`` everything is on disk when this returns.
    """
    for path, projection in payload.items():
        directory = _open_parent(generation, path, create=True)
        try:
            _write_file(directory, posixpath.basename(path), projection, sync=sync)
        finally:
            os.close(directory)
    if sync:
        _sync_directories(generation)


def matches(generation: int, payload: Mapping[str, FileProjection], *, ownership_applied: bool) -> bool:
    """Whether the generation holds exactly this payload: names, bytes, modes and owners.

    :param ownership_applied: group bits on top of a file's mode are not a difference then (ATOMIC-10, improved).
    """
    return not _has_others(generation, payload) and all(
        _same_file(generation, path, projection, ownership_applied) for path, projection in payload.items()
    )


def _open_parent(generation: int, path: str, *, create: bool) -> int:
    """A new descriptor of the directory that holds ``path``."""
    fd = os.open(".", DIRECTORY_FLAGS, dir_fd=generation)
    for name in path.split("/")[:-1]:
        try:
            if create:
                _make_directory(fd, name)
            below = os.open(name, DIRECTORY_FLAGS, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd


def _make_directory(dir_fd: int, name: str) -> None:
    with suppress(FileExistsError):  # made for an earlier file; opening it tells if it is anything else
        os.mkdir(name, dir_fd=dir_fd)


def _write_file(directory: int, name: str, projection: FileProjection, *, sync: bool) -> None:
    fd = os.open(name, _NEW_FILE, 0o600, dir_fd=directory)
    with os.fdopen(fd, "wb", buffering=0) as file:
        rest = memoryview(projection.data)
        while rest:
            rest = rest[file.write(rest) :]
        if projection.fs_user is not None:
            os.fchown(fd, projection.fs_user, -1)
        os.fchmod(fd, projection.mode)  # after the owner: a change of owner takes setuid away
        if sync:
            os.fsync(fd)


def _sync_directories(generation: int) -> None:
    def stop(_path: str, error: OSError) -> None:
        raise error

    TreeWalk(
        visit=lambda _dir_fd, _name, status: stat.S_ISDIR(status.st_mode), leave=_fsync_directory, failed=stop
    ).run(generation)


def _fsync_directory(fd: int) -> None:
    os.fsync(fd)


def _same_file(generation: int, path: str, wanted: FileProjection, ownership_applied: bool) -> bool:
    try:
        directory = _open_parent(generation, path, create=False)
    except OSError:
        return False  # a parent is missing, a link, or a file: anything but what was written
    try:
        fd = os.open(posixpath.basename(path), _OLD_FILE, dir_fd=directory)
    except OSError:
        return False
    finally:
        os.close(directory)
    with os.fdopen(fd, "rb", buffering=0) as file:
        status = os.fstat(fd)
        return (
            stat.S_ISREG(status.st_mode)
            and _same_mode(stat.S_IMODE(status.st_mode), wanted.mode, ownership_applied)
            and (wanted.fs_user is None or status.st_uid == wanted.fs_user)
            and status.st_size == len(wanted.data)
            and _read_exactly(file.read, status.st_size) == wanted.data
        )


def _same_mode(found: int, wanted: int, ownership_applied: bool) -> bool:
    if not ownership_applied:
        return found == wanted
    return found & wanted == wanted and found & ~wanted & ~OWNERSHIP_BITS == 0


def _read_exactly(read: Callable[[int], bytes], size: int) -> bytes:
    """At most ``size`` + 1 bytes, so that a file that grows meanwhile counts as different and not as endless."""
    chunks = []
    missing = size + 1
    while missing > 0 and (chunk := read(missing)):
        chunks.append(chunk)
        missing -= len(chunk)
    return b"".join(chunks)


class _FoundOther(Exception):  # noqa: N818 - a signal to end the walk, not an error
    """Something lies in the generation that the payload does not have."""


def _has_others(generation: int, payload: Mapping[str, FileProjection]) -> bool:
    expected = set(payload)
    for path in payload:
        expected.update(parents(path))

    def visit(_dir_fd: int, name: str, status: os.stat_result) -> bool:
        if walk.path(name) not in expected:
            raise _FoundOther
        return stat.S_ISDIR(status.st_mode)

    def unreadable(_path: str, _error: OSError) -> None:
        raise _FoundOther

    walk = TreeWalk(visit=visit, failed=unreadable)
    try:
        walk.run(generation)
    except _FoundOther:
        return True
    return False
