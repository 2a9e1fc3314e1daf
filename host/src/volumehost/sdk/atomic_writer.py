"""Replacing the files of a volume all at once, so that no reader ever sees a mixture of two versions (ATOMIC rules).

For plugins that project objects into files. The volume's root holds ``..data``, a link to the directory of the current
generation, and one link per name that leads through ``..data``; publishing a new generation is one rename.

The workload may be able to write to the volume, so its links are never followed and what it put there is never
trusted: everything goes through descriptors, and only links of the writer's own form count (BR-72).
"""

from __future__ import annotations

import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping

from volumehost.errors import PayloadError, VolumeHostError
from volumehost.mount.removal import remove_all_at
from volumehost.sdk.atomic_generation import matches, write_generation
from volumehost.sdk.directories import opened_directory
from volumehost.sdk.payload import FileProjection, clean_payload, first_component

logger = logging.getLogger(__name__)

DATA_LINK = "..data"
TEMPORARY_DATA_LINK = "..data_tmp"
_TEMPORARY_NAME_LINK = "..name_tmp"
_GENERATION = re.compile(r"\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.[0-9A-Za-z]+")
_GENERATION_MODE = 0o755


class AtomicWriter:
    """Writes payloads into one directory, which must exist (ATOMIC-01).

    Not for concurrent writers of one directory: the host runs one operation at a time per volume and pod (ATOMIC-20).

    :param sync: put everything on disk before it is published, so that not even a power cut leaves empty files.
    :raises PayloadError: the directory does not exist.
    """

    def __init__(self, directory: str, *, sync: bool = True, clock: Callable[[], float] = time.time) -> None:
        if not os.path.lexists(directory):
            raise PayloadError("the directory does not exist", action=f"preparing to write files to {directory}")
        self._directory = directory
        self._sync = sync
        self._clock = clock

    def write(self, payload: Mapping[str, FileProjection], set_perms: Callable[[str], None] | None = None) -> bool:
        """Make the payload the content of the volume; returns whether anything had to be published (ATOMIC-07, -08).

        Without a change this only repairs: visible links that were lost, remains of a write that was killed.

        :param payload: relative path to file; an empty payload empties the volume.
        :param set_perms: called once per publication with the new generation's bare name, when it is filled and not
            visible yet; its error ends the write and is passed on.
        :raises PayloadError: a path is invalid (then nothing was touched), or the files cannot be written (then the
            old content still stands, unless the text says that only the clean-up failed).
        """
        files = clean_payload(payload)
        try:
            with opened_directory(self._directory) as target:
                current = self._current(target)
                published = current is None or self._differs(target, current, files, set_perms is not None)
                if published:
                    current = self._publish(target, files, set_perms)
                self._show(target, files)
                self._clean_up(target, files, current)
        except OSError as error:
            raise PayloadError(
                str(error), action=f"writing the files of {self._directory}", subject=self._directory
            ) from error
        return published

    def _current(self, target: int) -> str | None:
        """The name of the published generation; None when there is none that this writer can have made."""
        try:
            name = os.readlink(DATA_LINK, dir_fd=target)
        except FileNotFoundError:
            return None
        except OSError:
            name = ""
        if _GENERATION.fullmatch(name):
            return name
        logger.warning("%s in %s is not the writer's own: writing everything anew", DATA_LINK, self._directory)
        return None

    @staticmethod
    def _differs(target: int, current: str, files: Mapping[str, FileProjection], ownership_applied: bool) -> bool:
        try:
            with opened_directory(current, dir_fd=target) as generation:
                return not matches(generation, files, ownership_applied=ownership_applied)
        except OSError:
            return True

    def _publish(
        self, target: int, files: Mapping[str, FileProjection], set_perms: Callable[[str], None] | None
    ) -> str:
        """Steps 5 to 9: write a new generation aside and swap it in; on failure it is gone again."""
        name = self._new_generation(target)
        try:
            with opened_directory(name, dir_fd=target) as generation:
                os.fchmod(generation, _GENERATION_MODE)
                write_generation(generation, files, sync=self._sync)
                if set_perms is not None:
                    set_perms(name)
            self._replace_link(target, name, DATA_LINK, TEMPORARY_DATA_LINK)
        except BaseException:
            self._discard(target, name)
            raise
        if self._sync:
            os.fsync(target)
        return name

    def _discard(self, target: int, name: str) -> None:
        """Remove a generation that nobody has seen; a failure must not hide what went wrong before."""
        try:
            self._remove(target, name)
        except (OSError, VolumeHostError) as error:
            logger.warning("removing %s in %s failed, the next write tries again: %s", name, self._directory, error)

    def _new_generation(self, target: int) -> str:
        stamp = time.strftime("..%Y_%m_%d_%H_%M_%S", time.gmtime(self._clock()))
        while True:
            name = f"{stamp}.{os.urandom(5).hex()}"
            try:
                os.mkdir(name, 0o700, dir_fd=target)
            except FileExistsError:
                continue
            return name

    def _show(self, target: int, files: Mapping[str, FileProjection]) -> None:
        """Step 10: a link in the volume's root for each name, made or put right."""
        owners: dict[str, int | None] = {}
        for path, projection in files.items():
            owners.setdefault(first_component(path), projection.fs_user)
        for name, owner in owners.items():
            wanted = f"{DATA_LINK}/{name}"
            if _link_target(target, name) == wanted:
                continue
            if _is_directory(target, name):
                # Perhaps the mount point of another volume below this one (UTIL-22): not the writer's to remove.
                logger.warning("%s in %s is a directory: the file of that name is hidden", name, self._directory)
                continue
            self._replace_link(target, wanted, name, _TEMPORARY_NAME_LINK, owner)

    def _clean_up(self, target: int, files: Iterable[str], current: str | None) -> None:
        """Steps 11 and 12: stale links, old generations and the remains of writes that were killed."""
        names = {first_component(path) for path in files}
        failures = []
        for name in os.listdir(target):
            if name in names or name in {current, DATA_LINK}:
                continue
            ours = name in {TEMPORARY_DATA_LINK, _TEMPORARY_NAME_LINK} or _GENERATION.fullmatch(name) is not None
            try:
                if ours:
                    self._remove(target, name)
                elif _link_target(target, name) == f"{DATA_LINK}/{name}":
                    os.unlink(name, dir_fd=target)
            except FileNotFoundError:
                continue
            except (OSError, VolumeHostError) as error:
                failures.append(error)
        if failures:
            raise PayloadError(
                "; ".join(str(error) for error in failures),
                action=f"the files of {self._directory} are written; removing what was there before",
                subject=self._directory,
            ) from failures[-1]

    def _replace_link(self, target: int, leads_to: str, name: str, temporary: str, owner: int | None = None) -> None:
        """Make ``name`` a link, in one step for whoever looks; what a rename cannot replace is removed first."""
        try:
            os.symlink(leads_to, temporary, dir_fd=target)
        except FileExistsError:  # left by a write that was killed here
            self._remove(target, temporary)
            os.symlink(leads_to, temporary, dir_fd=target)
        try:
            if owner is not None:
                os.chown(temporary, owner, -1, dir_fd=target, follow_symlinks=False)
            self._rename(target, temporary, name)
        except BaseException:
            self._discard(target, temporary)
            raise

    def _rename(self, target: int, temporary: str, name: str) -> None:
        try:
            os.rename(temporary, name, src_dir_fd=target, dst_dir_fd=target)
        except IsADirectoryError:
            self._remove(target, name)
            os.rename(temporary, name, src_dir_fd=target, dst_dir_fd=target)

    def _remove(self, target: int, name: str) -> None:
        """Remove an entry with all below, never through a link and never across a mount."""
        remove_all_at(target, name, f"{self._directory}/{name}")


def _link_target(target: int, name: str) -> str | None:
    """Where a link leads; None when it is not there or not a link."""
    try:
        return os.readlink(name, dir_fd=target)
    except OSError:
        return None


def _is_directory(target: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=target, follow_symlinks=False).st_mode)
    except OSError:
        return False
