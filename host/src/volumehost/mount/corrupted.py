"""Tells a dead mount (a FUSE daemon that was killed, a stale NFS handle) from a missing path and from other errors.

Called wherever a path is looked at that may carry a volume: "gone" and "broken" need opposite treatment (BR-64).
"""

from __future__ import annotations

import errno
from typing import Final

from volumehost.errors import CorruptedMountError, error_chain
from volumehost.mount.deadline import DeadlineExceededError

#: Error numbers with which a mount that is there does not serve (MOUNT-41). EACCES can also be plain lack of
#: permission; for root it means a FUSE mount of another user. EPERM does not belong here.
CORRUPTED_ERRNOS: Final = frozenset(
    {errno.ENOTCONN, errno.ESTALE, errno.EIO, errno.EACCES, errno.EHOSTDOWN, errno.EAGAIN, errno.ENODEV}
)


def is_corrupted_mount(error: BaseException | None) -> bool:
    """Whether the error, or what it was raised from, is one of a corrupted mount (MOUNT-41), a silent one included."""
    return any(
        isinstance(link, CorruptedMountError | DeadlineExceededError)
        or (isinstance(link, OSError) and link.errno in CORRUPTED_ERRNOS)
        for link in error_chain(error)
    )


#: Error numbers of a mount whose server or daemon is certainly gone: nobody can have anything to lose by an unmount.
DEAD_ERRNOS: Final = frozenset({errno.ENOTCONN, errno.ESTALE, errno.EIO, errno.EHOSTDOWN})


def is_dead_mount(error: BaseException | None) -> bool:
    """Whether the mount is certainly of no use any more; one that is silent, or refuses this user, may come back."""
    return any(
        isinstance(link, CorruptedMountError | OSError) and link.errno in DEAD_ERRNOS for link in error_chain(error)
    )
