"""Holds a mounted filesystem still while its image is copied, and makes sure that it is let go whatever happens.

A frozen filesystem stays frozen when the process that froze it dies, and whoever writes to it hangs. So a small
program of its own waits beside us: when we die it thaws. Should it die as well, the next start does (``StagedVolume``
says so).
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from volumehost.errors import MountError

logger = logging.getLogger(__name__)

_FIFREEZE: Final = 0xC0045877
_FITHAW: Final = 0xC0045878
#: Ends at once when it is told to (a line comes), thaws when its input ends without one.
_GUARD: Final = 'read -r told && exit 0; exec fsfreeze --unfreeze "$0"'
_GUARD_SECONDS: Final = 10.0


@contextmanager
def frozen(mount_path: str) -> Iterator[None]:
    """Keep the filesystem mounted there still, all that was written on its device, for the time of a ``with`` block.

    :raises MountError: it cannot be frozen.
    """
    fd = os.open(mount_path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with _guarded(mount_path):
            _freeze(fd, mount_path)
            try:
                yield
            finally:
                _thaw(fd)
    finally:
        os.close(fd)


def thaw(mount_path: str) -> None:
    """Let go of a filesystem that a process which died may have left frozen; success when it is not frozen.

    :raises OSError: there is no such directory, or the kernel refuses.
    """
    fd = os.open(mount_path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _thaw(fd)
    finally:
        os.close(fd)


def _freeze(fd: int, mount_path: str) -> None:
    try:
        fcntl.ioctl(fd, _FIFREEZE, 0)
    except OSError as error:
        raise MountError(
            error.strerror or str(error),
            action=f"freeze the filesystem at {mount_path}",
            subject=mount_path,
            hint="somebody else has frozen it" if error.errno == errno.EBUSY else "",
            errno=error.errno,
        ) from error


def _thaw(fd: int) -> None:
    try:
        fcntl.ioctl(fd, _FITHAW, 0)
    except OSError as error:
        if error.errno != errno.EINVAL:  # it is not frozen
            raise


@contextmanager
def _guarded(mount_path: str) -> Iterator[None]:
    guard = subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, mount_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        try:
            guard.communicate(b"done\n", timeout=_GUARD_SECONDS)
        except subprocess.TimeoutExpired:
            logger.warning("the guard of the freeze of %s does not end and is killed", mount_path)
            guard.kill()
            guard.wait()
