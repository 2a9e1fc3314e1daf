"""A survey with what judging it needs again and again: the journal by volumes, the state of each pod, promises."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from volumehost.inspection.pod_directories import COPYING_PLUGINS, CSI, EMPTY_DIR, VolumeEntry
from volumehost.inspection.report import PodState
from volumehost.inspection.survey import Survey
from volumehost.node.journal.format import FAILED, LOST, MOUNTED, text_of
from volumehost.sdk.names import escape_qualified_name
from volumehost.spec import BLOCK_MODE

if TYPE_CHECKING:
    from volumehost.host_services import MountPoint
    from volumehost.inspection.device_directories import DeviceEntry
    from volumehost.inspection.pod_directories import PodEntry

Record = Mapping[str, Any]

#: Built-in plugins whose volumes always lie on a mount of their own. Others may (emptyDir) or never do (configMap).
_ALWAYS_MOUNTED: Final = frozenset(
    {
        CSI,
        *(
            f"kubernetes.io/{name}"
            for name in ("secret", "projected", "downward-api", "nfs", "iscsi", "fc", "local-volume", "portworx-volume")
        ),
    }
)

#: Plugins that make their volumes of what the API or the pod says: no claim stands behind them.
LOCAL_PLUGINS: Final = COPYING_PLUGINS | {EMPTY_DIR, "kubernetes.io/host-path", "kubernetes.io/git-repo"}


class Context:
    """What is known, put so that it can be asked."""

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.entries: dict[str, PodEntry] = {pod.uid: pod for pod in survey.pods}

    @cached_property
    def devices_by_mount(self) -> dict[str, DeviceEntry]:
        """Volumes that are there for the whole node, by where their filesystem is mounted."""
        return {device.mount_path: device for device in self.survey.devices}

    # --- the journal ----------------------------------------------------------------------------------------------

    @property
    def journal_tells_all(self) -> bool:
        """Whether what the journal does not tell did not happen."""
        journal = self.survey.journal
        return journal is not None and journal.exists and journal.intact

    @property
    def same_boot(self) -> bool:
        """Whether the journal was written since the machine booted; True where nothing tells."""
        journal = self.survey.journal
        return journal is None or not journal.boot_id or journal.boot_id == self.survey.boot_id

    @cached_property
    def _by_place(self) -> dict[tuple[str, str, str], Record]:
        found: dict[tuple[str, str, str], Record] = {}
        if self.survey.journal is not None:
            for (volume, uid), record in self.survey.journal.entries.items():
                if volume and uid:
                    found[uid, text_of(record, "plugin"), text_of(record, "inner")] = record
        return found

    def record_of(self, uid: str, plugin: str, inner_name: str) -> Record | None:
        """What the journal says of a pod's volume, None for nothing."""
        return self._by_place.get((uid, plugin, inner_name))

    @cached_property
    def records_by_pod(self) -> dict[str, list[Record]]:
        """The journal's records of volumes, by the uid of the pod; without those that failed before they began."""
        found: dict[str, list[Record]] = {}
        for (uid, _, _), record in self._by_place.items():
            if record.get("state") not in (None, FAILED):
                found.setdefault(uid, []).append(record)
        return found

    @cached_property
    def device_records(self) -> dict[str, Record]:
        """The journal's records of volumes as a whole, by their unique names."""
        journal = self.survey.journal
        return {volume: record for (volume, uid), record in journal.entries.items() if not uid} if journal else {}

    @cached_property
    def recorded_pods(self) -> set[str]:
        """UIDs of all pods of which the journal has a record."""
        journal = self.survey.journal
        return {uid for _, uid in journal.entries if uid} if journal is not None else set()

    # --- pods -----------------------------------------------------------------------------------------------------

    def state_of(self, uid: str) -> PodState:
        """What is known of the pod."""
        entry = self.entries.get(uid)
        changed_at = entry.entry.changed_at if entry is not None else 0.0
        return self.survey.known.state_of(uid, changed_at=changed_at, recorded=uid in self.recorded_pods)

    def why_unknown(self, uid: str) -> str:
        """Why nothing is concluded about the pod."""
        entry = self.entries.get(uid)
        return self.survey.known.why_unknown(uid, changed_at=entry.entry.changed_at if entry is not None else 0.0)

    @cached_property
    def waiting_pods(self) -> list[str]:
        """Labels of pods that have claims which are not all mounted yet: they may be about to use a device."""
        found = []
        for uid, pod in self.survey.known.by_uid.items():
            entry = self.entries.get(uid)
            there = sum(volume.plugin not in LOCAL_PLUGINS for volume in entry.volumes) if entry is not None else 0
            if not pod.ended and pod.claims > there and uid == pod.uids[-1]:
                found.append(f"{pod.namespace}/{pod.name}")
        return sorted(found)

    @property
    def may_be_wanted(self) -> str:
        """Why a volume that no pod has may be wanted all the same, "" when it certainly is not."""
        if not self.survey.known.complete:
            return "no source of pods was there to ask whether one is about to use it"
        if self.waiting_pods:
            return f"pods with claims are not mounted yet and may be about to use it: {', '.join(self.waiting_pods)}"
        return ""

    # --- volumes --------------------------------------------------------------------------------------------------

    def is_mount_promised(self, volume: VolumeEntry) -> bool | None:
        """Whether the volume has to lie on a mount of its own; None when nothing tells."""
        record = self.record_of(volume.pod_uid, volume.plugin, volume.name)
        if record is not None and isinstance(record.get("is_mount"), bool):
            return bool(record["is_mount"])
        if self.journal_tells_all and (record is None or record.get("state") not in (MOUNTED, LOST)):
            return None if volume.plugin not in _ALWAYS_MOUNTED else True
        if volume.plugin in _ALWAYS_MOUNTED or volume.on_mount:
            return True
        return None

    def mounts_of(self, volume: VolumeEntry) -> list[MountPoint]:
        """What is mounted for the volume, the lowest first; of a block volume the bind of its device."""
        if volume.mode != BLOCK_MODE:
            return self.survey.index.at(volume.mount_path)
        record = self.record_of(volume.pod_uid, volume.plugin, volume.name)
        place = text_of(record, "mount") if record is not None else ""
        for path in (place, *self.block_places(volume)):
            mounts = self.survey.index.at(path) if path else []
            if mounts:
                return mounts
        return []

    def block_places(self, volume: VolumeEntry) -> tuple[str, ...]:
        """Where the device of a pod's block volume may be bound, for CSI and for built-in plugins."""
        base = f"{self.survey.root}/plugins/{volume.plugin}/volumeDevices/{escape_qualified_name(volume.name)}"
        return f"{base}/dev/{volume.pod_uid}", f"{base}/{volume.pod_uid}"
