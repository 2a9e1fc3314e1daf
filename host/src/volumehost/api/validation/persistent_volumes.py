"""Validation of PersistentVolumes."""

from __future__ import annotations

import os.path

import msgspec

from volumehost.api.objects import PersistentVolume, PersistentVolumeSpec
from volumehost.api.validation.claim_specs import access_modes, class_name, volume_mode
from volumehost.api.validation.names import dns_label, dns_subdomain
from volumehost.api.validation.problems import Problems
from volumehost.api.validation.quantities import size
from volumehost.api.validation.selectors import node_selector
from volumehost.api.validation.sources import one_source

RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
#: Sources that a recycler can empty (PLUG-21).
_RECYCLABLE = ("host_path", "nfs")


def validate_persistent_volume(volume: PersistentVolume, problems: Problems) -> None:
    """Capacity, access modes, exactly one source, policies, node affinity."""
    spec = volume.spec
    _capacity(spec, problems)
    access_modes(spec.access_modes, "spec.accessModes", problems)
    source = one_source(spec, "spec", problems)
    _reclaim_policy(spec, source, problems)
    class_name(spec.storage_class_name, "spec.storageClassName", problems)
    volume_mode(spec.volume_mode, "spec.volumeMode", problems)
    _claim_ref(spec, problems)
    affinity = spec.node_affinity
    if affinity is not None:
        if affinity.required is None:
            problems.required("spec.nodeAffinity.required", "must specify required node constraints")
        else:
            node_selector(affinity.required, "spec.nodeAffinity.required", problems)
    if spec.local is not None and (affinity is None or affinity.required is None):
        problems.required("spec.nodeAffinity", "Local volume requires node affinity")
    if spec.volume_attributes_class_name is not None:
        if not spec.volume_attributes_class_name:
            problems.required("spec.volumeAttributesClassName", "an empty string is disallowed")
        class_name(spec.volume_attributes_class_name, "spec.volumeAttributesClassName", problems)
        if spec.csi is None:
            problems.required("spec.csi", "has to be specified when using volumeAttributesClassName")


def _capacity(spec: PersistentVolumeSpec, problems: Problems) -> None:
    if "storage" not in spec.capacity:
        problems.required("spec.capacity.storage")
    else:
        size(spec.capacity["storage"], "spec.capacity.storage", problems)
    for name in spec.capacity:
        if name != "storage":
            problems.not_supported("spec.capacity", name, ("storage",))


def _reclaim_policy(spec: PersistentVolumeSpec, source: str, problems: Problems) -> None:
    policy, field = spec.persistent_volume_reclaim_policy, "spec.persistentVolumeReclaimPolicy"
    if policy not in RECLAIM_POLICIES:
        problems.not_supported(field, policy, RECLAIM_POLICIES)
    elif policy == "Recycle":
        if source and source not in _RECYCLABLE:
            problems.forbidden(field, "Recycle is available for hostPath and nfs volumes only")
        elif spec.host_path is not None and os.path.normpath(spec.host_path.path or "/").strip("/") == "":
            problems.forbidden(field, "may not be 'Recycle' for a hostPath mount of '/'")


def _claim_ref(spec: PersistentVolumeSpec, problems: Problems) -> None:
    claim = spec.claim_ref
    if claim is None:
        return
    if not claim.name:
        problems.required("spec.claimRef.name")
    elif dns_subdomain(claim.name):
        problems.invalid("spec.claimRef.name", claim.name, dns_subdomain(claim.name))
    if not claim.namespace:
        problems.required("spec.claimRef.namespace")
    elif dns_label(claim.namespace):
        problems.invalid("spec.claimRef.namespace", claim.namespace, dns_label(claim.namespace))


def validate_persistent_volume_change(volume: PersistentVolume, old: PersistentVolume, problems: Problems) -> None:
    """What the storage is cannot change; what may be done with it can."""
    new_spec, old_spec = volume.spec, old.spec
    names = zip(PersistentVolumeSpec.__struct_fields__, PersistentVolumeSpec.__struct_encode_fields__, strict=True)
    for name, wire in names:
        if name in PersistentVolumeSpec.SOURCES and not _same_source(name, new_spec, old_spec):
            problems.forbidden(f"spec.{wire}", "the source of a volume is immutable after creation")
    if new_spec.volume_mode != old_spec.volume_mode:
        problems.invalid("spec.volumeMode", new_spec.volume_mode, "field is immutable")
    if old_spec.node_affinity is not None and new_spec.node_affinity != old_spec.node_affinity:
        problems.invalid("spec.nodeAffinity", "changed", "field is immutable once it is set")
    if old_spec.volume_attributes_class_name is not None and new_spec.volume_attributes_class_name is None:
        problems.forbidden("spec.volumeAttributesClassName", "cannot be removed")


def _same_source(name: str, new: PersistentVolumeSpec, old: PersistentVolumeSpec) -> bool:
    if name == "csi" and new.csi is not None and old.csi is not None and old.csi.controller_expand_secret_ref is None:
        # The one thing that may be added later: expansion may come to need a secret.
        return msgspec.structs.replace(new.csi, controller_expand_secret_ref=None) == old.csi
    return bool(getattr(new, name) == getattr(old, name))
