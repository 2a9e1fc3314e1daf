"""Validation of snapshots, their classes and their contents, as the custom resource definitions have it."""

from __future__ import annotations

from volumehost.api.objects import VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent
from volumehost.api.objects.base import ApiStruct
from volumehost.api.validation.claim_specs import class_name, volume_mode
from volumehost.api.validation.driver_sources import csi_driver_name
from volumehost.api.validation.names import dns_subdomain
from volumehost.api.validation.problems import Problems, immutable
from volumehost.api.validation.storage import parameters

DELETION_POLICIES = ("Delete", "Retain")


def validate_snapshot(snapshot: VolumeSnapshot, problems: Problems) -> None:
    """Exactly one source, and a class that is not called ""."""
    source = snapshot.spec.source
    _exactly_one(source, "persistentVolumeClaimName", "volumeSnapshotContentName", problems)
    for field, name in (
        ("persistentVolumeClaimName", source.persistent_volume_claim_name),
        ("volumeSnapshotContentName", source.volume_snapshot_content_name),
    ):
        reason = dns_subdomain(name) if name else ""
        if reason:
            problems.invalid(f"spec.source.{field}", name, reason)
    if snapshot.spec.volume_snapshot_class_name == "":
        problems.invalid("spec.volumeSnapshotClassName", "", "must not be the empty string when set")
    class_name(snapshot.spec.volume_snapshot_class_name, "spec.volumeSnapshotClassName", problems)


def validate_snapshot_change(snapshot: VolumeSnapshot, old: VolumeSnapshot, problems: Problems) -> None:
    """The source stays: a snapshot is of one moment of one volume."""
    immutable(snapshot.spec, old.spec, "source", "spec.source", problems)


def validate_snapshot_class(snapshot_class: VolumeSnapshotClass, problems: Problems) -> None:
    """A driver, a policy, parameters that are not too many."""
    csi_driver_name(snapshot_class.driver, "driver", problems)
    _policy(snapshot_class.deletion_policy, "deletionPolicy", problems)
    parameters(snapshot_class.parameters, "parameters", problems)


def validate_content(content: VolumeSnapshotContent, problems: Problems) -> None:
    """A driver, a policy, exactly one source, and the snapshot that it is for."""
    spec = content.spec
    csi_driver_name(spec.driver, "spec.driver", problems)
    _policy(spec.deletion_policy, "spec.deletionPolicy", problems)
    _exactly_one(spec.source, "volumeHandle", "snapshotHandle", problems)
    for field, value in (("name", spec.volume_snapshot_ref.name), ("namespace", spec.volume_snapshot_ref.namespace)):
        if not value:
            problems.required(f"spec.volumeSnapshotRef.{field}")
    class_name(spec.volume_snapshot_class_name, "spec.volumeSnapshotClassName", problems)
    volume_mode(spec.source_volume_mode, "spec.sourceVolumeMode", problems)


def validate_content_change(content: VolumeSnapshotContent, old: VolumeSnapshotContent, problems: Problems) -> None:
    """What it stands for stays; the policy may change."""
    immutable(content.spec, old.spec, "source", "spec.source", problems)
    immutable(content.spec, old.spec, "driver", "spec.driver", problems)
    if old.spec.source_volume_mode is not None:
        immutable(content.spec, old.spec, "source_volume_mode", "spec.sourceVolumeMode", problems)


def _policy(policy: str, field: str, problems: Problems) -> None:
    if not policy:
        problems.required(field)
    elif policy not in DELETION_POLICIES:
        problems.not_supported(field, policy, DELETION_POLICIES)


def _exactly_one(source: ApiStruct, first: str, second: str, problems: Problems) -> None:
    values = dict(
        zip(source.__struct_encode_fields__, (getattr(source, name) for name in source.__struct_fields__), strict=True)
    )
    given = [name for name in (first, second) if values[name] is not None]
    if len(given) != 1:
        report = problems.forbidden if given else problems.required
        report("spec.source", f"exactly one of {first} and {second} must be set")
    for name in given:
        if not values[name]:
            problems.required(f"spec.source.{name}")
