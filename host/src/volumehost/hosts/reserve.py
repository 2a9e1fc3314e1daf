"""Holds back some space below the root directory, so that volumes can be unmounted when its filesystem is full.

A volume that fills the filesystem, with data or with files, would otherwise stand in the way of its own teardown, which
has to write records. Made by the agent and the commands that mount; spent by those that take volumes away.
"""

from __future__ import annotations

import contextlib
import logging
import os

logger = logging.getLogger(__name__)

#: Bytes held back: enough to open the store, mark pods in it, and write the journal anew.
RESERVE_BYTES = 512 << 10

#: Files (inodes) held back: those of the store's log, of sockets, and of records on their way to their names.
RESERVE_FILES = 16

#: Nothing is held back on a filesystem that has less than so many times that left.
_PLENTY = 16


def hold_reserve(root: str) -> None:
    """Make the reserve where there is none and space is plenty; that it cannot be made is no error."""
    directory = _directory_of(root)
    try:
        if os.path.lexists(directory) or _has_less_than(root, _PLENTY):
            return
        os.mkdir(directory, 0o700)
        try:
            _make_files(directory)
        except OSError:
            _remove(directory)
            raise
    except OSError as error:
        logger.debug("no space is held back in %s: %s", root, error)


def spend_reserve(root: str) -> None:
    """Give the reserve up when the filesystem is full. It is made again when there is space."""
    with contextlib.suppress(OSError):
        if _has_less_than(root, 1) and _remove(_directory_of(root)):
            logger.info("the filesystem of %s is full: what was held back for unmounting is used now", root)


def _make_files(directory: str) -> None:
    for number in range(RESERVE_FILES - 1):  # the directory is one itself
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(f"{directory}/{number}", flags, 0o600)
        try:
            if number == 0:
                os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
        finally:
            os.close(descriptor)


def _remove(directory: str) -> bool:
    """Remove the reserve, and nothing that stands in its place; whether there was one."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        for number in range(RESERVE_FILES):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(str(number), dir_fd=descriptor)
    finally:
        os.close(descriptor)
    os.rmdir(directory)
    return True


def _has_less_than(root: str, times: int) -> bool:
    """Whether less than so many reserves are free. Some filesystems have no fixed number of files, and tell 0."""
    filesystem = os.statvfs(root)
    free = filesystem.f_bavail * filesystem.f_frsize
    few_files = filesystem.f_files > 0 and filesystem.f_favail < times * RESERVE_FILES
    return free < times * RESERVE_BYTES or few_files


def _directory_of(root: str) -> str:
    return f"{root}/reserve"
