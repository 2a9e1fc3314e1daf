"""Puts a directory on a shared mount, so that what is mounted below it later reaches containers that run already.

Called by ``hostutil`` for the root directory of a node's agent. Volumes that are mounted below it by then come along.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from volumehost.errors import MountError
from volumehost.host_services import MountInterface, MountPoint
from volumehost.mount import syscalls
from volumehost.mount.refs import find_containing_mount

logger = logging.getLogger(__name__)


def make_rshared(path: str, resolved: str, mounter: MountInterface) -> None:
    """Bind the directory on itself and share it, unless it is on a shared mount (HOSTUTIL-08, -09).

    The bind would hide what is mounted below: it takes copies along, and the originals, which nobody could reach any
    more to unmount them, are taken away.

    :param path: for messages; ``resolved`` is the same without links.
    :raises MountError: it cannot be bound on itself or made shared; the bind is undone then.
    """
    table = mounter.list_mounts()
    containing = find_containing_mount(resolved, table)
    if containing.shared:
        return
    with _opened(resolved) as old:
        try:
            mounter.mount(resolved, resolved, "", ["rbind"], systemd=False)
        except MountError as error:
            raise MountError(
                f"failed to bind-mount {path}: {error.reason}", action=f"make {path} shared", subject=path
            ) from error
        try:
            mounter.mount("", resolved, "", ["rshared"], systemd=False)
        except MountError as error:
            _undo(mounter, {entry.mount_id for entry in table})
            raise MountError(
                f"failed to make {path} rshared: {error.reason}", action=f"make {path} shared", subject=path
            ) from error
        _take_away(old, resolved, _below(containing, resolved, table), mounter.list_mounts())


@contextmanager
def _opened(directory: str) -> Iterator[int]:
    """The directory in the mount that it is in now, whatever is mounted over it."""
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _below(containing: MountPoint, directory: str, table: Sequence[MountPoint]) -> list[MountPoint]:
    """What is mounted below the directory, each after the one that it is mounted in."""
    found: list[MountPoint] = []
    known = {containing.mount_id}
    waiting = [entry for entry in table if entry.path.startswith(f"{directory}/")]
    while True:
        level = [entry for entry in waiting if entry.parent_id in known and entry.mount_id not in known]
        if not level:
            return found
        found += level
        known.update(entry.mount_id for entry in level)


def _take_away(old: int, directory: str, originals: Sequence[MountPoint], table: Sequence[MountPoint]) -> None:
    """Unmount the hidden originals of which there are copies, from the innermost on."""
    copied = {(entry.path, entry.root, entry.major, entry.minor) for entry in table if entry.shared}
    for entry in reversed(originals):
        if (entry.path, entry.root, entry.major, entry.minor) not in copied:
            logger.warning("the mount at %s could not be shared and is hidden now", entry.path)
            continue
        place = f"/proc/thread-self/fd/{old}/{entry.path.removeprefix(directory + '/')}"
        try:
            syscalls.umount2(place, syscalls.MNT_DETACH | syscalls.UMOUNT_NOFOLLOW)
        except OSError as error:
            logger.warning("the former mount at %s stays, hidden by its shared copy: %s", entry.path, error)


def _undo(mounter: MountInterface, before: set[int]) -> None:
    """Unmount what was not there before, from the innermost on."""
    for entry in reversed([entry for entry in mounter.list_mounts() if entry.mount_id not in before]):
        try:
            mounter.unmount(entry.path)
        except MountError as error:
            logger.warning("the bind at %s stays: %s", entry.path, error)
