"""Removing what is left of a mount, and nothing else (CSI-TDN-05, -06, BR-35).

Only single, empty things are removed: an empty directory, an empty file, a link. The kernel itself refuses to remove
what something is mounted on, so no look before is needed that could be out of date.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from typing import TYPE_CHECKING

from volumehost.errors import RemovalError, StillMountedError, VolumeHostError
from volumehost_csi import vol_data

if TYPE_CHECKING:
    from volumehost.host_services import MountInterface

logger = logging.getLogger(__name__)


def remove_mount(target: str) -> None:
    """Remove the target, then the record beside it, then their directory; what is gone already is fine.

    :raises StillMountedError: something is mounted at the target; nothing was removed.
    :raises RemovalError: something is not empty, or cannot be removed; it was kept, and what comes after it.
    """
    remove_target(target)
    directory = os.path.dirname(target)
    try:
        vol_data.remove(directory)
        vol_data.remove_directory(directory)
    except OSError as error:
        raise _removal_error(directory, error) from error


def remove_target(path: str) -> None:
    """Remove an empty directory, an empty file or a link.

    :raises StillMountedError: something is mounted there.
    :raises RemovalError: it is not empty.
    """
    try:
        try:
            os.rmdir(path)
        except NotADirectoryError:
            found = os.lstat(path)
            if stat.S_ISREG(found.st_mode) and found.st_size:
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path) from None
            os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise StillMountedError(
                "something is still mounted there",
                action=f"removing {path}",
                subject=path,
                hint="the CSI driver said that it is unmounted; see what mounted it, and unmount it by hand",
                errno=error.errno,
            ) from error
        raise _removal_error(path, error) from error


def _removal_error(path: str, error: OSError) -> RemovalError:
    action = f"removing {path}"
    if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
        return RemovalError(error.strerror or str(error), action=action, subject=path, paths=[path])
    return RemovalError(
        "it is not empty, what is in it was kept",
        action=action,
        subject=path,
        paths=[path],
        hint="it was written while nothing was mounted there; move it away if it matters, then remove it",
    )


def clean_up(target: str) -> None:
    """Take away what a call that certainly failed left; what cannot go now goes at teardown."""
    try:
        remove_mount(target)
    except VolumeHostError as error:
        logger.warning("cleaning up after a mount that failed: %s", error)


def is_mounted(mounter: MountInterface, path: str) -> bool:
    """Whether something is mounted there; a mount that does not answer is one."""
    try:
        return not mounter.is_likely_not_mount_point(path)
    except FileNotFoundError:
        return False
    except (OSError, VolumeHostError):
        return True
