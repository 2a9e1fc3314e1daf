"""Snapshots: the kinds of ``snapshot.storage.k8s.io``, which a cluster gets from custom resource definitions."""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from msgspec import field

from volumehost.api.objects.base import ApiStruct, QuantityText, always
from volumehost.api.objects.meta import KubeObject, ObjectReference

SNAPSHOT_GROUP = "snapshot.storage.k8s.io"
SNAPSHOT_V1 = f"{SNAPSHOT_GROUP}/v1"


class VolumeSnapshotError(ApiStruct):
    """Why making or deleting a snapshot failed."""

    time: str | None = None
    message: str | None = None


class VolumeSnapshotSource(ApiStruct):
    """A claim to take a snapshot of, or the content of a snapshot that exists already."""

    persistent_volume_claim_name: str | None = None
    volume_snapshot_content_name: str | None = None


class VolumeSnapshotSpec(ApiStruct):
    """What is wanted. An unset class means the default class of the driver."""

    source: VolumeSnapshotSource = field(default_factory=VolumeSnapshotSource)
    volume_snapshot_class_name: str | None = None


class VolumeSnapshotStatus(ApiStruct):
    """How far it is; ``restore_size`` is what a volume that is made from it needs at least."""

    bound_volume_snapshot_content_name: str | None = None
    creation_time: str | None = None
    ready_to_use: bool | None = None
    restore_size: QuantityText | None = None
    error: VolumeSnapshotError | None = None
    volume_group_snapshot_name: str | None = None


class VolumeSnapshot(KubeObject):
    """A user's wish for a snapshot, or claim to one, in a namespace."""

    api_version: str = always(SNAPSHOT_V1)
    kind: str = always("VolumeSnapshot")
    spec: VolumeSnapshotSpec = field(default_factory=VolumeSnapshotSpec)
    status: VolumeSnapshotStatus = field(default_factory=VolumeSnapshotStatus)


class VolumeSnapshotClass(KubeObject):
    """How snapshots of a driver are made; ``deletion_policy`` is ``Delete`` or ``Retain``."""

    api_version: str = always(SNAPSHOT_V1)
    kind: str = always("VolumeSnapshotClass")
    driver: str = ""
    parameters: dict[str, str] = {}
    deletion_policy: str = ""


class VolumeSnapshotContentSource(ApiStruct):
    """The volume to take a snapshot of, or the snapshot that exists already, as the driver calls them."""

    volume_handle: str | None = None
    snapshot_handle: str | None = None


class VolumeSnapshotContentSpec(ApiStruct):
    """A snapshot on the driver and the VolumeSnapshot that it belongs to."""

    volume_snapshot_ref: ObjectReference = field(default_factory=ObjectReference)
    deletion_policy: str = ""
    driver: str = ""
    volume_snapshot_class_name: str | None = None
    source: VolumeSnapshotContentSource = field(default_factory=VolumeSnapshotContentSource)
    source_volume_mode: str | None = None


class VolumeSnapshotContentStatus(ApiStruct):
    """What the driver told. ``creation_time`` is in nanoseconds since the epoch, ``restore_size`` in bytes."""

    snapshot_handle: str | None = None
    creation_time: int | None = None
    restore_size: int | None = None
    ready_to_use: bool | None = None
    error: VolumeSnapshotError | None = None
    volume_group_snapshot_handle: str | None = None


class VolumeSnapshotContent(KubeObject):
    """A snapshot on a driver, as a PersistentVolume is a volume on one."""

    api_version: str = always(SNAPSHOT_V1)
    kind: str = always("VolumeSnapshotContent")
    spec: VolumeSnapshotContentSpec = field(default_factory=VolumeSnapshotContentSpec)
    status: VolumeSnapshotContentStatus = field(default_factory=VolumeSnapshotContentStatus)
