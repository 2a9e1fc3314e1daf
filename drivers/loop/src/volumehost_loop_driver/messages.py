"""Volumes, snapshots and groups as messages of CSI."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from volumehost_csi_kit import csi
from volumehost_loop_driver.records import GroupRecord, SnapshotRecord, Source, VolumeRecord
from volumehost_loop_driver.topology import topology

#: What the publish context tells the node, as ``true`` or ``false``.
READ_ONLY_KEY: Final = "readOnly"


def volume_message(record: VolumeRecord, node_id: str) -> csi.Volume:
    """A volume, its source, and where it can be reached."""
    return csi.Volume(
        volume_id=record.id,
        capacity_bytes=record.size,
        content_source=_source_message(record.source),
        accessible_topology=[topology(node_id)],
    )


def _source_message(source: Source) -> csi.VolumeContentSource | None:
    one = csi.VolumeContentSource
    if source.volume_id:
        return one(volume=one.VolumeSource(volume_id=source.volume_id))
    if source.snapshot_id:
        return one(snapshot=one.SnapshotSource(snapshot_id=source.snapshot_id))
    return None


def snapshot_message(record: SnapshotRecord) -> csi.Snapshot:
    """A snapshot, always ready."""
    return csi.Snapshot(
        size_bytes=record.size,
        snapshot_id=record.id,
        source_volume_id=record.source_volume_id,
        creation_time=_time(record.created_ns),
        ready_to_use=True,
        group_snapshot_id=record.group_id,
    )


def group_message(record: GroupRecord, snapshots: Iterable[SnapshotRecord]) -> csi.VolumeGroupSnapshot:
    """A group of snapshots."""
    return csi.VolumeGroupSnapshot(
        group_snapshot_id=record.id,
        snapshots=[snapshot_message(snapshot) for snapshot in snapshots],
        creation_time=_time(record.created_ns),
        ready_to_use=True,
    )


def _time(nanoseconds: int) -> csi.Timestamp:
    seconds, nanos = divmod(nanoseconds, 10**9)
    return csi.Timestamp(seconds=seconds, nanos=nanos)
