"""The Controller service: reads requests, calls ``Volumes`` and ``Snapshots``, writes answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.mount.format import DEFAULT_FS_TYPE
from volumehost_csi_kit import csi
from volumehost_loop_driver.answering import answering, time_left
from volumehost_loop_driver.errors import InvalidArgumentError, NotFoundError, ResourceExhaustedError
from volumehost_loop_driver.messages import READ_ONLY_KEY, snapshot_message, volume_message
from volumehost_loop_driver.parameters import (
    read_capability,
    read_fs_type,
    read_provisioning,
    read_settings,
    refuse_parameters,
)
from volumehost_loop_driver.records import Settings, SnapshotRecord, Source, VolumeRecord
from volumehost_loop_driver.sizes import MINIMUM_SIZES
from volumehost_loop_driver.snapshots import Snapshots
from volumehost_loop_driver.state import DriverState, shown
from volumehost_loop_driver.topology import accepts, reaches
from volumehost_loop_driver.volumes import Volumes, Wanted

if TYPE_CHECKING:
    import grpc


class ControllerService:
    """Answers the calls of the Controller service."""

    capabilities = (
        "CLONE_VOLUME",
        "PUBLISH_READONLY",
        "LIST_VOLUMES_PUBLISHED_NODES",
        "VOLUME_CONDITION",
        "SINGLE_NODE_MULTI_WRITER",
    )

    def __init__(self, state: DriverState, volumes: Volumes, snapshots: Snapshots) -> None:
        self._state = state
        self._volumes = volumes
        self._snapshots = snapshots

    # --- volumes ------------------------------------------------------------------------------------------

    @answering
    def create_volume(
        self, request: csi.CreateVolumeRequest, context: grpc.ServicerContext
    ) -> csi.CreateVolumeResponse:
        """Make a volume, blank or as a copy."""
        capabilities = [read_capability(capability) for capability in request.volume_capabilities]
        if not accepts(self._state.node_id, request.accessibility_requirements):
            raise ResourceExhaustedError(
                f"the volume would be on the node {self._state.node_id}, which is not among those that are asked for",
                action=f"create the volume {shown(request.name)}",
            )
        origin = request.volume_content_source
        wanted = Wanted(
            name=request.name,
            required=request.capacity_range.required_bytes,
            limit=request.capacity_range.limit_bytes,
            fs_type=read_fs_type(capabilities),
            thick=read_provisioning(request.parameters),
            settings=read_settings(request.mutable_parameters, Settings()),
            source=Source(snapshot_id=origin.snapshot.snapshot_id, volume_id=origin.volume.volume_id),
        )
        record = self._volumes.create(wanted, time_left(context))
        return csi.CreateVolumeResponse(volume=volume_message(record, self._state.node_id))

    @answering
    def delete_volume(self, request: csi.DeleteVolumeRequest, context: grpc.ServicerContext) -> None:
        """Delete a volume."""
        self._volumes.delete(request.volume_id, time_left(context))

    @answering
    def controller_publish_volume(
        self, request: csi.ControllerPublishVolumeRequest, context: grpc.ServicerContext
    ) -> csi.ControllerPublishVolumeResponse:
        """Give a volume to the node; whether it is read-only goes with it to NodeStageVolume."""
        read_capability(request.volume_capability)
        self._volumes.publish(
            request.volume_id, request.node_id, read_only=request.readonly, timeout=time_left(context)
        )
        shown_as = "true" if request.readonly else "false"
        return csi.ControllerPublishVolumeResponse(publish_context={READ_ONLY_KEY: shown_as})

    @answering
    def controller_unpublish_volume(
        self, request: csi.ControllerUnpublishVolumeRequest, context: grpc.ServicerContext
    ) -> None:
        """Take a volume from the node."""
        self._volumes.unpublish(request.volume_id, request.node_id, time_left(context))

    @answering
    def validate_volume_capabilities(
        self, request: csi.ValidateVolumeCapabilitiesRequest, _context: grpc.ServicerContext
    ) -> csi.ValidateVolumeCapabilitiesResponse:
        """Whether a volume can be used in these ways."""
        record = self._state.volume(request.volume_id)
        try:
            capabilities = [read_capability(capability) for capability in request.volume_capabilities]
            thick = read_provisioning(request.parameters) if request.parameters else record.thick
            read_settings(request.mutable_parameters, record.settings)
        except InvalidArgumentError as error:
            return csi.ValidateVolumeCapabilitiesResponse(message=str(error))
        fs_types = {item.fs_type for item in capabilities if item.fs_type}
        if record.fs_type and fs_types - {record.fs_type}:
            return csi.ValidateVolumeCapabilitiesResponse(message=f"its filesystem is {record.fs_type}")
        if thick != record.thick:
            return csi.ValidateVolumeCapabilitiesResponse(message="its provisioning is another")
        confirmed = csi.ValidateVolumeCapabilitiesResponse.Confirmed(
            volume_context=request.volume_context,
            volume_capabilities=request.volume_capabilities,
            parameters=request.parameters,
            mutable_parameters=request.mutable_parameters,
        )
        return csi.ValidateVolumeCapabilitiesResponse(confirmed=confirmed)

    @answering
    def list_volumes(self, request: csi.ListVolumesRequest, _context: grpc.ServicerContext) -> csi.ListVolumesResponse:
        """A page of all volumes but the ephemeral ones, which belong to their pods."""
        records, token = self._state.volumes.page(
            request.starting_token, request.max_entries, lambda record: not record.ephemeral
        )
        one = csi.ListVolumesResponse
        entries = [
            one.Entry(
                volume=volume_message(record, self._state.node_id),
                status=one.VolumeStatus(published_node_ids=_nodes(record), volume_condition=self._condition(record)),
            )
            for record in records
        ]
        return one(entries=entries, next_token=token)

    @answering
    def controller_get_volume(
        self, request: csi.ControllerGetVolumeRequest, _context: grpc.ServicerContext
    ) -> csi.ControllerGetVolumeResponse:
        """One volume, where it is published and what is wrong with it."""
        record = self._state.volume(request.volume_id)
        one = csi.ControllerGetVolumeResponse
        status = one.VolumeStatus(published_node_ids=_nodes(record), volume_condition=self._condition(record))
        return one(volume=volume_message(record, self._state.node_id), status=status)

    def _condition(self, record: VolumeRecord) -> csi.VolumeCondition:
        problem = self._volumes.condition(record)
        return csi.VolumeCondition(abnormal=bool(problem), message=problem or "the image is in order")

    @answering
    def get_capacity(self, request: csi.GetCapacityRequest, _context: grpc.ServicerContext) -> csi.GetCapacityResponse:
        """How large one more volume may be."""
        read_provisioning(request.parameters)
        try:
            fs_type = read_fs_type([read_capability(capability) for capability in request.volume_capabilities])
        except InvalidArgumentError:
            return csi.GetCapacityResponse()
        if not reaches(self._state.node_id, request.accessible_topology):
            return csi.GetCapacityResponse()
        available = self._state.capacity.available()
        return csi.GetCapacityResponse(
            available_capacity=available,
            minimum_volume_size=csi.Int64Value(value=MINIMUM_SIZES.get(fs_type, MINIMUM_SIZES[DEFAULT_FS_TYPE])),
            maximum_volume_size=csi.Int64Value(value=available),
        )

    @answering
    def controller_expand_volume(
        self, request: csi.ControllerExpandVolumeRequest, context: grpc.ServicerContext
    ) -> csi.ControllerExpandVolumeResponse:
        """Make a volume larger; a filesystem on it is for the node to grow."""
        block = request.HasField("volume_capability") and read_capability(request.volume_capability).block
        size = request.capacity_range
        record = self._volumes.expand(request.volume_id, size.required_bytes, size.limit_bytes, time_left(context))
        return csi.ControllerExpandVolumeResponse(
            capacity_bytes=record.size, node_expansion_required=bool(record.fs_type) and not block
        )

    @answering
    def controller_modify_volume(
        self, request: csi.ControllerModifyVolumeRequest, context: grpc.ServicerContext
    ) -> None:
        """Change read-ahead and direct I/O."""
        record = self._state.volume(request.volume_id)
        settings = read_settings(request.mutable_parameters, record.settings)
        self._volumes.modify(request.volume_id, settings, time_left(context))

    # --- snapshots ----------------------------------------------------------------------------------------

    @answering
    def create_snapshot(
        self, request: csi.CreateSnapshotRequest, context: grpc.ServicerContext
    ) -> csi.CreateSnapshotResponse:
        """Take a snapshot, which is ready when this returns."""
        refuse_parameters(request.parameters)
        record = self._snapshots.create(request.name, request.source_volume_id, time_left(context))
        return csi.CreateSnapshotResponse(snapshot=snapshot_message(record))

    @answering
    def delete_snapshot(self, request: csi.DeleteSnapshotRequest, context: grpc.ServicerContext) -> None:
        """Delete a snapshot."""
        self._snapshots.delete(request.snapshot_id, time_left(context))

    @answering
    def list_snapshots(
        self, request: csi.ListSnapshotsRequest, _context: grpc.ServicerContext
    ) -> csi.ListSnapshotsResponse:
        """A page of all snapshots, of those of a volume, or the one asked for."""
        if request.snapshot_id:
            found = self._state.snapshots.get(request.snapshot_id)
            wanted = found is not None and request.source_volume_id in {"", found.source_volume_id}
            records, token = ([found] if found is not None and wanted else []), ""
        else:
            volume_id = request.source_volume_id

            def of_volume(record: SnapshotRecord) -> bool:
                return not volume_id or record.source_volume_id == volume_id

            records, token = self._state.snapshots.page(request.starting_token, request.max_entries, of_volume)
        one = csi.ListSnapshotsResponse
        return one(entries=[one.Entry(snapshot=snapshot_message(record)) for record in records], next_token=token)

    @answering
    def get_snapshot(self, request: csi.GetSnapshotRequest, _context: grpc.ServicerContext) -> csi.GetSnapshotResponse:
        """One snapshot."""
        record = self._state.snapshots.get(request.snapshot_id)
        if record is None:
            raise NotFoundError(
                "there is no such snapshot",
                action=f"look for the snapshot {shown(request.snapshot_id)}",
                subject=request.snapshot_id,
            )
        return csi.GetSnapshotResponse(snapshot=snapshot_message(record))


def _nodes(record: VolumeRecord) -> list[str]:
    return [record.published_node] if record.published_node else []
