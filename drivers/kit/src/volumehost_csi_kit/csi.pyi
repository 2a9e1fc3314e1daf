# Messages and enums of csi.v1. Generated from proto/ by `make bindings`; change that, not this.
# ruff: noqa: N802 - the names are protobuf's

from collections.abc import Iterable, Mapping
from typing import Literal

from google.protobuf.descriptor import FieldDescriptor, FileDescriptor
from google.protobuf.internal import well_known_types
from google.protobuf.internal.containers import (
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
    ScalarMap,
)
from google.protobuf.internal.enum_type_wrapper import _EnumTypeWrapper
from google.protobuf.message import Message

DESCRIPTOR: FileDescriptor

class BoolValue(Message):
    value: bool
    def __init__(self, *, value: bool = ...) -> None: ...

class Int64Value(Message):
    value: int
    def __init__(self, *, value: int = ...) -> None: ...

class Timestamp(Message, well_known_types.Timestamp):
    seconds: int
    nanos: int
    def __init__(self, *, seconds: int = ..., nanos: int = ...) -> None: ...

BlockMetadataType: _EnumTypeWrapper[int]
UNKNOWN: int
FIXED_LENGTH: int
VARIABLE_LENGTH: int

class VolumeCapability(Message):
    class BlockVolume(Message): ...

    class MountVolume(Message):
        fs_type: str
        @property
        def mount_flags(self) -> RepeatedScalarFieldContainer[str]: ...
        volume_mount_group: str
        def __init__(
            self,
            *,
            fs_type: str = ...,
            mount_flags: Iterable[str] | None = ...,
            volume_mount_group: str = ...,
        ) -> None: ...

    class AccessMode(Message):
        Mode: _EnumTypeWrapper[int]
        UNKNOWN: int
        SINGLE_NODE_WRITER: int
        SINGLE_NODE_READER_ONLY: int
        MULTI_NODE_READER_ONLY: int
        MULTI_NODE_SINGLE_WRITER: int
        MULTI_NODE_MULTI_WRITER: int
        SINGLE_NODE_SINGLE_WRITER: int
        SINGLE_NODE_MULTI_WRITER: int

        mode: int
        def __init__(
            self,
            *,
            mode: int = ...,
        ) -> None: ...

    @property
    def block(self) -> VolumeCapability.BlockVolume: ...
    @property
    def mount(self) -> VolumeCapability.MountVolume: ...
    @property
    def access_mode(self) -> VolumeCapability.AccessMode: ...
    def __init__(
        self,
        *,
        block: VolumeCapability.BlockVolume | None = ...,
        mount: VolumeCapability.MountVolume | None = ...,
        access_mode: VolumeCapability.AccessMode | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["block", "mount", "access_mode"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["access_type"]) -> Literal["block", "mount"] | None: ...

class CapacityRange(Message):
    required_bytes: int
    limit_bytes: int
    def __init__(
        self,
        *,
        required_bytes: int = ...,
        limit_bytes: int = ...,
    ) -> None: ...

class Topology(Message):
    @property
    def segments(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        segments: Mapping[str, str] | None = ...,
    ) -> None: ...

class TopologyRequirement(Message):
    @property
    def requisite(self) -> RepeatedCompositeFieldContainer[Topology]: ...
    @property
    def preferred(self) -> RepeatedCompositeFieldContainer[Topology]: ...
    def __init__(
        self,
        *,
        requisite: Iterable[Topology] | None = ...,
        preferred: Iterable[Topology] | None = ...,
    ) -> None: ...

class VolumeContentSource(Message):
    class SnapshotSource(Message):
        snapshot_id: str
        def __init__(
            self,
            *,
            snapshot_id: str = ...,
        ) -> None: ...

    class VolumeSource(Message):
        volume_id: str
        def __init__(
            self,
            *,
            volume_id: str = ...,
        ) -> None: ...

    @property
    def snapshot(self) -> VolumeContentSource.SnapshotSource: ...
    @property
    def volume(self) -> VolumeContentSource.VolumeSource: ...
    def __init__(
        self,
        *,
        snapshot: VolumeContentSource.SnapshotSource | None = ...,
        volume: VolumeContentSource.VolumeSource | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["snapshot", "volume"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["type"]) -> Literal["snapshot", "volume"] | None: ...

class Volume(Message):
    capacity_bytes: int
    volume_id: str
    @property
    def volume_context(self) -> ScalarMap[str, str]: ...
    @property
    def content_source(self) -> VolumeContentSource: ...
    @property
    def accessible_topology(self) -> RepeatedCompositeFieldContainer[Topology]: ...
    def __init__(
        self,
        *,
        capacity_bytes: int = ...,
        volume_id: str = ...,
        volume_context: Mapping[str, str] | None = ...,
        content_source: VolumeContentSource | None = ...,
        accessible_topology: Iterable[Topology] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["content_source"]) -> bool: ...

class VolumeCondition(Message):
    abnormal: bool
    message: str
    def __init__(
        self,
        *,
        abnormal: bool = ...,
        message: str = ...,
    ) -> None: ...

class Snapshot(Message):
    size_bytes: int
    snapshot_id: str
    source_volume_id: str
    @property
    def creation_time(self) -> Timestamp: ...
    ready_to_use: bool
    group_snapshot_id: str
    def __init__(
        self,
        *,
        size_bytes: int = ...,
        snapshot_id: str = ...,
        source_volume_id: str = ...,
        creation_time: Timestamp | None = ...,
        ready_to_use: bool = ...,
        group_snapshot_id: str = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["creation_time"]) -> bool: ...

class GetPluginInfoRequest(Message): ...

class GetPluginInfoResponse(Message):
    name: str
    vendor_version: str
    @property
    def manifest(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        name: str = ...,
        vendor_version: str = ...,
        manifest: Mapping[str, str] | None = ...,
    ) -> None: ...

class GetPluginCapabilitiesRequest(Message): ...

class GetPluginCapabilitiesResponse(Message):
    @property
    def capabilities(self) -> RepeatedCompositeFieldContainer[PluginCapability]: ...
    def __init__(
        self,
        *,
        capabilities: Iterable[PluginCapability] | None = ...,
    ) -> None: ...

class PluginCapability(Message):
    class Service(Message):
        Type: _EnumTypeWrapper[int]
        UNKNOWN: int
        CONTROLLER_SERVICE: int
        VOLUME_ACCESSIBILITY_CONSTRAINTS: int
        GROUP_CONTROLLER_SERVICE: int
        SNAPSHOT_METADATA_SERVICE: int

        type: int
        def __init__(
            self,
            *,
            type: int = ...,
        ) -> None: ...

    class VolumeExpansion(Message):
        Type: _EnumTypeWrapper[int]
        UNKNOWN: int
        ONLINE: int
        OFFLINE: int

        type: int
        def __init__(
            self,
            *,
            type: int = ...,
        ) -> None: ...

    @property
    def service(self) -> PluginCapability.Service: ...
    @property
    def volume_expansion(self) -> PluginCapability.VolumeExpansion: ...
    def __init__(
        self,
        *,
        service: PluginCapability.Service | None = ...,
        volume_expansion: PluginCapability.VolumeExpansion | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["service", "volume_expansion"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["type"]) -> Literal["service", "volume_expansion"] | None: ...

class ProbeRequest(Message): ...

class ProbeResponse(Message):
    @property
    def ready(self) -> BoolValue: ...
    def __init__(
        self,
        *,
        ready: BoolValue | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["ready"]) -> bool: ...

class CreateVolumeRequest(Message):
    name: str
    @property
    def capacity_range(self) -> CapacityRange: ...
    @property
    def volume_capabilities(self) -> RepeatedCompositeFieldContainer[VolumeCapability]: ...
    @property
    def parameters(self) -> ScalarMap[str, str]: ...
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    @property
    def volume_content_source(self) -> VolumeContentSource: ...
    @property
    def accessibility_requirements(self) -> TopologyRequirement: ...
    @property
    def mutable_parameters(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        name: str = ...,
        capacity_range: CapacityRange | None = ...,
        volume_capabilities: Iterable[VolumeCapability] | None = ...,
        parameters: Mapping[str, str] | None = ...,
        secrets: Mapping[str, str] | None = ...,
        volume_content_source: VolumeContentSource | None = ...,
        accessibility_requirements: TopologyRequirement | None = ...,
        mutable_parameters: Mapping[str, str] | None = ...,
    ) -> None: ...
    def HasField(
        self, field_name: Literal["capacity_range", "volume_content_source", "accessibility_requirements"]
    ) -> bool: ...

class CreateVolumeResponse(Message):
    @property
    def volume(self) -> Volume: ...
    def __init__(
        self,
        *,
        volume: Volume | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["volume"]) -> bool: ...

class DeleteVolumeRequest(Message):
    volume_id: str
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        volume_id: str = ...,
        secrets: Mapping[str, str] | None = ...,
    ) -> None: ...

class DeleteVolumeResponse(Message): ...

class ControllerPublishVolumeRequest(Message):
    volume_id: str
    node_id: str
    @property
    def volume_capability(self) -> VolumeCapability: ...
    readonly: bool
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    @property
    def volume_context(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        volume_id: str = ...,
        node_id: str = ...,
        volume_capability: VolumeCapability | None = ...,
        readonly: bool = ...,
        secrets: Mapping[str, str] | None = ...,
        volume_context: Mapping[str, str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["volume_capability"]) -> bool: ...

class ControllerPublishVolumeResponse(Message):
    @property
    def publish_context(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        publish_context: Mapping[str, str] | None = ...,
    ) -> None: ...

class ControllerUnpublishVolumeRequest(Message):
    volume_id: str
    node_id: str
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        volume_id: str = ...,
        node_id: str = ...,
        secrets: Mapping[str, str] | None = ...,
    ) -> None: ...

class ControllerUnpublishVolumeResponse(Message): ...

class ValidateVolumeCapabilitiesRequest(Message):
    volume_id: str
    @property
    def volume_context(self) -> ScalarMap[str, str]: ...
    @property
    def volume_capabilities(self) -> RepeatedCompositeFieldContainer[VolumeCapability]: ...
    @property
    def parameters(self) -> ScalarMap[str, str]: ...
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    @property
    def mutable_parameters(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        volume_id: str = ...,
        volume_context: Mapping[str, str] | None = ...,
        volume_capabilities: Iterable[VolumeCapability] | None = ...,
        parameters: Mapping[str, str] | None = ...,
        secrets: Mapping[str, str] | None = ...,
        mutable_parameters: Mapping[str, str] | None = ...,
    ) -> None: ...

class ValidateVolumeCapabilitiesResponse(Message):
    class Confirmed(Message):
        @property
        def volume_context(self) -> ScalarMap[str, str]: ...
        @property
        def volume_capabilities(self) -> RepeatedCompositeFieldContainer[VolumeCapability]: ...
        @property
        def parameters(self) -> ScalarMap[str, str]: ...
        @property
        def mutable_parameters(self) -> ScalarMap[str, str]: ...
        def __init__(
            self,
            *,
            volume_context: Mapping[str, str] | None = ...,
            volume_capabilities: Iterable[VolumeCapability] | None = ...,
            parameters: Mapping[str, str] | None = ...,
            mutable_parameters: Mapping[str, str] | None = ...,
        ) -> None: ...

    @property
    def confirmed(self) -> ValidateVolumeCapabilitiesResponse.Confirmed: ...
    message: str
    def __init__(
        self,
        *,
        confirmed: ValidateVolumeCapabilitiesResponse.Confirmed | None = ...,
        message: str = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["confirmed"]) -> bool: ...

class ListVolumesRequest(Message):
    max_entries: int
    starting_token: str
    def __init__(
        self,
        *,
        max_entries: int = ...,
        starting_token: str = ...,
    ) -> None: ...

class ListVolumesResponse(Message):
    class VolumeStatus(Message):
        @property
        def published_node_ids(self) -> RepeatedScalarFieldContainer[str]: ...
        @property
        def volume_condition(self) -> VolumeCondition: ...
        def __init__(
            self,
            *,
            published_node_ids: Iterable[str] | None = ...,
            volume_condition: VolumeCondition | None = ...,
        ) -> None: ...
        def HasField(self, field_name: Literal["volume_condition"]) -> bool: ...

    class Entry(Message):
        @property
        def volume(self) -> Volume: ...
        @property
        def status(self) -> ListVolumesResponse.VolumeStatus: ...
        def __init__(
            self,
            *,
            volume: Volume | None = ...,
            status: ListVolumesResponse.VolumeStatus | None = ...,
        ) -> None: ...
        def HasField(self, field_name: Literal["volume", "status"]) -> bool: ...

    @property
    def entries(self) -> RepeatedCompositeFieldContainer[ListVolumesResponse.Entry]: ...
    next_token: str
    def __init__(
        self,
        *,
        entries: Iterable[ListVolumesResponse.Entry] | None = ...,
        next_token: str = ...,
    ) -> None: ...

class ControllerGetVolumeRequest(Message):
    volume_id: str
    def __init__(
        self,
        *,
        volume_id: str = ...,
    ) -> None: ...

class ControllerGetVolumeResponse(Message):
    class VolumeStatus(Message):
        @property
        def published_node_ids(self) -> RepeatedScalarFieldContainer[str]: ...
        @property
        def volume_condition(self) -> VolumeCondition: ...
        def __init__(
            self,
            *,
            published_node_ids: Iterable[str] | None = ...,
            volume_condition: VolumeCondition | None = ...,
        ) -> None: ...
        def HasField(self, field_name: Literal["volume_condition"]) -> bool: ...

    @property
    def volume(self) -> Volume: ...
    @property
    def status(self) -> ControllerGetVolumeResponse.VolumeStatus: ...
    def __init__(
        self,
        *,
        volume: Volume | None = ...,
        status: ControllerGetVolumeResponse.VolumeStatus | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["volume", "status"]) -> bool: ...

class ControllerModifyVolumeRequest(Message):
    volume_id: str
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    @property
    def mutable_parameters(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        volume_id: str = ...,
        secrets: Mapping[str, str] | None = ...,
        mutable_parameters: Mapping[str, str] | None = ...,
    ) -> None: ...

class ControllerModifyVolumeResponse(Message): ...

class ControllerExpandVolumeRequest(Message):
    volume_id: str
    @property
    def capacity_range(self) -> CapacityRange: ...
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    @property
    def volume_capability(self) -> VolumeCapability: ...
    def __init__(
        self,
        *,
        volume_id: str = ...,
        capacity_range: CapacityRange | None = ...,
        secrets: Mapping[str, str] | None = ...,
        volume_capability: VolumeCapability | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["capacity_range", "volume_capability"]) -> bool: ...

class ControllerExpandVolumeResponse(Message):
    capacity_bytes: int
    node_expansion_required: bool
    def __init__(
        self,
        *,
        capacity_bytes: int = ...,
        node_expansion_required: bool = ...,
    ) -> None: ...

class GetCapacityRequest(Message):
    @property
    def volume_capabilities(self) -> RepeatedCompositeFieldContainer[VolumeCapability]: ...
    @property
    def parameters(self) -> ScalarMap[str, str]: ...
    @property
    def accessible_topology(self) -> Topology: ...
    def __init__(
        self,
        *,
        volume_capabilities: Iterable[VolumeCapability] | None = ...,
        parameters: Mapping[str, str] | None = ...,
        accessible_topology: Topology | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["accessible_topology"]) -> bool: ...

class GetCapacityResponse(Message):
    available_capacity: int
    @property
    def maximum_volume_size(self) -> Int64Value: ...
    @property
    def minimum_volume_size(self) -> Int64Value: ...
    def __init__(
        self,
        *,
        available_capacity: int = ...,
        maximum_volume_size: Int64Value | None = ...,
        minimum_volume_size: Int64Value | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["maximum_volume_size", "minimum_volume_size"]) -> bool: ...

class ControllerGetCapabilitiesRequest(Message): ...

class ControllerGetCapabilitiesResponse(Message):
    @property
    def capabilities(self) -> RepeatedCompositeFieldContainer[ControllerServiceCapability]: ...
    def __init__(
        self,
        *,
        capabilities: Iterable[ControllerServiceCapability] | None = ...,
    ) -> None: ...

class ControllerServiceCapability(Message):
    class RPC(Message):
        Type: _EnumTypeWrapper[int]
        UNKNOWN: int
        CREATE_DELETE_VOLUME: int
        PUBLISH_UNPUBLISH_VOLUME: int
        LIST_VOLUMES: int
        GET_CAPACITY: int
        CREATE_DELETE_SNAPSHOT: int
        LIST_SNAPSHOTS: int
        CLONE_VOLUME: int
        PUBLISH_READONLY: int
        EXPAND_VOLUME: int
        LIST_VOLUMES_PUBLISHED_NODES: int
        VOLUME_CONDITION: int
        GET_VOLUME: int
        SINGLE_NODE_MULTI_WRITER: int
        MODIFY_VOLUME: int
        GET_SNAPSHOT: int

        type: int
        def __init__(
            self,
            *,
            type: int = ...,
        ) -> None: ...

    @property
    def rpc(self) -> ControllerServiceCapability.RPC: ...
    def __init__(
        self,
        *,
        rpc: ControllerServiceCapability.RPC | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["rpc"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["type"]) -> Literal["rpc"] | None: ...

class CreateSnapshotRequest(Message):
    source_volume_id: str
    name: str
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    @property
    def parameters(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        source_volume_id: str = ...,
        name: str = ...,
        secrets: Mapping[str, str] | None = ...,
        parameters: Mapping[str, str] | None = ...,
    ) -> None: ...

class CreateSnapshotResponse(Message):
    @property
    def snapshot(self) -> Snapshot: ...
    def __init__(
        self,
        *,
        snapshot: Snapshot | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["snapshot"]) -> bool: ...

class DeleteSnapshotRequest(Message):
    snapshot_id: str
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        snapshot_id: str = ...,
        secrets: Mapping[str, str] | None = ...,
    ) -> None: ...

class DeleteSnapshotResponse(Message): ...

class ListSnapshotsRequest(Message):
    max_entries: int
    starting_token: str
    source_volume_id: str
    snapshot_id: str
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        max_entries: int = ...,
        starting_token: str = ...,
        source_volume_id: str = ...,
        snapshot_id: str = ...,
        secrets: Mapping[str, str] | None = ...,
    ) -> None: ...

class ListSnapshotsResponse(Message):
    class Entry(Message):
        @property
        def snapshot(self) -> Snapshot: ...
        def __init__(
            self,
            *,
            snapshot: Snapshot | None = ...,
        ) -> None: ...
        def HasField(self, field_name: Literal["snapshot"]) -> bool: ...

    @property
    def entries(self) -> RepeatedCompositeFieldContainer[ListSnapshotsResponse.Entry]: ...
    next_token: str
    def __init__(
        self,
        *,
        entries: Iterable[ListSnapshotsResponse.Entry] | None = ...,
        next_token: str = ...,
    ) -> None: ...

class GetSnapshotRequest(Message):
    snapshot_id: str
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        snapshot_id: str = ...,
        secrets: Mapping[str, str] | None = ...,
    ) -> None: ...

