"""Takes an emptyDir away: unmounts what was mounted, removes the content, never reaches through a mount.

Nothing that set-up recorded is needed (EMPTYDIR-45): the medium is read from what is there.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from typing import TYPE_CHECKING

from volumehost import sdk
from volumehost.errors import MountError, RemovalError, StillMountedError, VolumeHostError
from volumehost_emptydir.place import (
    ON_MOUNT_FILE,
    READY_FILE,
    Found,
    VolumePlace,
    has_on_mount_marker,
    look,
    write_on_mount_marker,
)
from volumehost_emptydir.size import DEFAULT_MEDIUM, MEMORY

if TYPE_CHECKING:
    from volumehost.host_services import MountInterface
    from volumehost.volumes import VolumeMetrics

logger = logging.getLogger(__name__)

#: Mounts stacked on one directory: a set-up makes one, somebody's mistake a few more.
_MAX_STACKED_MOUNTS = 16
#: How long the unmount of what does not answer may take before force is used, in seconds.
_FORCE_SECONDS = 30.0
_NAMES_SHOWN = 5


class EmptyDirUnmounter:
    """Tears one emptyDir down."""

    def __init__(self, place: VolumePlace, mounter: MountInterface) -> None:
        self._place = place
        self._mounter = mounter

    def get_path(self) -> str:
        """The data directory."""
        return self._place.data_dir

    @property
    def metric_source(self) -> str:
        """How it is measured, from what is mounted."""
        return "statfs" if self._medium() == MEMORY else "du"

    def get_metrics(self) -> VolumeMetrics:
        """Usage now; the limit is not known here."""
        from volumehost_emptydir.usage import measure

        return measure(self._place, self._medium(), 0)

    def tear_down(self) -> None:
        """Take the volume away at the plugin's own path."""
        self.tear_down_at(self._place.data_dir)

    def tear_down_at(self, directory: str) -> None:
        """Remove the volume at ``directory`` with its content; success when it is gone already (EMPTYDIR-40 to -46).

        The marker goes first, so that a pod that comes back after an interrupted teardown gets a full set-up.

        :raises StillMountedError: something that is not the volume is mounted at the directory or inside of it; it
            was left untouched.
        :raises UnmountError: the volume is in use.
        :raises RemovalError: after the unmount there are files in the directory below: they were written by somebody
            who kept the path, and are kept.
        """
        marked = has_on_mount_marker(self._place)
        self._remove_ready(marked)
        found = look(directory, self._mounter)
        if not found.exists:
            logger.info("the emptyDir %s is gone already", directory)
        if found.on_own_mount or found.corrupted:
            if not marked:
                write_on_mount_marker(self._place)
                marked = True
            found = self._unmount(directory, found)
        if found.mounted:
            raise self._still_mounted(directory)
        if found.exists and marked:
            self._remove_bare_directory(directory)
        elif found.exists:
            self._remove_all(directory, "removing the volume")
        # The marker by itself, which leaves an empty directory: that one need not be read.
        if marked:
            self._remove_all(f"{self._place.meta_dir}/{ON_MOUNT_FILE}", "removing the marker of the volume")
            with contextlib.suppress(OSError):  # what is left is told of below
                os.rmdir(self._place.meta_dir)
                return
        self._remove_all(self._place.meta_dir, "removing the marker of the volume")

    def _medium(self) -> str:
        found = look(self._place.data_dir, self._mounter)
        return found.medium if found.on_own_mount else DEFAULT_MEDIUM

    def _remove_ready(self, marked: bool) -> None:
        meta_dir = self._place.meta_dir
        try:
            sdk.remove_all_one_filesystem(f"{meta_dir}/{READY_FILE}" if marked else meta_dir)
        except VolumeHostError as error:
            raise RemovalError(
                f"failed to remove ready dir [{meta_dir}]: {error}",
                action=f"tearing down the emptyDir {self._place.name}",
                subject=meta_dir,
                paths=[meta_dir],
            ) from error

    def _unmount(self, directory: str, found: Found) -> Found:
        """Unmount all layers that are ours or dead, and remove the directory if that is all; what is left there.

        What does not answer is unmounted by force if need be: our own look at it keeps it busy (BR-52).
        """
        for _ in range(_MAX_STACKED_MOUNTS):
            if found.corrupted:
                self._mounter.unmount_with_force(directory, timeout=_FORCE_SECONDS)
            else:
                self._mounter.unmount(directory)
            try:
                os.rmdir(directory)  # refused where a mount or a file is left
            except OSError:
                found = look(directory, self._mounter)
            else:
                return Found()
            if not (found.on_own_mount or found.corrupted):
                break
        return found

    def _still_mounted(self, directory: str) -> StillMountedError:
        return StillMountedError(
            f"{directory} is a mount point, and what is mounted there is not this volume",
            action=f"tearing down the emptyDir {self._place.name}",
            subject=directory,
            hint="nothing was removed; unmount it first",
            errno=errno.EBUSY,
        )

    def _remove_bare_directory(self, directory: str) -> None:
        """Nothing but an empty directory can be there now: anything else was written after the unmount (BR-70)."""
        try:
            os.rmdir(directory)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._not_removed(directory, error) from error

    def _not_removed(self, directory: str, error: OSError) -> MountError | RemovalError:
        action = f"tearing down the emptyDir {self._place.name}"
        if error.errno == errno.EBUSY:
            return StillMountedError(
                f"something is mounted at {directory}", action=action, subject=directory, errno=error.errno
            )
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            return RemovalError(error.strerror or str(error), action=action, subject=directory, paths=[directory])
        names = sorted(os.listdir(directory))
        shown = ", ".join(names[:_NAMES_SHOWN]) + (
            f" and {len(names) - _NAMES_SHOWN} more" * (len(names) > _NAMES_SHOWN)
        )
        return RemovalError(
            f"files were written to {directory} after the volume was unmounted, and are kept: {shown}",
            action=action,
            subject=directory,
            hint="end what writes there, move the files away if they matter, then remove them",
            paths=[f"{directory}/{name}" for name in names],
        )

    def _remove_all(self, path: str, what: str) -> None:
        try:
            sdk.remove_all_one_filesystem(path)
        except StillMountedError as error:
            raise StillMountedError(
                error.reason,
                action=f"tearing down the emptyDir {self._place.name}: {what}",
                subject=error.subject,
                hint=error.hint,
                errno=error.errno,
            ) from error
