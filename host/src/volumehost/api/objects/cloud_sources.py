"""Volume sources of cloud providers and hypervisors, which upstream serves through CSI migration today."""

from __future__ import annotations

from msgspec import field

from volumehost.api.objects.base import ApiStruct
from volumehost.api.objects.meta import LocalObjectReference, SecretReference


class AWSElasticBlockStoreVolumeSource(ApiStruct):
    """An EBS volume."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class GCEPersistentDiskVolumeSource(ApiStruct):
    """A persistent disk of Google Compute Engine."""

    pd_name: str = ""
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class CinderVolumeSource(ApiStruct):
    """An OpenStack block volume."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class CinderPersistentVolumeSource(ApiStruct):
    """An OpenStack block volume, its secret in any namespace."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False
    secret_ref: SecretReference | None = None


class AzureFileVolumeSource(ApiStruct):
    """An Azure file share."""

    secret_name: str = ""
    share_name: str = ""
    read_only: bool = False


class AzureFilePersistentVolumeSource(ApiStruct):
    """An Azure file share, its secret in any namespace."""

    secret_name: str = ""
    share_name: str = ""
    read_only: bool = False
    secret_namespace: str | None = None


class AzureDiskVolumeSource(ApiStruct):
    """An Azure data disk."""

    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    caching_mode: str | None = None
    fs_type: str | None = None
    read_only: bool | None = None
    kind: str | None = None


class VsphereVirtualDiskVolumeSource(ApiStruct):
    """A vSphere virtual disk."""

    volume_path: str = ""
    fs_type: str = ""
    storage_policy_name: str = ""
    storage_policy_id: str = field(default="", name="storagePolicyID")


class PhotonPersistentDiskVolumeSource(ApiStruct):
    """A Photon Controller disk."""

    pd_id: str = field(default="", name="pdID")
    fs_type: str = ""
