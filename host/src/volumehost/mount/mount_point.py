"""Answers whether something is mounted exactly at a path, in a few microseconds and without waiting for the mount.

Used by the mounter, by the removal and clean-up of directories, and by the node's reconciler. The kernel's mount-root
attribute sees bind mounts too (MOUNT-30), however many mounts there are.
"""

from __future__ import annotations

import errno
import os

from volumehost.errors import CorruptedMountError
from volumehost.mount.corrupted import CORRUPTED_ERRNOS
from volumehost.mount.deadline import DeadlineExceededError
from volumehost.mount.mountinfo import read_mount_table
from volumehost.mount.places import Places, shared_places


def is_mount_point(path: str, places: Places | None = None) -> bool:
    """Whether something is mounted exactly there, links followed (MOUNT-31, -32).

    :raises FileNotFoundError: the path does not exist.
    :raises CorruptedMountError: it is a mount point, and the mount does not answer (MOUNT-41).
    :raises OSError: the path cannot be looked at for another reason.
    """
    places = places if places is not None else shared_places()
    try:
        place = places.check(path)
        if place.mount_root is None:
            return _is_in_table(path, places)
    except DeadlineExceededError as error:
        raise _corrupted(path, str(error), errno.ETIMEDOUT) from error
    except PermissionError:
        # A FUSE mount of another user refuses even root; the table needs no permission.
        return _is_in_table(path, places)
    except OSError as error:
        if error.errno in CORRUPTED_ERRNOS:
            raise _corrupted(path, os.strerror(error.errno), error.errno) from error
        raise
    return place.mount_root


def is_likely_not_mount_point(path: str, places: Places | None = None) -> bool:
    """The quick test, negated (MOUNT-30): misses bind mounts only on kernels before 5.8.

    :raises OSError: the path cannot be looked at.
    """
    places = places if places is not None else shared_places()
    place = places.look(path)
    if place.mount_root is not None:
        return not place.mount_root
    parent = places.look(os.path.join(path, ".."))
    return place.stat.device == parent.stat.device and place.stat.inode != parent.stat.inode


def _is_in_table(path: str, places: Places) -> bool:
    parent, name = os.path.split(path.rstrip("/"))
    try:
        resolved = places.resolve(path)
    except PermissionError:
        resolved = os.path.join(places.resolve(parent or "."), name)
    table = read_mount_table()
    # An old kernel marks a mount point whose directory a server has deleted (MOUNT-31).
    deleted = f"{resolved} (deleted)"
    return any(entry.path in {resolved, deleted} for entry in table)


def _corrupted(path: str, reason: str, number: int) -> CorruptedMountError:
    return CorruptedMountError(
        f"the mount does not answer: {reason}",
        action=f"look at the mount point {path}",
        subject=path,
        hint="its server or daemon is gone; it has to be unmounted and mounted again",
        errno=number,
    )
