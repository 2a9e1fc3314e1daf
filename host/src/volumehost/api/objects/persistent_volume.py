"""PersistentVolume: a piece of storage that outlives pods, with all sources that Kubernetes knows."""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from volumehost.api.objects.base import ApiStruct, ResourceList, always
from volumehost.api.objects.cloud_sources import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFilePersistentVolumeSource,
    CinderPersistentVolumeSource,
    GCEPersistentDiskVolumeSource,
    PhotonPersistentDiskVolumeSource,
    VsphereVirtualDiskVolumeSource,
)
from volumehost.api.objects.csi_sources import CSIPersistentVolumeSource, FlexPersistentVolumeSource
from volumehost.api.objects.local_sources import HostPathVolumeSource, LocalVolumeSource
from volumehost.api.objects.meta import KubeObject, NodeSelector, ObjectReference
from volumehost.api.objects.network_sources import (
    CephFSPersistentVolumeSource,
    FCVolumeSource,
    FlockerVolumeSource,
    GlusterfsPersistentVolumeSource,
    ISCSIPersistentVolumeSource,
    NFSVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    RBDPersistentVolumeSource,
    ScaleIOPersistentVolumeSource,
    StorageOSPersistentVolumeSource,
)


class VolumeNodeAffinity(ApiStruct):
    """The nodes from which a volume can be reached; unset means all."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiStruct):
    """The storage and how it may be used; exactly one of the fields named in ``SOURCES`` is set."""

    capacity: ResourceList = {}
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    glusterfs: GlusterfsPersistentVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    rbd: RBDPersistentVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    cephfs: CephFSPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    flex_volume: FlexPersistentVolumeSource | None = None
    azure_file: AzureFilePersistentVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    scale_io: ScaleIOPersistentVolumeSource | None = field(default=None, name="scaleIO")
    local: LocalVolumeSource | None = None
    storageos: StorageOSPersistentVolumeSource | None = None
    csi: CSIPersistentVolumeSource | None = None
    access_modes: list[str] = []
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    mount_options: list[str] = []
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None

    SOURCES: ClassVar[tuple[str, ...]] = ()


_NOT_SOURCES = {
    "capacity",
    "access_modes",
    "claim_ref",
    "persistent_volume_reclaim_policy",
    "storage_class_name",
    "mount_options",
    "volume_mode",
    "node_affinity",
    "volume_attributes_class_name",
}
PersistentVolumeSpec.SOURCES = tuple(
    name for name in PersistentVolumeSpec.__struct_fields__ if name not in _NOT_SOURCES
)


class PersistentVolumeStatus(ApiStruct):
    """``phase`` is ``Pending``, ``Available``, ``Bound``, ``Released`` or ``Failed``."""

    phase: str = ""
    message: str = ""
    reason: str = ""
    last_phase_transition_time: str | None = None


class PersistentVolume(KubeObject):
    """A piece of storage in the cluster."""

    api_version: str = always("v1")
    kind: str = always("PersistentVolume")
    spec: PersistentVolumeSpec = field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = field(default_factory=PersistentVolumeStatus)
