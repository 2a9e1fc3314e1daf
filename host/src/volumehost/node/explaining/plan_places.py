"""Where the volumes of a pod would be, and what is there already, from layout, journal and mount table."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from volumehost.errors import VolumeHostError
from volumehost.hosts.lock import lock_holder
from volumehost.mount.deadline import DeadlineExceededError, DeadlineRunner
from volumehost.mount.mountinfo import read_mount_table
from volumehost.node.explaining.plan_provisioning import HANDLE
from volumehost.node.journal.format import FAILED, MOUNTED, text_of
from volumehost.node.journal.journal import read_boot_id, read_journal
from volumehost.node.status.recorded import Witnesses
from volumehost.sdk import escape_qualified_name
from volumehost.sdk.ownership import needs_ownership_change

if TYPE_CHECKING:
    from volumehost.hosts.layout import Layout
    from volumehost.node.state.desired import VolumeUse
    from volumehost.node.status.records import VolumeStatus

Record = Mapping[str, Any]

#: Plugins whose volumes have their content elsewhere in the pod's directory, or nowhere in it.
_CSI, _HOST_PATH = "kubernetes.io/csi", "kubernetes.io/host-path"
#: How long a mounted volume is looked at, in seconds: one that hangs must not hold up the plan.
_LOOK_SECONDS = 2.0


class Places:
    """Paths, and what was done before. Writes nothing."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._journal = read_journal(layout.journal_file())
        self._same_boot = not self._journal.boot_id or self._journal.boot_id == read_boot_id()
        self._mounts = frozenset(mount.path for mount in read_mount_table())
        self._runner = DeadlineRunner()
        self.worker = lock_holder(layout.root_dir)
        self.notes = list(self._journal.notes) if self._journal.exists else []

    @property
    def layout(self) -> Layout:
        """The layout of the root directory."""
        return self._layout

    def has_ended(self, pod_uid: str) -> bool:
        """Whether the pod is being unmounted."""
        return bool(self._journal.entries.get(("", pod_uid), {}).get("ended"))

    def status(self, use: VolumeUse) -> VolumeStatus | None:
        """How the volume stands for the pod; None when nothing is known of it."""
        record = self._journal.entries.get((use.volume, use.pod_uid))
        if record is None:
            return None
        witnesses = Witnesses(
            mounted=self._mounts, same_boot=self._same_boot, at_work=self.worker is not None, now=time.time()
        )
        return witnesses.volume(use.outer_names[0], record)

    def is_attached(self, use: VolumeUse) -> bool:
        """Whether the node has it attached, as far as is recorded."""
        return self._journal.entries.get((use.volume, ""), {}).get("att") == "attached"

    def staged_at(self, use: VolumeUse) -> str:
        """Where its device is mounted on the node, "" where it is not."""
        record = self._journal.entries.get((use.volume, ""), {})
        path = text_of(record, "dmpath")
        there = self._same_boot and record.get("dev") == MOUNTED and (use.is_block or path in self._mounts)
        return path if there else ""

    def holders(self, use: VolumeUse) -> list[str]:
        """Labels of other pods that have the volume, or may have it."""
        found = []
        for (name, uid), record in self._journal.entries.items():
            same = (text_of(record, "plugin"), text_of(record, "inner")) == (use.plugin.name, use.inner_name)
            if name and uid and uid != use.pod_uid and same and record.get("state") != FAILED:
                found.append(f"{text_of(record, 'ns')}/{text_of(record, 'pod')}" if record.get("pod") else uid)
        return found

    def stage_path(self, use: VolumeUse) -> str:
        """Where its device would be mounted, "" where only its driver will know."""
        volume = use.spec.persistent_volume
        if volume is not None and volume.spec.csi is not None and volume.spec.csi.volume_handle == HANDLE:
            return ""
        if use.is_block:
            return f"{self._layout.volume_device_plugin_dir(use.plugin.name)}/{use.inner_name}"
        try:
            path: object = use.plugin.new_device_mounter().get_device_mount_path(use.spec)
        except Exception:  # noqa: BLE001 - a plugin may raise anything; the mount itself will tell
            return ""
        return path if isinstance(path, str) else ""

    def path(self, use: VolumeUse) -> str:
        """Where the pod would have it: the layout's place, which a plugin may make more of."""
        if use.is_block:
            return f"{self._layout.pod_volume_device_dir(use.pod_uid, use.plugin.name)}/{use.inner_name}"
        if use.plugin.name == _HOST_PATH:
            return _host_path(use)
        name = escape_qualified_name(use.inner_name) if use.plugin.name == _CSI else use.inner_name
        try:
            directory = self._layout.pod_volume_dir(use.pod_uid, use.plugin.name, name)
        except VolumeHostError:
            return ""  # a name that cannot be one: the mount refuses it
        return f"{directory}/mount" if use.plugin.name == _CSI else directory

    def ownership_words(self, use: VolumeUse, staged: str) -> str:
        """Whether the root of a volume that is on the node already has the group that the pod wants; "" if unknown."""
        group = use.fs_group
        if group is None or not staged or use.is_block:
            return ""
        try:
            wrong = self._runner.run(
                lambda: needs_ownership_change(staged, group, read_only=use.spec.read_only), timeout=_LOOK_SECONDS
            )
        except DeadlineExceededError:
            return "its root does not answer, so whether its files have the group is not known"
        return f"its root {'does not have' if wrong else 'has'} group {group}"


def _host_path(use: VolumeUse) -> str:
    volume, persistent = use.spec.volume, use.spec.persistent_volume
    source = persistent.spec.host_path if persistent is not None else volume.host_path if volume is not None else None
    return source.path if source is not None else ""
