"""Giving a volume to a pod's group (fsGroup): for plugins, after their content is in place (FSGRP rules).

Everything is done through descriptors: a container that shares the volume can swap any entry for a link while this
runs, and nothing outside of the volume changes.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from volumehost.errors import OperationStoppedError, OwnershipError, VolumeHostError
from volumehost.sdk.directories import DIRECTORY_FLAGS
from volumehost.sdk.mount_identity import mount_id_of_fd
from volumehost.sdk.ownership_progress import OwnershipProgress
from volumehost.sdk.tree_walk import TreeWalk

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.host_services import EventRecorder
    from volumehost.volumes import Attributes, Mounter, MounterArgs

logger = logging.getLogger(__name__)

ON_ROOT_MISMATCH = "OnRootMismatch"
ALWAYS = "Always"

_PATH_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_WRITE_BITS = 0o660
_READ_ONLY_BITS = 0o440
_DIRECTORY_BITS = stat.S_ISGID | 0o110


class HasAttributes(Protocol):
    """What is needed of a mounter: whether its volume is read-only."""

    def get_attributes(self) -> Attributes:
        """Attributes of the volume."""
        ...


@dataclass(frozen=True, slots=True)
class OwnershipReport:
    """What was done. ``failed`` entries refused the change; each of the first few is in the log.

    ``processed`` counts every entry that was looked at, the root included; ``mounts_skipped`` are directories below
    on which something else is mounted: that is not the volume's content.
    """

    processed: int = 0
    changed: int = 0
    failed: int = 0
    mounts_skipped: int = 0


def set_volume_ownership(
    mounter: HasAttributes,
    directory: str,
    fs_group: int | None,
    policy: str | None = None,
    on_complete: Callable[[Exception | None], None] | None = None,
    *,
    pod: Pod | None = None,
    recorder: EventRecorder | None = None,
    between: Callable[[int, int], object] | None = None,
) -> OwnershipReport:
    """Make everything below ``directory`` belong to the group and usable by it; owners stay (FSGRP-01 to -12).

    Bits are only ever added: 0660 (0440 for a read-only volume), and setgid with 0110 on directories. Children come
    before their parent and the root is last, so that a root that matches says that all below was done.

    :param policy: ``OnRootMismatch`` leaves the tree alone when its root is right already; anything else walks.
    :param on_complete: called with the walk's error or None, when there was a walk.
    :param pod: with ``recorder``, for events on a walk that takes longer than 30 seconds.
    :param between: called before each entry with how many were processed so far, and how many of those refused. An
        :class:`~volumehost.errors.OperationStoppedError` from it ends the walk: the root, which comes last, is not
        reached then, so that the next walk does all of it again.
    :raises OwnershipError: a directory could not be read. Entries that refuse are counted and logged instead.
    :raises OperationStoppedError: from ``between``.
    """
    if fs_group is None:
        return OwnershipReport()
    read_only = mounter.get_attributes().read_only
    if policy == ON_ROOT_MISMATCH and not needs_ownership_change(directory, fs_group, read_only=read_only):
        logger.debug("the root of %s has the right ownership: leaving the rest alone", directory)
        return OwnershipReport()
    walk = _OwnershipWalk(directory, fs_group, read_only, between)
    error: Exception | None = None
    try:
        with OwnershipProgress(pod, recorder, directory, lambda: walk.processed):
            return walk.run()
    except Exception as caught:
        error = caught
        raise
    finally:
        if on_complete is not None:
            on_complete(error)


def apply_ownership(
    mounter: Mounter,
    directory: str,
    args: MounterArgs,
    *,
    pod: Pod | None = None,
    on_complete: Callable[[Exception | None], None] | None = None,
) -> None:
    """Give what is below ``directory`` to the pod's group, as the arguments of ``set_up`` tell.

    The host does it where it offers to (``volume_ownership_applicator``): then status tells how far it is, it is
    counted, and it ends when the pod goes. Otherwise it is done here: see :func:`set_volume_ownership`.

    :param pod: for events on a walk that takes long.
    :param on_complete: called with the error or None of a walk that is made here.
    :raises OwnershipError: a directory could not be read.
    :raises OperationStoppedError: nobody waits for it any more. Let it through, or raise another error from it.
    """
    if args.fs_group is None:
        return
    if args.volume_ownership_applicator is not None:
        args.volume_ownership_applicator(mounter, directory, args)
        return
    set_volume_ownership(
        mounter,
        directory,
        args.fs_group,
        args.fs_group_change_policy,
        on_complete,
        pod=pod,
        recorder=args.recorder,
    )


def needs_ownership_change(directory: str, fs_group: int, *, read_only: bool) -> bool:
    """Whether the root of a volume does not have the group, the bits and setgid yet (FSGRP-05)."""
    try:
        status = os.lstat(directory)
    except OSError:
        return True
    wanted = _bits(status.st_mode, read_only)
    if not stat.S_ISDIR(status.st_mode):
        return True
    return status.st_gid != fs_group or status.st_mode & wanted != wanted


def _bits(mode: int, read_only: bool) -> int:
    bits = _READ_ONLY_BITS if read_only else _READ_WRITE_BITS
    return bits | _DIRECTORY_BITS if stat.S_ISDIR(mode) else bits


class _OwnershipWalk:
    """Applies the group to one tree."""

    def __init__(
        self, directory: str, fs_group: int, read_only: bool, between: Callable[[int, int], object] | None = None
    ) -> None:
        self._between = between
        self._directory = directory
        self._group = fs_group
        self._read_only = read_only
        self._mount_id = -1
        self.processed = 0
        self._changed = 0
        self._failed = 0
        self._mounts_skipped = 0

    def run(self) -> OwnershipReport:
        action = f"setting the ownership of {self._directory} to group {self._group}"
        try:
            self._run()
        except OSError as error:
            raise OwnershipError(str(error), action=action, subject=self._directory) from error
        except OperationStoppedError:
            raise
        except VolumeHostError as error:
            raise OwnershipError(str(error), action=action, subject=self._directory) from error
        if self._failed:
            logger.warning("%s: %d of %d entries refused the change", action, self._failed, self.processed)
        return OwnershipReport(self.processed, self._changed, self._failed, self._mounts_skipped)

    def _run(self) -> None:
        root = os.open(self._directory, _PATH_FLAGS)
        try:
            status = os.fstat(root)
            if not stat.S_ISDIR(status.st_mode):
                self._apply(root, status, self._directory)
                return
            self._mount_id = mount_id_of_fd(root)
        finally:
            os.close(root)
        root = os.open(self._directory, DIRECTORY_FLAGS)
        try:
            self._walk = TreeWalk(visit=self._visit, enter=self._may_enter, leave=self._leave, failed=self._stop)
            self._walk.run(root)
        finally:
            os.close(root)

    def _visit(self, dir_fd: int, name: str, status: os.stat_result) -> bool:
        self._look_up()
        if stat.S_ISDIR(status.st_mode):
            return True
        if stat.S_ISLNK(status.st_mode):
            self._apply_to_link(dir_fd, name, status)
        elif self._is_right(status):
            self.processed += 1
        else:
            self._open_and_apply(dir_fd, name)
        return False

    def _look_up(self) -> None:
        if self._between is not None:
            self._between(self.processed, self._failed)

    def _open_and_apply(self, dir_fd: int, name: str) -> None:
        """The entry may have been replaced since it was listed, so what counts is what the descriptor shows."""
        fd = os.open(name, _PATH_FLAGS, dir_fd=dir_fd)
        try:
            status = os.fstat(fd)
            if stat.S_ISLNK(status.st_mode):
                self._apply_to_link(dir_fd, name, status)
            else:
                self._apply(fd, status, name)
        finally:
            os.close(fd)

    def _may_enter(self, fd: int) -> bool:
        if mount_id_of_fd(fd) == self._mount_id:
            return True
        self._mounts_skipped += 1
        logger.info("%s: something is mounted on a directory inside; its ownership stays", self._directory)
        return False

    def _leave(self, fd: int) -> None:
        self._look_up()
        self._apply(fd, os.fstat(fd), self._walk.path())

    @staticmethod
    def _stop(path: str, error: OSError) -> None:
        raise OwnershipError(error.strerror or str(error), action=f"reading {path}", subject=path) from error

    def _is_right(self, status: os.stat_result) -> bool:
        wanted = _bits(status.st_mode, self._read_only)
        return status.st_gid == self._group and status.st_mode & wanted == wanted

    def _apply(self, fd: int, status: os.stat_result, name: str) -> None:
        """Change what the descriptor stands for; the link in /proc leads to it and to nothing else."""
        self.processed += 1
        if self._is_right(status):
            return
        path = f"/proc/self/fd/{fd}"
        try:
            if status.st_gid != self._group:
                os.chown(path, -1, self._group)
            # Always after chown, which takes setuid and setgid away: existing bits are never removed (FSGRP-04).
            os.chmod(path, stat.S_IMODE(status.st_mode) | _bits(status.st_mode, self._read_only))
        except OSError as error:
            self._count_failure(name, error)
        else:
            self._changed += 1

    def _apply_to_link(self, dir_fd: int, name: str, status: os.stat_result) -> None:
        self.processed += 1
        if status.st_gid == self._group:
            return
        try:
            os.chown(name, -1, self._group, dir_fd=dir_fd, follow_symlinks=False)
        except OSError as error:
            self._count_failure(name, error)
        else:
            self._changed += 1

    def _count_failure(self, name: str, error: OSError) -> None:
        self._failed += 1
        if self._failed <= 5:
            logger.warning("setting the ownership of %s in %s: %s", name, self._directory, error.strerror)
