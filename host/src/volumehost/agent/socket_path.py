"""A way to a unix socket whose path is longer than the kernel takes: through a descriptor of its directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: Longest path of a unix socket, in bytes, without the NUL.
LONGEST_PATH: Final = 107


@contextmanager
def reachable_path(path: str) -> Iterator[str]:
    """A path by which the socket can be bound or connected to while the block runs.

    :raises OSError: its directory cannot be opened.
    """
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield path
        return
    directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{os.path.basename(path)}"
    finally:
        os.close(directory)