class GetSnapshotResponse(Message):
    @property
    def snapshot(self) -> Snapshot: ...
    def __init__(
        self,
        *,
        snapshot: Snapshot | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["snapshot"]) -> bool: ...

class GroupControllerGetCapabilitiesRequest(Message): ...

class GroupControllerGetCapabilitiesResponse(Message):
    @property
    def capabilities(self) -> RepeatedCompositeFieldContainer[GroupControllerServiceCapability]: ...
    def __init__(
        self,
        *,
        capabilities: Iterable[GroupControllerServiceCapability] | None = ...,
    ) -> None: ...

class GroupControllerServiceCapability(Message):
    class RPC(Message):
        Type: _EnumTypeWrapper[int]
        UNKNOWN: int
        CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT: int

        type: int
        def __init__(
            self,
            *,
            type: int = ...,
        ) -> None: ...

    @property
    def rpc(self) -> GroupControllerServiceCapability.RPC: ...
    def __init__(
        self,
        *,
        rpc: GroupControllerServiceCapability.RPC | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["rpc"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["type"]) -> Literal["rpc"] | None: ...

class VolumeGroupSnapshot(Message):
    group_snapshot_id: str
    @property
    def snapshots(self) -> RepeatedCompositeFieldContainer[Snapshot]: ...
    @property
    def creation_time(self) -> Timestamp: ...
    ready_to_use: bool
    def __init__(
        self,
        *,
        group_snapshot_id: str = ...,
        snapshots: Iterable[Snapshot] | None = ...,
        creation_time: Timestamp | None = ...,
        ready_to_use: bool = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["creation_time"]) -> bool: ...

class CreateVolumeGroupSnapshotRequest(Message):
    name: str
    @property
    def source_volume_ids(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    @property
    def parameters(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        name: str = ...,
        source_volume_ids: Iterable[str] | None = ...,
        secrets: Mapping[str, str] | None = ...,
        parameters: Mapping[str, str] | None = ...,
    ) -> None: ...

class CreateVolumeGroupSnapshotResponse(Message):
    @property
    def group_snapshot(self) -> VolumeGroupSnapshot: ...
    def __init__(
        self,
        *,
        group_snapshot: VolumeGroupSnapshot | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["group_snapshot"]) -> bool: ...

class DeleteVolumeGroupSnapshotRequest(Message):
    group_snapshot_id: str
    @property
    def snapshot_ids(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        group_snapshot_id: str = ...,
        snapshot_ids: Iterable[str] | None = ...,
        secrets: Mapping[str, str] | None = ...,
    ) -> None: ...

class DeleteVolumeGroupSnapshotResponse(Message): ...

class GetVolumeGroupSnapshotRequest(Message):
    group_snapshot_id: str
    @property
    def snapshot_ids(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        group_snapshot_id: str = ...,
        snapshot_ids: Iterable[str] | None = ...,
        secrets: Mapping[str, str] | None = ...,
    ) -> None: ...

class GetVolumeGroupSnapshotResponse(Message):
    @property
    def group_snapshot(self) -> VolumeGroupSnapshot: ...
    def __init__(
        self,
        *,
        group_snapshot: VolumeGroupSnapshot | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["group_snapshot"]) -> bool: ...

class BlockMetadata(Message):
    byte_offset: int
    size_bytes: int
    def __init__(
        self,
        *,
        byte_offset: int = ...,
        size_bytes: int = ...,
    ) -> None: ...

class GetMetadataAllocatedRequest(Message):
    snapshot_id: str
    starting_offset: int
    max_results: int
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        snapshot_id: str = ...,
        starting_offset: int = ...,
        max_results: int = ...,
        secrets: Mapping[str, str] | None = ...,
    ) -> None: ...

class GetMetadataAllocatedResponse(Message):
    block_metadata_type: int
    volume_capacity_bytes: int
    @property
    def block_metadata(self) -> RepeatedCompositeFieldContainer[BlockMetadata]: ...
    def __init__(
        self,
        *,
        block_metadata_type: int = ...,
        volume_capacity_bytes: int = ...,
        block_metadata: Iterable[BlockMetadata] | None = ...,
    ) -> None: ...

class GetMetadataDeltaRequest(Message):
    base_snapshot_id: str
    target_snapshot_id: str
    starting_offset: int
    max_results: int
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        base_snapshot_id: str = ...,
        target_snapshot_id: str = ...,
        starting_offset: int = ...,
        max_results: int = ...,
        secrets: Mapping[str, str] | None = ...,
    ) -> None: ...

