"""The life of a volume after it was made: offered, bound, released, reclaimed (PVC-20 to -26, PVC-40 to -44)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from volumehost.control.binding.bind_writes import set_volume_phase, unbind
from volumehost.control.binding.matching import have_same_mode
from volumehost.control.binding.recycling import recycle
from volumehost.control.binding.volume_use import claim_of
from volumehost.control.machinery.controller import Affects, ControlContext, Key
from volumehost.control.provisioning.storage_deletion import StorageDeletion
from volumehost.control.translation import translated
from volumehost.control.well_known import (
    IN_TREE_FINALIZER,
    MIGRATED_TO,
    PROVISIONED_BY,
    PROVISIONER_FINALIZER,
)
from volumehost.control.writes import fresh_or_none, get_or_none, remove_finalizer

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject, PersistentVolume, PersistentVolumeClaim, VolumeAttachment


class VolumeReclaimer:
    """The controller of PersistentVolumes."""

    name = "reclaimer"

    def __init__(self, context: ControlContext) -> None:
        from volumehost.api.objects import PersistentVolume

        self.kind: type[KubeObject] = PersistentVolume
        self._context = context
        self._api = context.api
        self._deletion = StorageDeletion(context)

    def watches(self) -> Mapping[type[KubeObject], Affects]:
        """Volumes, the claims that name them, and attachments that keep them from being deleted."""
        from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, VolumeAttachment

        return {
            PersistentVolume: lambda volume: [Key.of(volume)],
            PersistentVolumeClaim: _named_volume,
            VolumeAttachment: _attached_volume,
        }

    def reconcile(self, key: Key) -> float | None:
        """Bring one volume a step further; the seconds to wait where something still uses a volume to be recycled."""
        from volumehost.api.objects import ObjectMeta, PersistentVolume

        volume = get_or_none(self._api, PersistentVolume, key.name)
        self._context.progress(volume or PersistentVolume(metadata=ObjectMeta(name=key.name)), "")
        return self._reconcile(volume) if volume is not None else None

    def _reconcile(self, volume: PersistentVolume) -> float | None:
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            return self._offer(volume)
        claim = self._claim_of(volume)
        if claim is None:
            return self._release(volume)
        if not claim.spec.volume_name:
            if not have_same_mode(volume, claim):
                text = (
                    f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{claim.metadata.name}" due to '
                    "incompatible volumeMode."
                )
                self._context.event(volume, "Warning", "VolumeMismatch", text)
                self._context.event(claim, "Warning", "VolumeMismatch", text)
            return None  # the binder goes on with it
        if claim.spec.volume_name == volume.metadata.name:
            set_volume_phase(self._api, volume, "Bound")
            return None
        if PROVISIONED_BY in volume.metadata.annotations and _policy(volume) == "Delete":
            return self._release(volume)
        unbind(self._api, volume)
        return None

    def _offer(self, volume: PersistentVolume) -> float | None:
        if volume.metadata.deletion_timestamp is not None:
            return self._reclaim_deleted(volume)
        set_volume_phase(self._api, volume, "Available")
        return None

    def _claim_of(self, volume: PersistentVolume) -> PersistentVolumeClaim | None:
        """The claim that the volume belongs to; None when it is gone, or another one has its name (PVC-21, PVC-44).

        That is believed of no cache: it may not have heard of the claim yet, and a volume that is released is deleted,
        if not by us. Only of a volume that stays as it is nobody asks again.
        """
        found = claim_of(self._api, volume)
        if found is None and not (volume.status.phase in {"Released", "Failed"} and _policy(volume) == "Retain"):
            return claim_of(self._context.uncached, volume)
        return found

    def _release(self, volume: PersistentVolume) -> float | None:
        """PVC-22: repeated until it works."""
        if volume.status.phase != "Failed":
            volume = set_volume_phase(self._api, volume, "Released")
        if MIGRATED_TO in volume.metadata.annotations and self._context.external_drivers:
            return None
        if volume.metadata.deletion_timestamp is not None:
            return self._reclaim_deleted(volume)
        policy = _policy(volume)
        if policy == "Delete":
            self._delete(volume)
        elif policy == "Recycle":
            now = self._as_it_is(volume)
            return recycle(self._context, now) if now is not None else None
        elif policy != "Retain":
            text = "Volume has an unrecognized PersistentVolumeReclaimPolicy."
            self._fail(volume, "VolumeUnknownReclaimPolicy", text)
        return None

    def _reclaim_deleted(self, volume: PersistentVolume) -> float | None:
        """The user deletes the object: its policy decides about the storage all the same."""
        ours = {PROVISIONER_FINALIZER, IN_TREE_FINALIZER}
        if self._context.is_of_others(translated(self._context.plugins, volume)):
            ours = {IN_TREE_FINALIZER}
        ours &= set(volume.metadata.finalizers)
        if not ours:
            return None
        if _policy(volume) == "Delete":
            self._delete(volume)
        else:
            remove_finalizer(self._api, volume, *ours)
        return None

    def _as_it_is(self, volume: PersistentVolume) -> PersistentVolume | None:
        """The volume as it is now; None when what was decided of it holds no more: that comes as a change (PVC-41)."""
        if self._context.live is None:
            return volume
        now = fresh_or_none(self._context.live, volume)
        return now if now is not None and _fate(now) == _fate(volume) else None

    def _delete(self, seen: PersistentVolume) -> None:
        volume = self._as_it_is(seen)
        if volume is None or not self._deletion.delete_storage(volume):
            return
        if volume.metadata.deletion_timestamp is None:
            self._api.delete(type(volume), volume.metadata.name, uid=volume.metadata.uid)
        remove_finalizer(self._api, volume, PROVISIONER_FINALIZER, IN_TREE_FINALIZER)

    def _fail(self, volume: PersistentVolume, reason: str, text: str) -> None:
        if (volume.status.phase, volume.status.message) != ("Failed", text):
            self._context.event(volume, "Warning", reason, text)
        set_volume_phase(self._api, volume, "Failed", text)


def _policy(volume: PersistentVolume) -> str:
    return volume.spec.persistent_volume_reclaim_policy


def _fate(volume: PersistentVolume) -> tuple[object, ...]:
    """What decides what becomes of the volume."""
    reference = volume.spec.claim_ref
    claim = (reference.namespace, reference.name, reference.uid) if reference is not None else None
    return claim, _policy(volume), volume.metadata.deletion_timestamp is None


def _named_volume(claim: PersistentVolumeClaim) -> Iterable[Key]:
    """The volume that the claim names, and the one that may have been made for it."""
    return [Key(claim.spec.volume_name)] if claim.spec.volume_name else []


def _attached_volume(attachment: VolumeAttachment) -> Iterable[Key]:
    name = attachment.spec.source.persistent_volume_name
    return [Key(name)] if name else []
