"""A second look at what is there, after the start: a moment later, so that nobody waits for it.

A start with a whole journal believes it. Here the mount table is held against it, and what only directories tell of is
found and entered all the same (BR-55, BR-58). What a start without a whole journal found is recorded, so that the next
one need not look again. Nothing is unmounted or forgotten because of what is seen here.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from volumehost.errors import MountError
from volumehost.node.journal.format import UNCERTAIN, UNMOUNTED
from volumehost.node.restart.mount_facts import mounted_paths
from volumehost.node.restart.reconstruct import look_at_disk, resolve_attachability
from volumehost.node.state.recorded_spec import wire_spec
from volumehost.node.state.states import Attachability

if TYPE_CHECKING:
    from volumehost.node.execution.pending import PendingOperations
    from volumehost.node.operations.common import Services
    from volumehost.node.restart.found_on_disk import VolumeDirectory
    from volumehost.node.restart.reconstruct import Reconstruction
    from volumehost.node.state.records import AttachedVolume, MountedVolume

logger = logging.getLogger(__name__)

#: How long after the start, in seconds.
SECOND_LOOK_SECONDS = 1.0

#: At most so many lost mounts are named in the log.
_NAMED = 5


class SecondLook:
    """Looks with the services of a manager at work. Safe for threads; one look at a time.

    :param found: what the start found; what is found here is added to it.
    :param standalone: the manager attaches volumes itself.
    """

    def __init__(
        self, services: Services, pending: PendingOperations, found: Reconstruction, *, standalone: bool
    ) -> None:
        self._services = services
        self._pending = pending
        self._found = found
        self._standalone = standalone
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Look; whether something new was found, which is to be reconciled then."""
        with self._lock:
            try:
                self._tell_lost_mounts()
                found = look_at_disk(self._services, self._is_busy)
            except MountError as error:  # the table cannot be read: all that was entered stays as it is (BR-57)
                logger.warning("what is mounted is not known now: %s", error)
                return False
            self._found.add(found)
            if found.devices or found.volumes:
                resolve_attachability(self._services, standalone=self._standalone)
            if self._found.understood:
                self._record()
            return bool(found.volumes or found.devices)

    def _tell_lost_mounts(self) -> None:
        """Status and the next set-up find out for themselves; the log tells why something is set up again."""
        mounts = [mount for mount in self._services.actual.reconstructed_mounts() if mount.is_mount]
        if not mounts:
            return
        mounted = mounted_paths(self._services)
        lost = [mount for mount in mounts if (mount.mount_point or mount.path) not in mounted]
        if lost:
            names = ", ".join(mount.path for mount in lost[:_NAMED])
            more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
            logger.warning(
                "%d of %d volumes that were mounted when the last manager ended no longer are: %s%s",
                len(lost), len(mounts), names, more,
            )  # fmt: skip

    def _is_busy(self, directory: VolumeDirectory) -> bool:
        """Whether an operation is about to make, enter or remove it, or the pod wants it and will adopt it."""
        services, uid = self._services, directory.pod_uid
        if self._pending.works_for(uid) or services.actual.find_by_inner_name(uid, directory.name) is not None:
            return True
        return any(use.inner_name == directory.name for use in services.desired.uses_of_pod(uid))

    def _record(self) -> None:
        """Put on record what only directories told of; the journal is complete then."""
        services, records = self._services, []
        for name in services.actual.volumes():
            volume = services.actual.get_volume(name)
            if volume is None:
                continue
            held = volume.device_state.may_be_mounted or volume.attachability is Attachability.TRUE
            if held and not services.journal.has(name):
                records.append(_record_of_device(volume))
            records += [
                _record_of_mount(mount)
                for mount in volume.pods.values()
                if mount.from_directory and not services.journal.has(name, mount.pod_uid)
            ]
        if records:
            services.note(*records)
        services.journal.mark_complete()


def _record_of_device(volume: AttachedVolume) -> dict[str, Any]:
    return {
        "v": volume.name,
        "plugin": volume.plugin_name,
        "mode": volume.mode,
        "dev": UNCERTAIN if volume.device_state.may_be_mounted else UNMOUNTED,
        "att": UNCERTAIN if volume.attachability is Attachability.TRUE else "",
        "dpath": volume.device_path,
        "dmpath": volume.device_mount_path,
        "dir": volume.from_directory,
        **(wire_spec(spec) if (spec := volume.spec) is not None else {}),
    }


def _record_of_mount(mount: MountedVolume) -> dict[str, Any]:
    return {
        "v": mount.volume,
        "p": mount.pod_uid,
        "state": UNCERTAIN,
        "plugin": mount.plugin_name,
        "inner": mount.inner_name,
        "mode": mount.mode,
        "path": mount.path,
        "is_mount": mount.is_mount,
        "dir": True,
        **({"mount": mount.mount_point} if mount.mount_point else {}),
    }
