"""Which checks run for which kind."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from volumehost.api import objects
from volumehost.api.kinds import Kind
from volumehost.api.objects import KubeObject
from volumehost.api.validation.metadata import validate_metadata
from volumehost.api.validation.problems import Problems
from volumehost.errors import InvalidObjectError


class _Rules(NamedTuple):
    """The rules of a kind: the module, which is loaded when the first object of the kind is written, and in it the
    check of an object by itself and that of a change, which takes the new state and the old one.
    """

    module: str
    check: str
    change: str = ""

    def find(self, name: str) -> Callable[..., None]:
        return getattr(import_module(f"volumehost.api.validation.{self.module}"), name)  # type: ignore[no-any-return]


_RULES: dict[type[KubeObject], _Rules] = {
    objects.Pod: _Rules("pods", "validate_pod", "validate_pod_change"),
    objects.PersistentVolume: _Rules(
        "persistent_volumes", "validate_persistent_volume", "validate_persistent_volume_change"
    ),
    objects.PersistentVolumeClaim: _Rules("claims", "validate_claim", "validate_claim_change"),
    objects.StorageClass: _Rules("storage", "validate_storage_class", "validate_storage_class_change"),
    objects.VolumeAttributesClass: _Rules("storage", "validate_attributes_class", "validate_attributes_class_change"),
    objects.VolumeAttachment: _Rules("storage", "validate_attachment", "validate_attachment_change"),
    objects.CSIStorageCapacity: _Rules("storage", "validate_capacity", "validate_capacity_change"),
    objects.VolumeSnapshot: _Rules("snapshots", "validate_snapshot", "validate_snapshot_change"),
    objects.VolumeSnapshotClass: _Rules("snapshots", "validate_snapshot_class"),
    objects.VolumeSnapshotContent: _Rules("snapshots", "validate_content", "validate_content_change"),
    objects.CSIDriver: _Rules("csi", "validate_csi_driver", "validate_csi_driver_change"),
    objects.CSINode: _Rules("csi", "validate_csi_node", "validate_csi_node_change"),
    objects.ConfigMap: _Rules("config", "validate_config_map", "validate_config_map_change"),
    objects.Secret: _Rules("config", "validate_secret", "validate_secret_change"),
    objects.ClusterTrustBundle: _Rules("config", "validate_trust_bundle"),
    objects.Event: _Rules("config", "validate_event"),
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
    rules = _RULES.get(kind.struct)
    if rules is not None and rules.change:
        rules.find(rules.change)(obj, old, problems)
    _raise_any(obj, kind, problems)


def _validate(obj: KubeObject, kind: Kind[KubeObject], problems: Problems) -> None:
    validate_metadata(obj, kind, problems)
    rules = _RULES.get(kind.struct)
    if rules is not None:
        rules.find(rules.check)(obj, problems)


def _forgive(old: KubeObject, kind: Kind[KubeObject], problems: Problems) -> None:
    """Drop problems that the stored object has already: older rules let it in, and it must stay possible to end it."""
    before = Problems()
    _validate(old, kind, before)
    problems.found = [problem for problem in problems.found if problem not in before.found]


def _raise_any(obj: KubeObject, kind: Kind[KubeObject], problems: Problems) -> None:
    if problems.found:
        name = obj.metadata.name if len(obj.metadata.name) <= 64 else f"{obj.metadata.name[:61]}..."
        raise InvalidObjectError(subject=kind.describe(name, obj.metadata.namespace), problems=problems.found)
