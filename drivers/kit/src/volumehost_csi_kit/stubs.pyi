# Typed client stubs. Generated from proto/ by `make bindings`; change that, not this.

import grpc

from volumehost_csi_kit import csi, registration

class IdentityStub:
    def __init__(self, channel: grpc.Channel) -> None: ...
    GetPluginInfo: grpc.UnaryUnaryMultiCallable[
        csi.GetPluginInfoRequest,
        csi.GetPluginInfoResponse,
    ]
    GetPluginCapabilities: grpc.UnaryUnaryMultiCallable[
        csi.GetPluginCapabilitiesRequest,
        csi.GetPluginCapabilitiesResponse,
    ]
    Probe: grpc.UnaryUnaryMultiCallable[
        csi.ProbeRequest,
        csi.ProbeResponse,
    ]

class ControllerStub:
    def __init__(self, channel: grpc.Channel) -> None: ...
    CreateVolume: grpc.UnaryUnaryMultiCallable[
        csi.CreateVolumeRequest,
        csi.CreateVolumeResponse,
    ]
    DeleteVolume: grpc.UnaryUnaryMultiCallable[
        csi.DeleteVolumeRequest,
        csi.DeleteVolumeResponse,
    ]
    ControllerPublishVolume: grpc.UnaryUnaryMultiCallable[
        csi.ControllerPublishVolumeRequest,
        csi.ControllerPublishVolumeResponse,
    ]
    ControllerUnpublishVolume: grpc.UnaryUnaryMultiCallable[
        csi.ControllerUnpublishVolumeRequest,
        csi.ControllerUnpublishVolumeResponse,
    ]
    ValidateVolumeCapabilities: grpc.UnaryUnaryMultiCallable[
        csi.ValidateVolumeCapabilitiesRequest,
        csi.ValidateVolumeCapabilitiesResponse,
    ]
    ListVolumes: grpc.UnaryUnaryMultiCallable[
        csi.ListVolumesRequest,
        csi.ListVolumesResponse,
    ]
    GetCapacity: grpc.UnaryUnaryMultiCallable[
        csi.GetCapacityRequest,
        csi.GetCapacityResponse,
    ]
    ControllerGetCapabilities: grpc.UnaryUnaryMultiCallable[
        csi.ControllerGetCapabilitiesRequest,
        csi.ControllerGetCapabilitiesResponse,
    ]
    CreateSnapshot: grpc.UnaryUnaryMultiCallable[
        csi.CreateSnapshotRequest,
        csi.CreateSnapshotResponse,
    ]
    DeleteSnapshot: grpc.UnaryUnaryMultiCallable[
        csi.DeleteSnapshotRequest,
        csi.DeleteSnapshotResponse,
    ]
    ListSnapshots: grpc.UnaryUnaryMultiCallable[
        csi.ListSnapshotsRequest,
        csi.ListSnapshotsResponse,
    ]
    GetSnapshot: grpc.UnaryUnaryMultiCallable[
        csi.GetSnapshotRequest,
        csi.GetSnapshotResponse,
    ]
    ControllerExpandVolume: grpc.UnaryUnaryMultiCallable[
        csi.ControllerExpandVolumeRequest,
        csi.ControllerExpandVolumeResponse,
    ]
    ControllerGetVolume: grpc.UnaryUnaryMultiCallable[
        csi.ControllerGetVolumeRequest,
        csi.ControllerGetVolumeResponse,
    ]
    ControllerModifyVolume: grpc.UnaryUnaryMultiCallable[
        csi.ControllerModifyVolumeRequest,
        csi.ControllerModifyVolumeResponse,
    ]

class GroupControllerStub:
    def __init__(self, channel: grpc.Channel) -> None: ...
    GroupControllerGetCapabilities: grpc.UnaryUnaryMultiCallable[
        csi.GroupControllerGetCapabilitiesRequest,
        csi.GroupControllerGetCapabilitiesResponse,
    ]
    CreateVolumeGroupSnapshot: grpc.UnaryUnaryMultiCallable[
        csi.CreateVolumeGroupSnapshotRequest,
        csi.CreateVolumeGroupSnapshotResponse,
    ]
    DeleteVolumeGroupSnapshot: grpc.UnaryUnaryMultiCallable[
        csi.DeleteVolumeGroupSnapshotRequest,
        csi.DeleteVolumeGroupSnapshotResponse,
    ]
    GetVolumeGroupSnapshot: grpc.UnaryUnaryMultiCallable[
        csi.GetVolumeGroupSnapshotRequest,
        csi.GetVolumeGroupSnapshotResponse,
    ]

class SnapshotMetadataStub:
    def __init__(self, channel: grpc.Channel) -> None: ...
    GetMetadataAllocated: grpc.UnaryStreamMultiCallable[
        csi.GetMetadataAllocatedRequest,
        csi.GetMetadataAllocatedResponse,
    ]
    GetMetadataDelta: grpc.UnaryStreamMultiCallable[
        csi.GetMetadataDeltaRequest,
        csi.GetMetadataDeltaResponse,
    ]

class NodeStub:
    def __init__(self, channel: grpc.Channel) -> None: ...
    NodeStageVolume: grpc.UnaryUnaryMultiCallable[
        csi.NodeStageVolumeRequest,
        csi.NodeStageVolumeResponse,
    ]
    NodeUnstageVolume: grpc.UnaryUnaryMultiCallable[
        csi.NodeUnstageVolumeRequest,
        csi.NodeUnstageVolumeResponse,
    ]
    NodePublishVolume: grpc.UnaryUnaryMultiCallable[
        csi.NodePublishVolumeRequest,
        csi.NodePublishVolumeResponse,
    ]
    NodeUnpublishVolume: grpc.UnaryUnaryMultiCallable[
        csi.NodeUnpublishVolumeRequest,
        csi.NodeUnpublishVolumeResponse,
    ]
    NodeGetVolumeStats: grpc.UnaryUnaryMultiCallable[
        csi.NodeGetVolumeStatsRequest,
        csi.NodeGetVolumeStatsResponse,
    ]
    NodeExpandVolume: grpc.UnaryUnaryMultiCallable[
        csi.NodeExpandVolumeRequest,
        csi.NodeExpandVolumeResponse,
    ]
    NodeGetCapabilities: grpc.UnaryUnaryMultiCallable[
        csi.NodeGetCapabilitiesRequest,
        csi.NodeGetCapabilitiesResponse,
    ]
    NodeGetInfo: grpc.UnaryUnaryMultiCallable[
        csi.NodeGetInfoRequest,
        csi.NodeGetInfoResponse,
    ]

class RegistrationStub:
    def __init__(self, channel: grpc.Channel) -> None: ...
    GetInfo: grpc.UnaryUnaryMultiCallable[
        registration.InfoRequest,
        registration.PluginInfo,
    ]
    NotifyRegistrationStatus: grpc.UnaryUnaryMultiCallable[
        registration.RegistrationStatus,
        registration.RegistrationStatusResponse,
    ]
