"""The files that hold the data of volumes and snapshots: made blank or as copies, grown, removed, looked at.

A blank image is formatted under another name (``formatting``): what is found under that name after a crash has never
been anybody's volume, and is made blank again.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from volumehost_loop_driver.copying import copy_contents, data_extents

logger = logging.getLogger(__name__)

_SUFFIX: Final = ".img"
_FORMATTING: Final = ".formatting"
_FLAGS: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK: Final = 512
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ImageStatus:
    """``size`` of an image and the space that it takes (``allocated``), in bytes."""

    size: int
    allocated: int


class Images:
    """The images in one directory.

    :param directory: exists.
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def path(self, key: str) -> str:
        """Where the image is."""
        return os.path.join(self.directory, key + _SUFFIX)

    def create(self, key: str, size: int, *, thick: bool) -> None:
        """Make a blank image, all of it allocated when ``thick``. Nothing is left when it fails.

        :raises OSError: ENOSPC, EFBIG and the like.
        """
        with self._new(key) as fd:
            _extend(fd, size, thick=thick)

    def copy(self, source: str, key: str, size: int, *, thick: bool) -> None:
        """Make an image with the contents of the file ``source``, then zeros up to ``size``.

        :raises OSError: as ``create``.
        """
        with self._new(key) as fd:
            source_fd = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if not copy_contents(source_fd, fd):
                    logger.debug("%s was copied block by block: the filesystem cannot share them", source)
            finally:
                os.close(source_fd)
            _extend(fd, size, thick=thick)

    @contextmanager
    def _new(self, key: str) -> Iterator[int]:
        fd = os.open(self.path(key), _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            yield fd
            # The directory is synced with the record, which comes next.
            os.fsync(fd)
        except BaseException:
            os.unlink(self.path(key))
            raise
        finally:
            os.close(fd)

    def grow(self, key: str, size: int, *, thick: bool) -> None:
        """Make the image ``size`` bytes long; never shorter than it is. Durable when this returns.

        :raises OSError: as ``create``; the image keeps its size then.
        """
        fd = os.open(self.path(key), _FLAGS)
        try:
            before = os.fstat(fd).st_size
            if before < size:
                try:
                    _extend(fd, size, thick=thick)
                except OSError:
                    os.ftruncate(fd, before)
                    raise
            os.fsync(fd)
        finally:
            os.close(fd)

    def remove(self, key: str) -> None:
        """Remove the image; success when it is gone."""
        for path in (self.path(key), self.path(key) + _FORMATTING):
            with suppress(FileNotFoundError):
                os.unlink(path)

    def status(self, key: str) -> ImageStatus | None:
        """Size and allocation, None when the image is missing."""
        for path in (self.path(key), self.path(key) + _FORMATTING):
            with suppress(FileNotFoundError):
                found = os.stat(path, follow_symlinks=False)
                return ImageStatus(found.st_size, found.st_blocks * _BLOCK)
        return None

    def can_bypass_cache(self, key: str) -> bool:
        """Whether the filesystem has direct I/O."""
        try:
            os.close(os.open(self.path(key), os.O_RDONLY | os.O_DIRECT | os.O_NOFOLLOW | os.O_CLOEXEC))
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return False
        return True

    def is_blank(self, key: str) -> bool:
        """Whether nothing but zeros is in it: then, and only then, may it be formatted.

        Costs one system call for an image that is all hole, and ends at the first byte that is no zero.

        :raises OSError: it cannot be read.
        """
        fd = os.open(self.path(key), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for begin, end in data_extents(fd, os.fstat(fd).st_size):
                for position in range(begin, end, _CHUNK):
                    if any(os.pread(fd, min(_CHUNK, end - position), position)):
                        return False
            return True
        finally:
            os.close(fd)

    @contextmanager
    def formatting(self, key: str, *, thick: bool) -> Iterator[str]:
        """Give a blank image to a program that formats it, under a name of its own; blank again when that fails."""
        path = self.path(key)
        aside = path + _FORMATTING
        size = os.stat(path, follow_symlinks=False).st_size
        os.rename(path, aside)
        try:
            yield aside
        except BaseException:
            _blank(aside, size, thick=thick)
            os.rename(aside, path)
            raise
        os.rename(aside, path)

    def settle(self, key: str, size: int, *, thick: bool) -> None:
        """Make an image whose formatting was cut short blank again; success when there is nothing to do.

        :raises FileNotFoundError: the image is gone.
        :raises OSError: as ``create``.
        """
        path = self.path(key)
        try:
            os.stat(path, follow_symlinks=False)
        except FileNotFoundError:
            aside = path + _FORMATTING
            _blank(aside, size, thick=thick)
            os.rename(aside, path)
            logger.warning("the formatting of %s was cut short, it is blank again", path)

    def remove_unknown(self, known: set[str]) -> list[str]:
        """Remove images of which there is no record, which an operation that was cut short has left; their names."""
        removed: list[str] = []
        for name in os.listdir(self.directory):
            key, dot, rest = name.partition(".")
            if key and f"{dot}{rest}" in {_SUFFIX, _SUFFIX + _FORMATTING} and key not in known:
                os.unlink(os.path.join(self.directory, name))
                removed.append(name)
        if removed:
            logger.warning("removed what unfinished operations have left: %s", ", ".join(sorted(removed)))
        return removed


def _extend(fd: int, size: int, *, thick: bool) -> None:
    os.ftruncate(fd, size)
    if thick and size:
        # From the beginning: what was copied has holes, too. Allocated blocks read as zeros.
        os.posix_fallocate(fd, 0, size)


def _blank(path: str, size: int, *, thick: bool) -> None:
    fd = os.open(path, _FLAGS)
    try:
        os.ftruncate(fd, 0)
        _extend(fd, size, thick=thick)
    finally:
        os.close(fd)
