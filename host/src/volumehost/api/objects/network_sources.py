"""Volume sources of network protocols and clustered storage: NFS, iSCSI, Fibre Channel, Ceph and others.

This host serves none of them by itself; a plugin that declares the source does.
"""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from msgspec import field

from volumehost.api.objects.base import ApiStruct
from volumehost.api.objects.meta import LocalObjectReference, ObjectReference, SecretReference


class NFSVolumeSource(ApiStruct):
    """An export of an NFS server."""

    server: str = ""
    path: str = ""
    read_only: bool = False


class ISCSIVolumeSource(ApiStruct):
    """A logical unit of an iSCSI target."""

    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    iscsi_interface: str = ""
    fs_type: str = ""
    read_only: bool = False
    portals: list[str] = []
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    secret_ref: LocalObjectReference | None = None
    initiator_name: str | None = None


class ISCSIPersistentVolumeSource(ApiStruct):
    """A logical unit of an iSCSI target, its secret in any namespace."""

    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    iscsi_interface: str = ""
    fs_type: str = ""
    read_only: bool = False
    portals: list[str] = []
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    secret_ref: SecretReference | None = None
    initiator_name: str | None = None


class FCVolumeSource(ApiStruct):
    """A logical unit behind Fibre Channel: target names and unit number, or world wide identifiers."""

    target_wwns: list[str] = field(default_factory=list, name="targetWWNs")
    lun: int | None = None
    fs_type: str = ""
    read_only: bool = False
    wwids: list[str] = []


class GlusterfsVolumeSource(ApiStruct):
    """A Gluster volume."""

    endpoints: str = ""
    path: str = ""
    read_only: bool = False


class GlusterfsPersistentVolumeSource(ApiStruct):
    """A Gluster volume, its endpoints in any namespace."""

    endpoints: str = ""
    path: str = ""
    read_only: bool = False
    endpoints_namespace: str | None = None


class RBDVolumeSource(ApiStruct):
    """A Ceph block image."""

    monitors: list[str] = []
    image: str = ""
    fs_type: str = ""
    pool: str = ""
    user: str = ""
    keyring: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class RBDPersistentVolumeSource(ApiStruct):
    """A Ceph block image, its secret in any namespace."""

    monitors: list[str] = []
    image: str = ""
    fs_type: str = ""
    pool: str = ""
    user: str = ""
    keyring: str = ""
    secret_ref: SecretReference | None = None
    read_only: bool = False


class CephFSVolumeSource(ApiStruct):
    """A Ceph filesystem."""

    monitors: list[str] = []
    path: str = ""
    user: str = ""
    secret_file: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class CephFSPersistentVolumeSource(ApiStruct):
    """A Ceph filesystem, its secret in any namespace."""

    monitors: list[str] = []
    path: str = ""
    user: str = ""
    secret_file: str = ""
    secret_ref: SecretReference | None = None
    read_only: bool = False


class FlockerVolumeSource(ApiStruct):
    """A Flocker dataset."""

    dataset_name: str = ""
    dataset_uuid: str = field(default="", name="datasetUUID")


class QuobyteVolumeSource(ApiStruct):
    """A Quobyte volume."""

    registry: str = ""
    volume: str = ""
    read_only: bool = False
    user: str = ""
    group: str = ""
    tenant: str = ""


class PortworxVolumeSource(ApiStruct):
    """A Portworx volume."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class ScaleIOVolumeSource(ApiStruct):
    """A ScaleIO volume."""

    gateway: str = ""
    system: str = ""
    secret_ref: LocalObjectReference | None = None
    ssl_enabled: bool = False
    protection_domain: str = ""
    storage_pool: str = ""
    storage_mode: str = ""
    volume_name: str = ""
    fs_type: str = ""
    read_only: bool = False


class ScaleIOPersistentVolumeSource(ApiStruct):
    """A ScaleIO volume, its secret in any namespace."""

    gateway: str = ""
    system: str = ""
    secret_ref: SecretReference | None = None
    ssl_enabled: bool = False
    protection_domain: str = ""
    storage_pool: str = ""
    storage_mode: str = ""
    volume_name: str = ""
    fs_type: str = ""
    read_only: bool = False


class StorageOSVolumeSource(ApiStruct):
    """A StorageOS volume."""

    volume_name: str = ""
    volume_namespace: str = ""
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class StorageOSPersistentVolumeSource(ApiStruct):
    """A StorageOS volume, its secret in any namespace."""

    volume_name: str = ""
    volume_namespace: str = ""
    fs_type: str = ""
    read_only: bool = False
    secret_ref: ObjectReference | None = None