class GetMetadataDeltaResponse(Message):
    block_metadata_type: int
    volume_capacity_bytes: int
    @property
    def block_metadata(self) -> RepeatedCompositeFieldContainer[BlockMetadata]: ...
    def __init__(
        self,
        *,
        block_metadata_type: int = ...,
        volume_capacity_bytes: int = ...,
        block_metadata: Iterable[BlockMetadata] | None = ...,
    ) -> None: ...

class NodeStageVolumeRequest(Message):
    volume_id: str
    @property
    def publish_context(self) -> ScalarMap[str, str]: ...
    staging_target_path: str
    @property
    def volume_capability(self) -> VolumeCapability: ...
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    @property
    def volume_context(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        volume_id: str = ...,
        publish_context: Mapping[str, str] | None = ...,
        staging_target_path: str = ...,
        volume_capability: VolumeCapability | None = ...,
        secrets: Mapping[str, str] | None = ...,
        volume_context: Mapping[str, str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["volume_capability"]) -> bool: ...

class NodeStageVolumeResponse(Message): ...

class NodeUnstageVolumeRequest(Message):
    volume_id: str
    staging_target_path: str
    def __init__(
        self,
        *,
        volume_id: str = ...,
        staging_target_path: str = ...,
    ) -> None: ...

class NodeUnstageVolumeResponse(Message): ...

class NodePublishVolumeRequest(Message):
    volume_id: str
    @property
    def publish_context(self) -> ScalarMap[str, str]: ...
    staging_target_path: str
    target_path: str
    @property
    def volume_capability(self) -> VolumeCapability: ...
    readonly: bool
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    @property
    def volume_context(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        volume_id: str = ...,
        publish_context: Mapping[str, str] | None = ...,
        staging_target_path: str = ...,
        target_path: str = ...,
        volume_capability: VolumeCapability | None = ...,
        readonly: bool = ...,
        secrets: Mapping[str, str] | None = ...,
        volume_context: Mapping[str, str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["volume_capability"]) -> bool: ...

class NodePublishVolumeResponse(Message): ...

class NodeUnpublishVolumeRequest(Message):
    volume_id: str
    target_path: str
    def __init__(
        self,
        *,
        volume_id: str = ...,
        target_path: str = ...,
    ) -> None: ...

class NodeUnpublishVolumeResponse(Message): ...

class NodeGetVolumeStatsRequest(Message):
    volume_id: str
    volume_path: str
    staging_target_path: str
    def __init__(
        self,
        *,
        volume_id: str = ...,
        volume_path: str = ...,
        staging_target_path: str = ...,
    ) -> None: ...

class NodeGetVolumeStatsResponse(Message):
    @property
    def usage(self) -> RepeatedCompositeFieldContainer[VolumeUsage]: ...
    @property
    def volume_condition(self) -> VolumeCondition: ...
    def __init__(
        self,
        *,
        usage: Iterable[VolumeUsage] | None = ...,
        volume_condition: VolumeCondition | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["volume_condition"]) -> bool: ...

class VolumeUsage(Message):
    Unit: _EnumTypeWrapper[int]
    UNKNOWN: int
    BYTES: int
    INODES: int

    available: int
    total: int
    used: int
    unit: int
    def __init__(
        self,
        *,
        available: int = ...,
        total: int = ...,
        used: int = ...,
        unit: int = ...,
    ) -> None: ...

class NodeExpandVolumeRequest(Message):
    volume_id: str
    volume_path: str
    @property
    def capacity_range(self) -> CapacityRange: ...
    staging_target_path: str
    @property
    def volume_capability(self) -> VolumeCapability: ...
    @property
    def secrets(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        volume_id: str = ...,
        volume_path: str = ...,
        capacity_range: CapacityRange | None = ...,
        staging_target_path: str = ...,
        volume_capability: VolumeCapability | None = ...,
        secrets: Mapping[str, str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["capacity_range", "volume_capability"]) -> bool: ...

class NodeExpandVolumeResponse(Message):
    capacity_bytes: int
    def __init__(
        self,
        *,
        capacity_bytes: int = ...,
    ) -> None: ...

class NodeGetCapabilitiesRequest(Message): ...

class NodeGetCapabilitiesResponse(Message):
    @property
    def capabilities(self) -> RepeatedCompositeFieldContainer[NodeServiceCapability]: ...
    def __init__(
        self,
        *,
        capabilities: Iterable[NodeServiceCapability] | None = ...,
    ) -> None: ...

class NodeServiceCapability(Message):
    class RPC(Message):
        Type: _EnumTypeWrapper[int]
        UNKNOWN: int
        STAGE_UNSTAGE_VOLUME: int
        GET_VOLUME_STATS: int
        EXPAND_VOLUME: int
        VOLUME_CONDITION: int
        SINGLE_NODE_MULTI_WRITER: int
        VOLUME_MOUNT_GROUP: int

        type: int
        def __init__(
            self,
            *,
            type: int = ...,
        ) -> None: ...

    @property
    def rpc(self) -> NodeServiceCapability.RPC: ...
    def __init__(
        self,
        *,
        rpc: NodeServiceCapability.RPC | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["rpc"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["type"]) -> Literal["rpc"] | None: ...

class NodeGetInfoRequest(Message): ...

class NodeGetInfoResponse(Message):
    node_id: str
    max_volumes_per_node: int
    @property
    def accessible_topology(self) -> Topology: ...
    def __init__(
        self,
        *,
        node_id: str = ...,
        max_volumes_per_node: int = ...,
        accessible_topology: Topology | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["accessible_topology"]) -> bool: ...

csi_secret: FieldDescriptor
alpha_field: FieldDescriptor
alpha_enum: FieldDescriptor
alpha_enum_value: FieldDescriptor
alpha_message: FieldDescriptor
alpha_method: FieldDescriptor
alpha_service: FieldDescriptor
