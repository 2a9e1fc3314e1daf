"""Which checks run for which kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from volumehost.api import objects
from volumehost.api.kinds import Kind
from volumehost.api.objects import KubeObject
from volumehost.api.validation.claims import validate_claim, validate_claim_change
from volumehost.api.validation.config import (
    validate_config_map,
    validate_config_map_change,
    validate_event,
    validate_secret,
    validate_secret_change,
    validate_trust_bundle,
)
from volumehost.api.validation.csi import (
    validate_csi_driver,
    validate_csi_driver_change,
    validate_csi_node,
    validate_csi_node_change,
)
from volumehost.api.validation.metadata import validate_metadata
from volumehost.api.validation.persistent_volumes import (
    validate_persistent_volume,
    validate_persistent_volume_change,
)
from volumehost.api.validation.pods import validate_pod, validate_pod_change
from volumehost.api.validation.problems import Problems
from volumehost.api.validation.snapshots import (
    validate_content,
    validate_content_change,
    validate_snapshot,
    validate_snapshot_change,
    validate_snapshot_class,
)
from volumehost.api.validation.storage import (
    validate_attachment,
    validate_attachment_change,
    validate_attributes_class,
    validate_attributes_class_change,
    validate_capacity,
    validate_capacity_change,
    validate_storage_class,
    validate_storage_class_change,
)
from volumehost.errors import InvalidObjectError

#: Checks of an object by itself.
_CHECKS: dict[type[KubeObject], Callable[[Any, Problems], None]] = {
    objects.Pod: validate_pod,
    objects.PersistentVolume: validate_persistent_volume,
    objects.PersistentVolumeClaim: validate_claim,
    objects.StorageClass: validate_storage_class,
    objects.VolumeAttributesClass: validate_attributes_class,
    objects.VolumeAttachment: validate_attachment,
    objects.CSIStorageCapacity: validate_capacity,
    objects.VolumeSnapshot: validate_snapshot,
    objects.VolumeSnapshotClass: validate_snapshot_class,
    objects.VolumeSnapshotContent: validate_content,
    objects.CSIDriver: validate_csi_driver,
    objects.CSINode: validate_csi_node,
    objects.ConfigMap: validate_config_map,
    objects.Secret: validate_secret,
    objects.ClusterTrustBundle: validate_trust_bundle,
    objects.Event: validate_event,
}

#: Checks of a change: new state, old state.
_CHANGES: dict[type[KubeObject], Callable[[Any, Any, Problems], None]] = {
    objects.Pod: validate_pod_change,
    objects.PersistentVolume: validate_persistent_volume_change,
    objects.PersistentVolumeClaim: validate_claim_change,
    objects.StorageClass: validate_storage_class_change,
    objects.VolumeAttributesClass: validate_attributes_class_change,
    objects.VolumeAttachment: validate_attachment_change,
    objects.CSIStorageCapacity: validate_capacity_change,
    objects.VolumeSnapshot: validate_snapshot_change,
    objects.VolumeSnapshotContent: validate_content_change,
    objects.CSIDriver: validate_csi_driver_change,
    objects.CSINode: validate_csi_node_change,
    objects.ConfigMap: validate_config_map_change,
    objects.Secret: validate_secret_change,
}


def validate_create(obj: KubeObject, kind: Kind[KubeObject]) -> None:
    """Check a new object.

    :raises InvalidObjectError: it breaks a rule.
    """
    problems = Problems()
    _validate(obj, kind, problems)
    _raise_any(obj, kind, problems)


def validate_update(obj: KubeObject, old: KubeObject, kind: Kind[KubeObject]) -> None:
    """Check a changed object, what must not change included.

    :raises InvalidObjectError: it breaks a rule.
    """
    problems = Problems()
    _validate(obj, kind, problems)
    if problems.found:
        _forgive(old, kind, problems)
    if old.metadata.deletion_timestamp is not None:
        added = set(obj.metadata.finalizers) - set(old.metadata.finalizers)
        if added:
            problems.forbidden(
                "metadata.finalizers", f"no finalizer can be added while it is being deleted: {sorted(added)}"
            )
    change = _CHANGES.get(kind.struct)
    if change is not None:
        change(obj, old, problems)
    _raise_any(obj, kind, problems)


def _validate(obj: KubeObject, kind: Kind[KubeObject], problems: Problems) -> None:
    validate_metadata(obj, kind, problems)
    check = _CHECKS.get(kind.struct)
    if check is not None:
        check(obj, problems)


def _forgive(old: KubeObject, kind: Kind[KubeObject], problems: Problems) -> None:
    """Drop problems that the stored object has already: older rules let it in, and it must stay possible to end it."""
    before = Problems()
    _validate(old, kind, before)
    problems.found = [problem for problem in problems.found if problem not in before.found]


def _raise_any(obj: KubeObject, kind: Kind[KubeObject], problems: Problems) -> None:
    if problems.found:
        name = obj.metadata.name if len(obj.metadata.name) <= 64 else f"{obj.metadata.name[:61]}..."
        raise InvalidObjectError(subject=kind.describe(name, obj.metadata.namespace), problems=problems.found)
