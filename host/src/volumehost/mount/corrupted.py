"""Tells a dead mount (a FUSE daemon that was killed, a stale NFS handle) from a missing path and from other errors.

Called wherever a path is looked at that may carry a volume: "gone" and "broken" need opposite treatment (BR-64).
"""

from __future__ import annotations

import errno
import os
from typing import Final

#: Error numbers with which a mount that is there does not serve (MOUNT-41). EACCES can also be plain lack of
#: permission; for root it means a FUSE mount of another user. EPERM does not belong here.
CORRUPTED_ERRNOS: Final = frozenset(
    {errno.ENOTCONN, errno.ESTALE, errno.EIO, errno.EACCES, errno.EHOSTDOWN, errno.EAGAIN, errno.ENODEV}
)


def is_corrupted_mount(error: BaseException | None) -> bool:
    """Whether the error, or what it was raised from, is one of a corrupted mount (MOUNT-41)."""
    seen = 0
    while error is not None and seen < 8:
        number = getattr(error, "errno", None)
        if isinstance(error, OSError) and error.errno in CORRUPTED_ERRNOS:
            return True
        if not isinstance(error, OSError) and number in CORRUPTED_ERRNOS:
            return True
        error, seen = error.__cause__, seen + 1
    return False


def path_exists(path: str) -> bool:
    """Whether the path exists, links followed (MOUNT-40).

    :raises OSError: it is there but cannot be looked at: one of CORRUPTED_ERRNOS when it is a dead mount, ESTALE
        also where the server says "not found" for something that is still reachable (seen on CIFS).
    """
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        if os.access(path, os.F_OK):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path) from None
        return False
    return True
