"""Unmounts a mount point and removes its directory, the last step of every teardown (MOUNT-50 to -56).

Called by plugins and by the node's clean-up of orphans. Never removes recursively: what was written below a mount
point after the unmount is kept and reported (BR-70).
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Callable
from typing import Final

from volumehost.errors import CorruptedMountError, MountError, RemovalError, StillMountedError
from volumehost.host_services import MountInterface
from volumehost.mount.corrupted import is_corrupted_mount
from volumehost.mount.places import Places, shared_places

logger = logging.getLogger(__name__)

_NAMES_SHOWN: Final = 5


def cleanup_mount_point(path: str, mounter: MountInterface, extensive: bool = False) -> None:
    """Unmount the path if something is mounted there, then remove the file or empty directory.

    Success when the path does not exist. One layer of stacked mounts goes per call (MOUNT-54).

    :param extensive: test thoroughly whether it is a mount point, else quickly.
    :raises UnmountError: it cannot be unmounted; the path stays.
    :raises StillMountedError: another mount is there after the unmount.
    :raises RemovalError: the directory is not empty; ``paths`` names what is in it.
    """
    _cleanup(path, mounter, extensive, mounter.unmount)


def cleanup_mount_point_with_force(
    path: str, mounter: MountInterface, extensive: bool = False, *, timeout: float
) -> None:
    """The same, unmounting with force when that takes longer than ``timeout`` seconds (MOUNT-55)."""

    def unmount(target: str) -> None:
        mounter.unmount_with_force(target, timeout=timeout)

    _cleanup(path, mounter, extensive, unmount)


def _cleanup(path: str, mounter: MountInterface, extensive: bool, unmount: Callable[[str], None]) -> None:
    places = shared_places()
    try:
        if stat.S_ISLNK(places.look(path, follow=False).stat.mode):
            # What a link leads to is not ours to unmount.
            _remove(path, places)
            return
        # Where a test can be skipped nothing is asked of the mount: one that hangs would hold the question, and with
        # it the mount.
        known = mounter.can_safely_skip_mount_point_check() or _is_corrupted(path, places)
    except (FileNotFoundError, NotADirectoryError):
        logger.warning("nothing to clean up, the path does not exist: %s", path)
        return
    except OSError as error:
        if not is_corrupted_mount(error):
            raise _checking_failed(path, error) from error
        known = True
    if known:
        unmount(path)
        _remove(path, places)
    elif not _is_mounted(path, mounter, extensive):
        _remove(path, places)
    else:
        unmount(path)
        if _is_mounted(path, mounter, extensive):
            raise StillMountedError(
                f"failed to cleanup mount point {path}",
                action=f"clean up the mount point {path}",
                subject=path,
                hint="something else is mounted there too; clean up again",
            )
        _remove(path, places)


def _is_corrupted(path: str, places: Places) -> bool:
    try:
        places.check(path)
    except OSError as error:
        if is_corrupted_mount(error):
            return True
        raise
    return False


def _checking_failed(path: str, error: OSError) -> MountError:
    return MountError(
        f"Error checking path: {error.strerror or error}",
        action=f"clean up the mount point {path}",
        subject=path,
        errno=error.errno,
    )


def _is_mounted(path: str, mounter: MountInterface, extensive: bool) -> bool:
    try:
        return mounter.is_mount_point(path) if extensive else not mounter.is_likely_not_mount_point(path)
    except FileNotFoundError:
        return False
    except CorruptedMountError:
        return True


def _remove(path: str, places: Places) -> None:
    try:
        if stat.S_ISDIR(places.look(path, follow=False).stat.mode):
            os.rmdir(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _removal_error(path, error) from error


def _removal_error(path: str, error: OSError) -> MountError | RemovalError:
    action = f"remove the mount point {path}"
    if error.errno == errno.EBUSY:
        return StillMountedError(
            "something is still mounted there", action=action, subject=path, hint="unmount it", errno=error.errno
        )
    if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
        return RemovalError(error.strerror or str(error), action=action, subject=path, paths=[path])
    with os.scandir(path) as entries:
        names = sorted(entry.path for entry in entries)
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return RemovalError(
        f"it is not empty, what is in it was kept: {', '.join(names[:_NAMES_SHOWN])}{more}",
        action=action,
        subject=path,
        hint="it was written while nothing was mounted there; move it away if it matters, then remove it",
        paths=names,
    )
