"""Looks after pod directories that no pod owns: tells them, cleans them up when asked, and as an agent's housekeeping.

Housekeeping (ORPHAN rules) takes away what certainly holds nothing: directories without a live mount and without a
file. Everything else it leaves, counts, and tells once.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.errors import ApiError, MountError, StillMountedError, VolumeHostError
from volumehost.mount.corrupted import is_dead_mount
from volumehost.node.execution.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from volumehost.api.client import ApiClient
    from volumehost.host_services import MountPoint
    from volumehost.node.assembly import NodeParts
    from volumehost.node.restart.orphans import OrphanedPod

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OrphanCounts:
    """What the last run of housekeeping met (ORPHAN-08); ``removed`` is how many all runs together took away.

    ``candidates``: pod directories of no known pod; ``errors``: those of them that were left.
    """

    candidates: int = 0
    errors: int = 0
    removed: int = 0


class OrphanCare:
    """The orphans of one manager at work. One thread at a time may call :meth:`housekeep`.

    :param clock: monotonic, in seconds.
    """

    def __init__(self, parts: NodeParts, api: ApiClient, clock: Callable[[], float]) -> None:
        self._parts = parts
        self._api = api
        self._clock = clock
        self._kept: dict[str, Backoff] = {}
        self.counts = OrphanCounts()

    def find(self) -> list[OrphanedPod]:
        """Pod directories of no known pod, and what keeps each (ORPHAN-01)."""
        from volumehost.node.restart.orphans import orphaned_pods

        actual = self._parts.services.actual
        known = self._pods_in_api()
        known |= {uid for uid in actual.pods() if not all(mount.from_directory for mount in actual.mounts_of_pod(uid))}
        return orphaned_pods(self._parts.host.layout, known, self._parts.host.get_mounter().list_mounts())

    def clean(self, *, dry_run: bool = True) -> list[OrphanedPod]:
        """Unmount and remove what :meth:`find` finds; by default only tell. Never deletes data (BR-84)."""
        from volumehost.node.restart.orphans import remove_orphans

        found = self.find()
        host = self._parts.host
        return found if dry_run else remove_orphans(found, host.layout, host.get_mounter())

    # --- housekeeping -----------------------------------------------------------------------------------------------

    def housekeep(self) -> OrphanCounts:
        """One run: remove what is left of pods that nobody knows; meant to be called every two seconds (CONST-06).

        A pod is left alone while the manager has volumes of it, or something lives below its directory (ORPHAN-02).
        Mounts that are dead are unmounted first (ORPHAN-10, improved). What is left is tried again after longer and
        longer times. Nothing happens until all pods are known.

        :raises OSError: the pods directory cannot be listed (ORPHAN-01).
        """
        if not self._parts.populator.complete:
            return self.counts
        candidates = self._candidates(os.listdir(self._parts.host.layout.pods_dir()))
        if candidates:
            candidates = self._certain(candidates)
        for uid in self._kept.keys() - set(candidates):
            del self._kept[uid]
        removed = self._remove(candidates) if candidates else 0
        self.counts = OrphanCounts(len(candidates), len(candidates) - removed, self.counts.removed + removed)
        return self.counts

    def _candidates(self, names: Iterable[str]) -> list[str]:
        """Of the directories, those of pods of which this manager knows nothing; no look at the API yet."""
        populator, actual, pending = self._parts.populator, self._parts.services.actual, self._parts.pending
        return sorted(
            uid
            for uid in names
            if not populator.knows(uid) and not actual.has_mounts(uid) and not pending.works_for(uid)
        )

    def _certain(self, candidates: list[str]) -> list[str]:
        try:
            known = self._pods_in_api()
        except ApiError as error:
            logger.warning("whose pod directories these are is not known, so all are left: %s", error)
            return []
        return self._candidates(uid for uid in candidates if uid not in known)

    def _remove(self, candidates: list[str]) -> int:
        """Remove those whose turn it is; returns how many went."""
        now = self._clock()
        due = [uid for uid in candidates if uid not in self._kept or not self._kept[uid].blocks(now)]
        if not due:
            return 0
        try:
            table = self._parts.host.get_mounter().list_mounts()
        except MountError as error:  # whatever is below them counts as mounted (BR-57)
            logger.warning("orphaned pod directories are left, the mount table cannot be read: %s", error)
            return 0
        failures: dict[str, VolumeHostError] = {}
        for uid in due:
            try:
                self._remove_one(uid, table)
            except VolumeHostError as error:
                failures[uid] = error
        self._tell(failures)
        return len(due) - len(failures)

    def _remove_one(self, uid: str, table: list[MountPoint]) -> None:
        from volumehost.node.restart.orphans import remove_pod_directory

        path = self._parts.host.layout.pod_dir(uid)
        below = [mount.path for mount in table if mount.path == path or mount.path.startswith(f"{path}/")]
        for mounted in sorted(below, key=len, reverse=True):
            self._unmount_dead(uid, mounted)
        remove_pod_directory(self._parts.host.layout, uid)
        logger.info("removed what was left of pod %s, which nobody knows", uid)

    def _unmount_dead(self, uid: str, path: str) -> None:
        """Unmount what serves nobody any more.

        :raises StillMountedError: something alive is mounted there, or may be (ORPHAN-02).
        """
        mounter = self._parts.host.get_mounter()
        try:
            mounter.is_mount_point(path)
        except VolumeHostError as error:
            if is_dead_mount(error):
                logger.warning("orphaned pod %s: unmounting what serves nobody any more: %s", uid, error)
                mounter.unmount(path)
                return
        except OSError as error:
            logger.debug("orphaned pod %s: looking at %s: %s", uid, path, error)
        raise StillMountedError(
            f"{path} is still mounted",
            action=f"removing the directory of pod {uid}",
            subject=path,
            hint="volumehost inspect tells what it is, volumehost repair what can be done",
        )

    def _tell(self, failures: dict[str, VolumeHostError]) -> None:
        """The first in full, the others for those who ask; each again only when it changes (ORPHAN-07, BR-53)."""
        now, told = self._clock(), False
        for uid, error in failures.items():
            kept = self._kept.setdefault(uid, Backoff())
            news = kept.error is None or str(kept.error) != str(error)
            kept.failed(error, now)
            if news and not told:
                more = f" ({len(failures) - 1} more are left)" if len(failures) > 1 else ""
                logger.warning("orphaned pod %s is left: %s%s", uid, error, more)
                told = True
            else:
                logger.debug("orphaned pod %s is left: %s", uid, error)

    def _pods_in_api(self) -> set[str]:
        from volumehost.api.objects import Pod

        return {pod.metadata.uid for pod in self._api.list(Pod).items}
