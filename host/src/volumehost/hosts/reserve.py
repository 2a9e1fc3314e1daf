"""Holds back some space below the root directory, so that volumes can be unmounted when its filesystem is full.

A volume that fills the filesystem would otherwise stand in the way of its own teardown, which has to write records.
Made by the commands that mount; spent by those that take volumes away.
"""

from __future__ import annotations

import contextlib
import logging
import os

logger = logging.getLogger(__name__)

#: Bytes held back: enough to open the store, mark pods in it, and write the journal anew.
RESERVE_BYTES = 512 << 10

#: Nothing is held back on a filesystem with less than this many bytes free.
_PLENTY = 16 * RESERVE_BYTES


def hold_reserve(root: str) -> None:
    """Make the reserve where there is none and space is plenty; that it cannot be made is no error."""
    path = _file_of(root)
    try:
        if os.path.lexists(path) or _free(root) < _PLENTY:
            return
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
        except OSError:
            os.unlink(path)
            raise
        finally:
            os.close(descriptor)
    except OSError as error:
        logger.debug("no space is held back in %s: %s", root, error)


def spend_reserve(root: str) -> None:
    """Give the reserve up when the filesystem is full. It is made again when there is space."""
    with contextlib.suppress(OSError):
        if _free(root) < RESERVE_BYTES:
            os.unlink(_file_of(root))
            logger.info("the filesystem of %s is full: what was held back for unmounting is used now", root)


def _file_of(root: str) -> str:
    return f"{root}/reserve"


def _free(root: str) -> int:
    filesystem = os.statvfs(root)
    return filesystem.f_bavail * filesystem.f_frsize
