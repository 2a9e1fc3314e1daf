"""The GroupController service: snapshots of several volumes at one instant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from volumehost_csi_kit import csi
from volumehost_loop_driver.answering import answering, time_left
from volumehost_loop_driver.errors import InvalidArgumentError
from volumehost_loop_driver.messages import group_message
from volumehost_loop_driver.parameters import refuse_parameters
from volumehost_loop_driver.records import GroupRecord
from volumehost_loop_driver.snapshots import Snapshots
from volumehost_loop_driver.state import DriverState

if TYPE_CHECKING:
    import grpc


class GroupService:
    """Answers the calls of the GroupController service."""

    def __init__(self, state: DriverState, snapshots: Snapshots) -> None:
        self._state = state
        self._snapshots = snapshots

    @answering
    def create_volume_group_snapshot(
        self, request: csi.CreateVolumeGroupSnapshotRequest, context: grpc.ServicerContext
    ) -> csi.CreateVolumeGroupSnapshotResponse:
        """Take a snapshot of each volume, all frozen together."""
        refuse_parameters(request.parameters)
        created = self._snapshots.create_group(request.name, request.source_volume_ids, time_left(context))
        group, snapshots = self._snapshots.group(created.id)
        return csi.CreateVolumeGroupSnapshotResponse(group_snapshot=group_message(group, snapshots))

    @answering
    def delete_volume_group_snapshot(
        self, request: csi.DeleteVolumeGroupSnapshotRequest, context: grpc.ServicerContext
    ) -> None:
        """Delete a group and its snapshots."""
        group = self._state.groups.get(request.group_snapshot_id)
        if group is not None:
            _check_snapshots(group, request.snapshot_ids)
        self._snapshots.delete_group(request.group_snapshot_id, time_left(context))

    @answering
    def get_volume_group_snapshot(
        self, request: csi.GetVolumeGroupSnapshotRequest, _context: grpc.ServicerContext
    ) -> csi.GetVolumeGroupSnapshotResponse:
        """One group."""
        group, snapshots = self._snapshots.group(request.group_snapshot_id)
        _check_snapshots(group, request.snapshot_ids)
        return csi.GetVolumeGroupSnapshotResponse(group_snapshot=group_message(group, snapshots))


def _check_snapshots(group: GroupRecord, given: Iterable[str]) -> None:
    wrong = set(given) ^ set(group.snapshot_ids)
    if wrong:
        raise InvalidArgumentError(
            f"{', '.join(sorted(wrong))}: not the snapshots of the group",
            action=f"read the snapshots of the group {group.id}",
            subject=group.id,
        )
