"""The places in pods' directories where volumes are shown: made before mounting, removed after it (CSI-WIRE-18).

Paths come from outside. What somebody else has put there is neither covered nor removed.
"""

from __future__ import annotations

import os
import stat

from volumehost.errors import RemovalError
from volumehost.host_services import MountInterface
from volumehost.mount.cleanup import cleanup_mount_point
from volumehost_loop_driver.errors import FailedPreconditionError


def make_target(target: str, mounter: MountInterface, *, directory: bool, action: str) -> None:
    """Make the directory, or the file for a device, to mount on; an empty one that is there serves.

    :raises FailedPreconditionError: something else is there, or mounted there, or its parent is missing.
    """
    try:
        if directory:
            os.mkdir(target, 0o750)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        _check_free(target, mounter, directory=directory, action=action)
    except FileNotFoundError as error:
        raise FailedPreconditionError(
            "the directory of the target does not exist", action=action, subject=target, hint="create it"
        ) from error


def _check_free(target: str, mounter: MountInterface, *, directory: bool, action: str) -> None:
    kind = stat.S_ISDIR if directory else stat.S_ISREG
    problem = hint = ""
    if not kind(os.lstat(target).st_mode):
        problem, hint = f"the target is not {'a directory' if directory else 'a file'}", "remove it"
    elif mounter.is_mount_point(target):
        problem, hint = "something else is mounted at the target", "unmount it"
    elif not _is_empty(target):
        problem, hint = "the target is not empty, and what is in it would be hidden", "move it away"
    if problem:
        raise FailedPreconditionError(problem, action=action, subject=target, hint=hint)


def remove_target(target: str, mounter: MountInterface) -> None:
    """Unmount what is there, then remove the empty directory or file; success when there is nothing.

    :raises RemovalError: there is something in it that was written while nothing was mounted there (BR-70).
    :raises UnmountError: it is busy.
    """
    if not os.path.lexists(target):
        return
    if os.path.islink(target):
        raise RemovalError(
            "it is a symbolic link", action=f"remove the target {target}", subject=target, paths=[target]
        )
    if mounter.is_mount_point(target):
        mounter.unmount(target)
    if not os.path.isdir(target) and not _is_empty(target):
        raise RemovalError(
            "it is a file with something in it, which was kept",
            action=f"remove the target {target}",
            subject=target,
            hint="move it away",
            paths=[target],
        )
    cleanup_mount_point(target, mounter)


def _is_empty(path: str) -> bool:
    found = os.lstat(path)
    if stat.S_ISDIR(found.st_mode):
        return not os.listdir(path)
    return stat.S_ISREG(found.st_mode) and found.st_size == 0
