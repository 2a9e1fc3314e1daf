"""From a volume of a pod to the spec that plugins get; claims lead to their PersistentVolume (POP-20 to -28)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import ApiError, FailedPreconditionError, SpecError
from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE, Spec

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, Pod, Volume
    from volumehost.node.pods import UsedVolumes

#: Annotation with a group that owns the volume's files (UTIL-03).
GID_ANNOTATION = "pv.beta.kubernetes.io/gid"
PVC_PROTECTION_FINALIZER = "kubernetes.io/pvc-protection"


def spec_of(volume: Volume, pod: Pod, used: UsedVolumes, api: ApiClient | None) -> Spec:
    """The spec of one volume of the pod, which must not be changed afterwards (POP-28).

    :raises SpecError: the volume's mode does not fit how containers use it.
    :raises FailedPreconditionError: its claim is not ready for use.
    """
    claim_name = _claim_name(volume, pod)
    if claim_name is None:
        return Spec.from_volume(volume)
    source = volume.persistent_volume_claim
    persistent_volume = _resolve(claim_name, pod, volume, api)
    spec = Spec.from_persistent_volume(persistent_volume, source is not None and source.read_only)
    _check_mode(spec, volume.name, used)
    return spec


def group_of(spec: Spec) -> int | None:
    """The group in the PersistentVolume's annotation (POP-25), None without one or when it is no number."""
    if spec.persistent_volume is None:
        return None
    text = spec.persistent_volume.metadata.annotations.get(GID_ANNOTATION, "")
    return int(text) if text.isdigit() else None


def _claim_name(volume: Volume, pod: Pod) -> str | None:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return None


def _resolve(claim_name: str, pod: Pod, volume: Volume, api: ApiClient | None) -> PersistentVolume:
    """The volume that the claim is bound to; both are read now, never from a cache."""
    where = f"{pod.metadata.namespace}/{claim_name}"
    if api is None:
        raise FailedPreconditionError("the host has no API to read claims from", action=f"error processing PVC {where}")
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim

    try:
        claim = api.get(PersistentVolumeClaim, claim_name, pod.metadata.namespace)
    except ApiError as error:
        raise _claim_error(where, f"failed to fetch PVC from API server: {error.reason}") from error
    metadata = claim.metadata
    if metadata.deletion_timestamp and PVC_PROTECTION_FINALIZER not in metadata.finalizers:
        raise _claim_error(where, "PVC is being deleted")
    if claim.status.phase != "Bound":
        raise _claim_error(where, "PVC is not bound")
    if not claim.spec.volume_name:
        raise _claim_error(where, "PVC has empty pvc.Spec.VolumeName")
    if volume.ephemeral is not None and not _is_controlled_by(claim, pod):
        pod_name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        raise FailedPreconditionError(f"PVC {where} was not created for pod {pod_name} (pod is not owner)")
    name = claim.spec.volume_name
    try:
        persistent_volume = api.get(PersistentVolume, name)
    except ApiError as error:
        raise _claim_error(where, f"failed to fetch PV {name} from API server: {error.reason}") from error
    reference = persistent_volume.spec.claim_ref
    if reference is None:
        raise _claim_error(where, f"PV {name} is not bound to any claim (claimRef is empty)")
    if reference.uid != metadata.uid:
        raise _claim_error(where, f"PV {name} is bound to another claim (uid {reference.uid}, not {metadata.uid})")
    return persistent_volume


def _is_controlled_by(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)


def _check_mode(spec: Spec, name: str, used: UsedVolumes) -> None:
    """POP-27: mounted means Filesystem, mapped means Block; used in both ways always fails."""
    mode = spec.volume_mode()
    if name in used.mounts and mode != FILESYSTEM_MODE:
        raise SpecError(f"volume {name} has volumeMode {mode}, but is specified in volumeMounts", subject=name)
    if name in used.devices and mode != BLOCK_MODE:
        raise SpecError(f"volume {name} has volumeMode {mode}, but is specified in volumeDevices", subject=name)


def _claim_error(where: str, reason: str) -> FailedPreconditionError:
    return FailedPreconditionError(reason, action=f"error processing PVC {where}", subject=where)
