"""What an API server fills in, as far as volumes are concerned. Called by the embedded store on every write.

Functions change the object that they are given, which the store has just made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from volumehost.api.objects import (
    CSIDriver,
    KubeObject,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    Pod,
    Secret,
    StorageClass,
    TypedLocalObjectReference,
    TypedObjectReference,
    Volume,
)

T = TypeVar("T", bound=KubeObject)

DEFAULT_NAMESPACE = "default"
#: Permission bits of files in volumes that are made from API objects: 0644.
DEFAULT_FILE_MODE = 0o644
#: How long a projected token lives when nothing is said, in seconds.
DEFAULT_TOKEN_SECONDS = 3600
PVC_PROTECTION_FINALIZER = "kubernetes.io/pvc-protection"
PV_PROTECTION_FINALIZER = "kubernetes.io/pv-protection"


def set_defaults(obj: T) -> T:
    """Fill in what is unset, on create and on update alike; returns the object."""
    setter = _SETTERS.get(type(obj))
    if setter is not None:
        setter(obj)
    return obj


def set_create_defaults(obj: T) -> T:
    """Fill in what only a new object gets: protection finalizers and the first phase; returns the object."""
    match obj:
        case PersistentVolumeClaim():
            _add_finalizer(obj, PVC_PROTECTION_FINALIZER)
            obj.status.phase = "Pending"
        case PersistentVolume():
            _add_finalizer(obj, PV_PROTECTION_FINALIZER)
            obj.status.phase = "Pending"
        case Pod():
            obj.status.phase = "Pending"
        case _:
            pass
    return obj


def _add_finalizer(obj: KubeObject, finalizer: str) -> None:
    if finalizer not in obj.metadata.finalizers:
        obj.metadata.finalizers = [*obj.metadata.finalizers, finalizer]


def _pod(pod: Pod) -> None:
    spec = pod.spec
    spec.restart_policy = spec.restart_policy or "Always"
    spec.service_account_name = spec.service_account_name or spec.service_account
    spec.service_account = spec.service_account_name
    for volume in spec.volumes:
        _volume(volume)


def _volume(volume: Volume) -> None:
    for source in (volume.secret, volume.config_map, volume.downward_api, volume.projected):
        if source is not None and source.default_mode is None:
            source.default_mode = DEFAULT_FILE_MODE
    files = list(volume.downward_api.items) if volume.downward_api is not None else []
    for projection in volume.projected.sources if volume.projected is not None else ():
        files += projection.downward_api.items if projection.downward_api is not None else ()
        token = projection.service_account_token
        if token is not None and token.expiration_seconds is None:
            token.expiration_seconds = DEFAULT_TOKEN_SECONDS
    for file in files:
        if file.field_ref is not None:
            file.field_ref.api_version = file.field_ref.api_version or "v1"
    if volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
        _claim_spec(volume.ephemeral.volume_claim_template.spec)
    _network_sources(volume)


def _network_sources(holder: Volume | PersistentVolumeSpec) -> None:
    """Sources that pods and PersistentVolumes describe alike."""
    if holder.iscsi is not None:
        holder.iscsi.iscsi_interface = holder.iscsi.iscsi_interface or "default"
    if holder.rbd is not None:
        holder.rbd.pool = holder.rbd.pool or "rbd"
        holder.rbd.user = holder.rbd.user or "admin"
        holder.rbd.keyring = holder.rbd.keyring or "/etc/ceph/keyring"
    if holder.scale_io is not None:
        holder.scale_io.storage_mode = holder.scale_io.storage_mode or "ThinProvisioned"
        holder.scale_io.fs_type = holder.scale_io.fs_type or "xfs"
    disk = holder.azure_disk
    if disk is not None:
        disk.caching_mode = disk.caching_mode or "ReadWrite"
        disk.kind = disk.kind or "Shared"
        disk.fs_type = disk.fs_type if disk.fs_type is not None else "ext4"
        disk.read_only = bool(disk.read_only)


def _claim_spec(spec: PersistentVolumeClaimSpec) -> None:
    spec.volume_mode = spec.volume_mode or "Filesystem"


def _claim(claim: PersistentVolumeClaim) -> None:
    _claim_spec(claim.spec)
    _one_data_source(claim.spec)
    claim.status.phase = claim.status.phase or "Pending"


def _one_data_source(spec: PersistentVolumeClaimSpec) -> None:
    """The two fields for a data source say the same where both can."""
    source, reference = spec.data_source, spec.data_source_ref
    if source is not None and reference is None:
        spec.data_source_ref = TypedObjectReference(api_group=source.api_group, kind=source.kind, name=source.name)
    elif reference is not None and source is None and not reference.namespace:
        spec.data_source = TypedLocalObjectReference(
            api_group=reference.api_group, kind=reference.kind, name=reference.name
        )


def _persistent_volume(volume: PersistentVolume) -> None:
    volume.spec.persistent_volume_reclaim_policy = volume.spec.persistent_volume_reclaim_policy or "Retain"
    volume.spec.volume_mode = volume.spec.volume_mode or "Filesystem"
    volume.status.phase = volume.status.phase or "Pending"
    _network_sources(volume.spec)


def _storage_class(storage_class: StorageClass) -> None:
    storage_class.reclaim_policy = storage_class.reclaim_policy or "Delete"
    storage_class.volume_binding_mode = storage_class.volume_binding_mode or "Immediate"


def _csi_driver(driver: CSIDriver) -> None:
    spec = driver.spec
    if spec.attach_required is None:
        spec.attach_required = True
    spec.volume_lifecycle_modes = spec.volume_lifecycle_modes or ["Persistent"]
    spec.fs_group_policy = spec.fs_group_policy or "ReadWriteOnceWithFSType"
    for field in ("pod_info_on_mount", "storage_capacity", "requires_republish", "se_linux_mount"):
        if getattr(spec, field) is None:
            setattr(spec, field, False)


def _secret(secret: Secret) -> None:
    secret.type = secret.type or "Opaque"
    if secret.string_data:
        secret.data = secret.data | {key: text.encode() for key, text in secret.string_data.items()}
        secret.string_data = {}


_SETTERS: dict[type[KubeObject], Callable[[Any], None]] = {
    Pod: _pod,
    PersistentVolume: _persistent_volume,
    PersistentVolumeClaim: _claim,
    StorageClass: _storage_class,
    CSIDriver: _csi_driver,
    Secret: _secret,
}
