"""Making and opening directories without following links at their last component."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

#: Flags to open a directory for reading: never through a link, never inherited by a subprocess.
DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_directories(path: str, mode: int = 0o750, *, new_parents: int = 0) -> bool:
    """Create the directory and its missing parents, all with ``mode`` (less the umask); success when it is there.

    Returns whether it was not.

    ``os.makedirs`` gives its mode to the last one only.

    :param new_parents: how many of its parents are probably missing too. They are made first then, which saves to find
        out of each that it is missing: that takes as long as to make it.
    :raises FileExistsError: something else is there.
    """
    missing = []
    current, made = path, False
    for _ in range(new_parents):
        missing.append(current)
        current = current.rstrip("/").rpartition("/")[0]
    while True:
        try:
            os.mkdir(current, mode)
            made = True
            break
        except FileExistsError:
            if not os.path.isdir(current):
                raise
            made = False
            break
        except FileNotFoundError:
            missing.append(current)
            current = current.rstrip("/").rpartition("/")[0]
            if not current:
                raise
    for directory in reversed(missing):
        try:
            os.mkdir(directory, mode)
            made = True
        except FileExistsError:
            if not os.path.isdir(directory):
                raise
            made = False
    return made


@contextmanager
def opened_directory(path: str, dir_fd: int | None = None) -> Iterator[int]:
    """A descriptor of the directory for the time of a ``with`` block.

    :raises NotADirectoryError: it is a link or anything else that is no directory.
    """
    fd = os.open(path, DIRECTORY_FLAGS, dir_fd=dir_fd)
    try:
        yield fd
    finally:
        os.close(fd)
