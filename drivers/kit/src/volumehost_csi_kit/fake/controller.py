# ruff: noqa: D102 - the methods are CSI's calls
"""The controller service of a fake driver: volumes and snapshots that exist in its books only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from volumehost_csi_kit import csi
from volumehost_csi_kit.fake.config import FakeConfig
from volumehost_csi_kit.fake.model import FakeModel, FakeSnapshot, FakeState, FakeVolume, made_id
from volumehost_csi_kit.server.errors import (
    AbortedError,
    AlreadyExistsError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
)
from volumehost_csi_kit.server.idempotency import chosen_size, fits

_Entry = TypeVar("_Entry")
_SHARED_MODES = ("MULTI_NODE_READER_ONLY", "MULTI_NODE_SINGLE_WRITER", "MULTI_NODE_MULTI_WRITER")


class FakeController:
    """Behaves as the specification has it; ``config`` is asked at each call."""

    def __init__(self, model: FakeModel, config: Callable[[], FakeConfig]) -> None:
        self._model = model
        self._config = config

    def controller_get_capabilities(self, _request: object, _context: object) -> csi.ControllerGetCapabilitiesResponse:
        rpc, one = csi.ControllerServiceCapability.RPC, csi.ControllerServiceCapability
        names = self._config().controller or ()
        return csi.ControllerGetCapabilitiesResponse(
            capabilities=[one(rpc=rpc(type=rpc.Type.Value(name))) for name in names]
        )

    def create_volume(self, request: csi.CreateVolumeRequest, _context: object) -> csi.CreateVolumeResponse:
        config = self._config()
        volume_id = made_id("vol", request.name)
        snapshot = request.volume_content_source.snapshot.snapshot_id
        source = request.volume_content_source.volume.volume_id
        with self._model.changing() as state:
            made = state.volumes.get(volume_id)
            if made is not None:
                if not fits(made.capacity_bytes, request.capacity_range):
                    raise AlreadyExistsError(f"{request.name} has {made.capacity_bytes} bytes")
                if (made.source_snapshot, made.source_volume) != (snapshot, source):
                    raise AlreadyExistsError(f"{request.name} has another content source")
                return csi.CreateVolumeResponse(volume=self._described(made))
            least = self._size_of_source(state, snapshot, source)
            size = chosen_size(request.capacity_range, default=max(config.default_volume_bytes, least))
            if size < least:
                raise OutOfRangeError(f"the source has {least} bytes")
            if size > config.capacity_bytes - sum(volume.capacity_bytes for volume in state.volumes.values()):
                raise ResourceExhaustedError(f"no {size} bytes are left")
            self._refuse_unreachable(request.accessibility_requirements)
            made = FakeVolume(
                volume_id,
                request.name,
                size,
                snapshot,
                source,
                {**request.parameters, **request.mutable_parameters},
            )
            state.volumes[volume_id] = made
            return csi.CreateVolumeResponse(volume=self._described(made))

    def delete_volume(self, request: csi.DeleteVolumeRequest, _context: object) -> None:
        with self._model.changing() as state:
            volume = state.volumes.get(request.volume_id)
            if volume is not None and volume.published_nodes:
                raise FailedPreconditionError(f"still published to {', '.join(volume.published_nodes)}")
            state.volumes.pop(request.volume_id, None)

    def controller_publish_volume(
        self, request: csi.ControllerPublishVolumeRequest, _context: object
    ) -> csi.ControllerPublishVolumeResponse:
        config = self._config()
        with self._model.changing() as state:
            volume = self._volume(state, request.volume_id)
            if request.node_id != config.node_id:
                raise NotFoundError(f"there is no node {request.node_id!r}")
            known = volume.published_nodes.get(request.node_id)
            if known is not None and known != request.readonly:
                raise AlreadyExistsError(f"published to {request.node_id} with readonly={known}")
            mode = csi.VolumeCapability.AccessMode.Mode.Name(request.volume_capability.access_mode.mode)
            others = set(volume.published_nodes) - {request.node_id}
            if others and mode not in _SHARED_MODES:
                raise FailedPreconditionError(f"published to {', '.join(sorted(others))} already")
            there = sum(request.node_id in other.published_nodes for other in state.volumes.values())
            if known is None and config.max_volumes and there >= config.max_volumes:
                raise ResourceExhaustedError(f"{request.node_id} has {there} volumes, and takes no more")
            volume.published_nodes[request.node_id] = request.readonly
        return csi.ControllerPublishVolumeResponse(publish_context={"fake.device": f"/dev/fake-{request.volume_id}"})

    def controller_unpublish_volume(self, request: csi.ControllerUnpublishVolumeRequest, _context: object) -> None:
        with self._model.changing() as state:
            volume = state.volumes.get(request.volume_id)
            if volume is None:
                return
            if request.node_id:
                volume.published_nodes.pop(request.node_id, None)
            else:
                volume.published_nodes.clear()

    def validate_volume_capabilities(
        self, request: csi.ValidateVolumeCapabilitiesRequest, _context: object
    ) -> csi.ValidateVolumeCapabilitiesResponse:
        with self._model.reading() as state:
            self._volume(state, request.volume_id)
        confirmed = csi.ValidateVolumeCapabilitiesResponse.Confirmed(
            volume_context=request.volume_context,
            volume_capabilities=request.volume_capabilities,
            parameters=request.parameters,
            mutable_parameters=request.mutable_parameters,
        )
        return csi.ValidateVolumeCapabilitiesResponse(confirmed=confirmed)

    def list_volumes(self, request: csi.ListVolumesRequest, _context: object) -> csi.ListVolumesResponse:
        with self._model.reading() as state:
            page, following = _page(list(state.volumes.values()), request.max_entries, request.starting_token)
            entries = [
                csi.ListVolumesResponse.Entry(
                    volume=self._described(volume),
                    status=csi.ListVolumesResponse.VolumeStatus(
                        published_node_ids=list(volume.published_nodes), volume_condition=self._condition()
                    ),
                )
                for volume in page
            ]
        return csi.ListVolumesResponse(entries=entries, next_token=following)

    def controller_get_volume(
        self, request: csi.ControllerGetVolumeRequest, _context: object
    ) -> csi.ControllerGetVolumeResponse:
        with self._model.reading() as state:
            volume = self._volume(state, request.volume_id)
            status = csi.ControllerGetVolumeResponse.VolumeStatus(
                published_node_ids=list(volume.published_nodes), volume_condition=self._condition()
            )
            return csi.ControllerGetVolumeResponse(volume=self._described(volume), status=status)

    def get_capacity(self, request: csi.GetCapacityRequest, _context: object) -> csi.GetCapacityResponse:
        config = self._config()
        segments = dict(request.accessible_topology.segments)
        if segments and config.topology and segments != dict(config.topology):
            return csi.GetCapacityResponse(available_capacity=0)
        with self._model.reading() as state:
            used = sum(volume.capacity_bytes for volume in state.volumes.values())
        free = max(0, config.capacity_bytes - used)
        return csi.GetCapacityResponse(
            available_capacity=free,
            maximum_volume_size=csi.Int64Value(value=free),
            minimum_volume_size=csi.Int64Value(value=1),
        )

    def controller_expand_volume(
        self, request: csi.ControllerExpandVolumeRequest, _context: object
    ) -> csi.ControllerExpandVolumeResponse:
        config = self._config()
        with self._model.changing() as state:
            volume = self._volume(state, request.volume_id)
            size = max(volume.capacity_bytes, request.capacity_range.required_bytes)
            if not fits(size, request.capacity_range) or size > config.capacity_bytes:
                raise OutOfRangeError(f"{request.volume_id} has {volume.capacity_bytes} bytes and cannot have {size}")
            volume.capacity_bytes = size
        return csi.ControllerExpandVolumeResponse(capacity_bytes=size, node_expansion_required=config.node_expansion)

    def controller_modify_volume(self, request: csi.ControllerModifyVolumeRequest, _context: object) -> None:
        with self._model.changing() as state:
            self._volume(state, request.volume_id).parameters.update(request.mutable_parameters)

    def create_snapshot(self, request: csi.CreateSnapshotRequest, _context: object) -> csi.CreateSnapshotResponse:
        snapshot_id = made_id("snap", request.name)
        with self._model.changing() as state:
            made = state.snapshots.get(snapshot_id)
            if made is None:
                volume = self._volume(state, request.source_volume_id)
                made = FakeSnapshot(snapshot_id, request.name, volume.volume_id, volume.capacity_bytes)
                state.snapshots[snapshot_id] = made
            elif made.source_volume_id != request.source_volume_id:
                raise AlreadyExistsError(f"{request.name} is a snapshot of {made.source_volume_id}")
        return csi.CreateSnapshotResponse(snapshot=_snapshot(made))

    def delete_snapshot(self, request: csi.DeleteSnapshotRequest, _context: object) -> None:
        with self._model.changing() as state:
            state.snapshots.pop(request.snapshot_id, None)

    def list_snapshots(self, request: csi.ListSnapshotsRequest, _context: object) -> csi.ListSnapshotsResponse:
        with self._model.reading() as state:
            wanted = [
                snapshot
                for snapshot in state.snapshots.values()
                if request.snapshot_id in ("", snapshot.snapshot_id)
                and request.source_volume_id in ("", snapshot.source_volume_id)
            ]
        page, following = _page(wanted, request.max_entries, request.starting_token)
        entries = [csi.ListSnapshotsResponse.Entry(snapshot=_snapshot(snapshot)) for snapshot in page]
        return csi.ListSnapshotsResponse(entries=entries, next_token=following)

    def get_snapshot(self, request: csi.GetSnapshotRequest, _context: object) -> csi.GetSnapshotResponse:
        with self._model.reading() as state:
            found = state.snapshots.get(request.snapshot_id)
        if found is None:
            raise NotFoundError(f"there is no snapshot {request.snapshot_id!r}")
        return csi.GetSnapshotResponse(snapshot=_snapshot(found))

    def _described(self, volume: FakeVolume) -> csi.Volume:
        segments = self._config().topology
        described = csi.Volume(
            volume_id=volume.volume_id,
            capacity_bytes=volume.capacity_bytes,
            volume_context={"fake.name": volume.name},
            accessible_topology=[csi.Topology(segments=segments)] if segments else [],
        )
        if volume.source_snapshot:
            described.content_source.snapshot.snapshot_id = volume.source_snapshot
        elif volume.source_volume:
            described.content_source.volume.volume_id = volume.source_volume
        return described

    def _condition(self) -> csi.VolumeCondition:
        abnormal = self._config().abnormal
        return csi.VolumeCondition(abnormal=bool(abnormal), message=abnormal or "fine")

    def _refuse_unreachable(self, wanted: csi.TopologyRequirement) -> None:
        own = dict(self._config().topology)
        if own and wanted.requisite and all(dict(topology.segments) != own for topology in wanted.requisite):
            raise ResourceExhaustedError(f"volumes are only reachable from {own}")

    @staticmethod
    def _volume(state: FakeState, volume_id: str) -> FakeVolume:
        found = state.volumes.get(volume_id)
        if found is None:
            raise NotFoundError(f"there is no volume {volume_id!r}")
        return found

    @staticmethod
    def _size_of_source(state: FakeState, snapshot: str, volume: str) -> int:
        if snapshot:
            if snapshot not in state.snapshots:
                raise NotFoundError(f"there is no snapshot {snapshot!r}")
            return state.snapshots[snapshot].size_bytes
        if volume:
            if volume not in state.volumes:
                raise NotFoundError(f"there is no volume {volume!r}")
            return state.volumes[volume].capacity_bytes
        return 0


def _snapshot(made: FakeSnapshot) -> csi.Snapshot:
    return csi.Snapshot(
        snapshot_id=made.snapshot_id,
        source_volume_id=made.source_volume_id,
        size_bytes=made.size_bytes,
        creation_time=csi.Timestamp(seconds=int(made.created)),
        ready_to_use=True,
    )


def _page(entries: Sequence[_Entry], most: int, token: str) -> tuple[Sequence[_Entry], str]:
    """One page, and the token of the next one."""
    if token and not (token.isdecimal() and int(token) <= len(entries)):
        raise AbortedError(f"starting_token {token!r} is not valid any more; list from the beginning")
    start = int(token or 0)
    end = start + most if most else len(entries)
    return entries[start:end], str(end) if end < len(entries) else ""
