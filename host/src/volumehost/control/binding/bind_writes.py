"""The four writes that bind a claim and a volume to each other, in the order in which a crash leaves no two winners.

Each is a write of its own (PVC-34); what is done already is left alone, so that a binding that was interrupted goes on.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from volumehost.control.binding.matching import refers_to
from volumehost.control.well_known import BIND_COMPLETED, BOUND_BY_CONTROLLER
from volumehost.control.writes import update, update_status
from volumehost.errors import ConflictError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim


def bind(api: ApiClient, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
    """Bind them.

    :raises ConflictError: the volume changed since it was chosen: choose again.
    """
    volume = _give_volume_to_claim(api, volume, claim)
    volume = set_volume_phase(api, volume, "Bound")
    claim = _give_claim_its_volume(api, volume, claim)
    set_claim_bound(api, volume, claim)


def _give_volume_to_claim(api: ApiClient, volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    from volumehost.api.objects import ObjectReference

    reference, metadata = volume.spec.claim_ref, claim.metadata
    if reference is not None and reference.uid == metadata.uid:
        return volume
    if reference is None:
        # Pre-bound by the user it stays the user's reference, only completed.
        volume.metadata.annotations = {**volume.metadata.annotations, BOUND_BY_CONTROLLER: "yes"}
    elif not refers_to(volume, claim):
        raise ConflictError(f"persistentvolume {volume.metadata.name} belongs to another claim")
    volume.spec.claim_ref = ObjectReference(
        api_version=claim.api_version,
        kind=claim.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )
    return api.replace(volume)  # on condition that it is as it was when it was chosen


def _give_claim_its_volume(
    api: ApiClient, volume: PersistentVolume, claim: PersistentVolumeClaim
) -> PersistentVolumeClaim:
    def change(fresh: PersistentVolumeClaim) -> None:
        if fresh.spec.volume_name not in {"", volume.metadata.name}:
            raise ConflictError(f"persistentvolumeclaim {fresh.metadata.name} was given another volume")
        annotations = {**fresh.metadata.annotations, BIND_COMPLETED: "yes"}
        if not fresh.spec.volume_name:
            annotations[BOUND_BY_CONTROLLER] = "yes"
        fresh.spec.volume_name = volume.metadata.name
        fresh.metadata.annotations = annotations

    if claim.spec.volume_name == volume.metadata.name and BIND_COMPLETED in claim.metadata.annotations:
        return claim
    return update(api, claim, change)


def set_claim_bound(api: ApiClient, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
    """The claim's status: what it has got. Once bound, its capacity is whoever expands it to say."""

    def change(fresh: PersistentVolumeClaim) -> None:
        status = fresh.status
        if status.phase != "Bound":
            status.capacity = dict(volume.spec.capacity)
        status.phase = "Bound"
        status.access_modes = list(volume.spec.access_modes)
        if status.current_volume_attributes_class_name is None:
            status.current_volume_attributes_class_name = volume.spec.volume_attributes_class_name

    if claim.status.phase != "Bound":
        update_status(api, claim, change)


def set_claim_phase(api: ApiClient, claim: PersistentVolumeClaim, phase: str) -> None:
    """``Pending`` or ``Lost``: it has nothing.

    :raises ConflictError: it was given a volume since this was decided: decide anew.
    """
    given = _given(claim)

    def change(fresh: PersistentVolumeClaim) -> None:
        if _given(fresh) != given:
            raise ConflictError(f"persistentvolumeclaim {claim.metadata.name} was given a volume meanwhile")
        fresh.status.phase = phase
        fresh.status.capacity = {}
        fresh.status.access_modes = []

    if claim.status.phase != phase:
        update_status(api, claim, change)


def _given(claim: PersistentVolumeClaim) -> tuple[str, bool]:
    return claim.spec.volume_name, BIND_COMPLETED in claim.metadata.annotations


def set_volume_phase(api: ApiClient, volume: PersistentVolume, phase: str, message: str = "") -> PersistentVolume:
    """The volume's phase, and why it has it where that is not obvious.

    :raises ConflictError: the volume has another claim than when this was decided: decide anew.
    """
    claim = _claim_uid(volume)

    def change(fresh: PersistentVolume) -> None:
        if _claim_uid(fresh) != claim:
            raise ConflictError(f"persistentvolume {volume.metadata.name} was given to another claim meanwhile")
        status = fresh.status
        if status.phase != phase:
            status.last_phase_transition_time = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        status.phase, status.message, status.reason = phase, message, ""

    if (volume.status.phase, volume.status.message) == (phase, message):
        return volume
    return update_status(api, volume, change)


def _claim_uid(volume: PersistentVolume) -> str:
    return volume.spec.claim_ref.uid if volume.spec.claim_ref is not None else ""


def unbind(api: ApiClient, volume: PersistentVolume) -> None:
    """Offer the volume again; a reference that the user set stays, for the next claim of that name (PVC-26)."""
    claim_ref = volume.spec.claim_ref
    if claim_ref is None:
        return
    if BOUND_BY_CONTROLLER in volume.metadata.annotations:
        annotations = {key: text for key, text in volume.metadata.annotations.items() if key != BOUND_BY_CONTROLLER}
        volume.metadata.annotations = annotations
        volume.spec.claim_ref = None
    elif claim_ref.uid:
        claim_ref.uid = claim_ref.resource_version = ""
    set_volume_phase(api, api.replace(volume), "Available")
