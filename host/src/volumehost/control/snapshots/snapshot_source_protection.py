"""A claim that a snapshot is being taken of stays until the snapshot is ready or gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from volumehost.control.machinery.controller import ControlContext, Key
from volumehost.control.snapshots.snapshot_names import CLAIM_FINALIZER
from volumehost.control.writes import get_or_none, remove_finalizer

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject, PersistentVolumeClaim, VolumeSnapshot


class SnapshotSourceProtection:
    """Controller of claims: takes the finalizer away that the snapshot controller put there."""

    name = "snapshot-source-protection"
    kind: type[KubeObject]

    def __init__(self, context: ControlContext) -> None:
        from volumehost.api.objects import PersistentVolumeClaim

        self.kind = PersistentVolumeClaim
        self._context = context

    def watches(self) -> Mapping[type[KubeObject], Callable[[Any], Iterable[Key]]]:
        """Claims with the finalizer, and the snapshots that are taken of a claim."""
        from volumehost.api.objects import PersistentVolumeClaim, VolumeSnapshot

        return {PersistentVolumeClaim: _protected, VolumeSnapshot: _source}

    def reconcile(self, key: Key) -> float | None:
        """Let go of the claim when no snapshot of it is under way."""
        from volumehost.api.objects import PersistentVolumeClaim, VolumeSnapshot

        api = self._context.api
        claim = get_or_none(api, PersistentVolumeClaim, key.name, key.namespace)
        if claim is None or CLAIM_FINALIZER not in claim.metadata.finalizers:
            return None
        snapshots = api.list(VolumeSnapshot, key.namespace).items
        under_way = any(
            each.spec.source.persistent_volume_claim_name == key.name and not each.status.ready_to_use
            for each in snapshots
        )
        if not under_way:
            remove_finalizer(api, claim, CLAIM_FINALIZER)
        return None


def _protected(claim: PersistentVolumeClaim) -> Iterable[Key]:
    return [Key.of(claim)] if CLAIM_FINALIZER in claim.metadata.finalizers else []


def _source(snapshot: VolumeSnapshot) -> Iterable[Key]:
    name = snapshot.spec.source.persistent_volume_claim_name
    return [Key(name, snapshot.metadata.namespace)] if name else []
