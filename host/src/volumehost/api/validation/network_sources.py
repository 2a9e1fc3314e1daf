"""Validation of sources of network storage and clouds, for pods and PersistentVolumes alike."""

from __future__ import annotations

import re
from typing import Any

from volumehost.api.objects import (
    AzureDiskVolumeSource,
    FCVolumeSource,
    FlockerVolumeSource,
    ISCSIPersistentVolumeSource,
    ISCSIVolumeSource,
    NFSVolumeSource,
    QuobyteVolumeSource,
)
from volumehost.api.validation.problems import Problems

#: Fields without which a source means nothing, by the source's name in the pod or PersistentVolume.
REQUIRED_FIELDS: dict[str, tuple[str, ...]] = {
    "aws_elastic_block_store": ("volume_id",),
    "azure_disk": ("disk_name", "disk_uri"),
    "azure_file": ("secret_name", "share_name"),
    "cephfs": ("monitors",),
    "cinder": ("volume_id",),
    "gce_persistent_disk": ("pd_name",),
    "glusterfs": ("endpoints", "path"),
    "iscsi": ("target_portal", "iqn"),
    "nfs": ("server", "path"),
    "photon_persistent_disk": ("pd_id",),
    "portworx_volume": ("volume_id",),
    "quobyte": ("registry", "volume"),
    "rbd": ("monitors", "image"),
    "scale_io": ("gateway", "system", "volume_name"),
    "storageos": ("volume_name",),
    "vsphere_volume": ("volume_path",),
}
_INITIATOR_NAMES = re.compile(
    r"iqn\.\d{4}-\d{2}\.[a-zA-Z\d]+(?:[-.][a-zA-Z\d]+)*(?::[^,:]+)?"
    r"|eui\.[a-fA-F\d]{16}|naa\.(?:[a-fA-F\d]{32}|[a-fA-F\d]{16})",
    re.ASCII,
)
_CACHING_MODES = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_MAX_LUN = 255
_MAX_PARTITION = 255
_MAX_TENANT = 64


def required_fields(name: str, source: Any, field: str, problems: Problems) -> None:
    """Check that the fields are set without which the source means nothing."""
    wire_names = dict(zip(source.__struct_fields__, source.__struct_encode_fields__, strict=True))
    for wanted in REQUIRED_FIELDS.get(name, ()):
        if not getattr(source, wanted):
            problems.required(f"{field}.{wire_names[wanted]}")
    secret = getattr(source, "secret_ref", None)
    if secret is not None and not secret.name:
        problems.required(f"{field}.secretRef.name")
    partition = getattr(source, "partition", 0)
    if not 0 <= partition <= _MAX_PARTITION:
        problems.invalid(f"{field}.partition", partition, f"must be between 0 and {_MAX_PARTITION}, inclusive")


def nfs_source(source: NFSVolumeSource, field: str, problems: Problems) -> None:
    """The exported path must be absolute."""
    if source.path and not source.path.startswith("/"):
        problems.invalid(f"{field}.path", source.path, "must be an absolute path")


def iscsi_source(source: ISCSIVolumeSource | ISCSIPersistentVolumeSource, field: str, problems: Problems) -> None:
    """Names in one of the three forms, a logical unit number, a secret where authentication needs one."""
    for name, value in (("iqn", source.iqn), ("initiatorName", source.initiator_name)):
        if value and not _INITIATOR_NAMES.fullmatch(value):
            problems.invalid(f"{field}.{name}", value, "must be valid format starting with iqn, eui, or naa")
    if not 0 <= source.lun <= _MAX_LUN:
        problems.invalid(f"{field}.lun", source.lun, f"must be between 0 and {_MAX_LUN}, inclusive")
    if (source.chap_auth_discovery or source.chap_auth_session) and source.secret_ref is None:
        problems.required(f"{field}.secretRef")


def fc_source(source: FCVolumeSource, field: str, problems: Problems) -> None:
    """Target names with a unit number, or world wide identifiers."""
    if bool(source.target_wwns) == bool(source.wwids):
        problems.required(f"{field}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if source.target_wwns:
        if source.lun is None:
            problems.required(f"{field}.lun", "lun is required if targetWWNs is specified")
        elif not 0 <= source.lun <= _MAX_LUN:
            problems.invalid(f"{field}.lun", source.lun, f"must be between 0 and {_MAX_LUN}, inclusive")


def flocker_source(source: FlockerVolumeSource, field: str, problems: Problems) -> None:
    """A dataset by name or by identifier."""
    if bool(source.dataset_name) == bool(source.dataset_uuid):
        problems.required(field, "exactly one of datasetName and datasetUUID is required")
    if "/" in source.dataset_name:
        problems.invalid(f"{field}.datasetName", source.dataset_name, "must not contain '/'")


def quobyte_source(source: QuobyteVolumeSource, field: str, problems: Problems) -> None:
    """Registries as host and port."""
    if len(source.tenant) > _MAX_TENANT:
        problems.too_long(f"{field}.tenant", _MAX_TENANT, "characters")
    for pair in source.registry.split(",") if source.registry else ():
        host, colon, port = pair.rpartition(":")
        if not (colon and host and port):
            problems.invalid(
                f"{field}.registry", source.registry, "must be a host:port pair or multiple pairs separated by commas"
            )
            return


def azure_disk_source(source: AzureDiskVolumeSource, field: str, problems: Problems) -> None:
    """Known modes, and an address that fits the kind of disk."""
    if source.caching_mode is not None and source.caching_mode not in _CACHING_MODES:
        problems.not_supported(f"{field}.cachingMode", source.caching_mode, _CACHING_MODES)
    if source.kind is not None and source.kind not in _DISK_KINDS:
        problems.not_supported(f"{field}.kind", source.kind, _DISK_KINDS)
    prefix = "/subscriptions/" if source.kind == "Managed" else "https://"
    if source.kind in _DISK_KINDS and source.disk_uri and not source.disk_uri.startswith(prefix):
        problems.invalid(f"{field}.diskURI", source.disk_uri, f"must start with {prefix} for the kind {source.kind}")
