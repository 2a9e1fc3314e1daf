"""Validation of PersistentVolumeClaims."""

from __future__ import annotations

import msgspec

from volumehost.api.objects import PersistentVolumeClaim, PersistentVolumeClaimSpec
from volumehost.api.validation.claim_specs import claim_spec
from volumehost.api.validation.problems import Problems
from volumehost.errors import QuantityError
from volumehost.sdk.quantity import Quantity, parse_quantity

BETA_STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def validate_claim(claim: PersistentVolumeClaim, problems: Problems) -> None:
    """What is asked for."""
    claim_spec(claim.spec, "spec", problems)


def validate_claim_change(claim: PersistentVolumeClaim, old: PersistentVolumeClaim, problems: Problems) -> None:
    """A claim's spec is fixed, but it can be bound once, given a class once, and grown and re-classed when bound."""
    bound = old.status.phase == "Bound"
    new_spec, old_spec = _comparable(claim.spec, old.spec, bound=bound), old.spec
    names = zip(
        PersistentVolumeClaimSpec.__struct_fields__, PersistentVolumeClaimSpec.__struct_encode_fields__, strict=True
    )
    for name, wire in names:
        if getattr(new_spec, name) != getattr(old_spec, name):
            problems.forbidden(
                f"spec.{wire}",
                "spec is immutable after creation except resources.requests and volumeAttributesClassName "
                "for bound claims",
            )
    if bound:
        _size(claim, old, problems)
        if old_spec.volume_attributes_class_name and not claim.spec.volume_attributes_class_name:
            problems.forbidden("spec.volumeAttributesClassName", "cannot be removed")
    annotation = BETA_STORAGE_CLASS_ANNOTATION
    if claim.metadata.annotations.get(annotation) != old.metadata.annotations.get(annotation):
        problems.forbidden(f"metadata.annotations[{annotation}]", "field is immutable")


def _comparable(
    new: PersistentVolumeClaimSpec, old: PersistentVolumeClaimSpec, *, bound: bool
) -> PersistentVolumeClaimSpec:
    """The new spec with what may differ taken from the old one."""
    same = msgspec.structs.replace(new)
    if not old.volume_name:
        same.volume_name = old.volume_name
    if old.storage_class_name is None:
        same.storage_class_name = None
    if bound:
        same.volume_attributes_class_name = old.volume_attributes_class_name
        requests = dict(new.resources.requests)
        if "storage" in old.resources.requests:
            requests["storage"] = old.resources.requests["storage"]
        same.resources = msgspec.structs.replace(new.resources, requests=requests)
    elif _amount(new.resources.requests.get("storage")) == _amount(old.resources.requests.get("storage")):
        # Written differently is not changed: 1024Mi and 1Gi.
        same.resources = msgspec.structs.replace(
            new.resources, requests=new.resources.requests | {"storage": old.resources.requests.get("storage", "")}
        )
    return same


def _size(claim: PersistentVolumeClaim, old: PersistentVolumeClaim, problems: Problems) -> None:
    """A claim never shrinks below what it has got; a wish that failed may be taken back down to just above that."""
    new_size = _amount(claim.spec.resources.requests.get("storage"))
    old_size = _amount(old.spec.resources.requests.get("storage"))
    if new_size is None or old_size is None or new_size >= old_size:
        return
    granted = _amount(old.status.capacity.get("storage"))
    if granted is None or new_size <= granted:
        problems.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


def _amount(text: str | None) -> Quantity | None:
    try:
        return parse_quantity(text) if text else None
    except QuantityError:
        return None
