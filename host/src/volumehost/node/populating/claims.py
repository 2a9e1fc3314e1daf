"""From a volume of a pod to the spec that plugins get; claims lead to their PersistentVolume (POP-20 to -28)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from volumehost.errors import ApiError, FailedPreconditionError, ObjectNotFoundError, SpecError
from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE, Spec

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, Pod, Volume
    from volumehost.node.populating.pods import UsedVolumes

#: Annotation with a group that owns the volume's files (UTIL-03).
GID_ANNOTATION = "pv.beta.kubernetes.io/gid"
PVC_PROTECTION_FINALIZER = "kubernetes.io/pvc-protection"


class ClaimPendingError(FailedPreconditionError):
    """The claim is not bound yet, or not made yet for an ephemeral volume: the control plane is to see to that.

    ``name`` and ``namespace`` are the claim's; ``claim`` is None while there is none.
    """

    def __init__(
        self, reason: str, *, name: str, namespace: str, claim: PersistentVolumeClaim | None, action: str
    ) -> None:
        super().__init__(reason, action=action, subject=f"{namespace}/{name}")
        self.name = name
        self.namespace = namespace
        self.claim = claim


class Source(NamedTuple):
    """What a volume of a pod leads to: the spec, and the claim that it comes from."""

    spec: Spec
    claim: PersistentVolumeClaim | None = None


def source_of(volume: Volume, pod: Pod, used: UsedVolumes, api: ApiClient | None) -> Source:
    """The spec of one volume of the pod, which must not be changed afterwards (POP-28).

    :raises SpecError: the volume's mode does not fit how containers use it.
    :raises ClaimPendingError: its claim is not bound yet.
    :raises FailedPreconditionError: its claim cannot be used.
    """
    name = claim_name(volume, pod)
    if name is None:
        return Source(Spec.from_volume(volume))
    source = volume.persistent_volume_claim
    claim, persistent_volume = _resolve(name, pod, volume, api)
    spec = Spec.from_persistent_volume(persistent_volume, source is not None and source.read_only)
    _check_mode(spec, volume.name, used)
    return Source(spec, claim)


def claims_of(pod: Pod) -> set[tuple[str, str]]:
    """(namespace, name) of the claims that the pod's volumes lead to."""
    names = (claim_name(volume, pod) for volume in pod.spec.volumes)
    return {(pod.metadata.namespace, name) for name in names if name is not None}


def group_of(spec: Spec) -> int | None:
    """The group in the PersistentVolume's annotation (POP-25), None without one or when it is no number."""
    if spec.persistent_volume is None:
        return None
    text = spec.persistent_volume.metadata.annotations.get(GID_ANNOTATION, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) < 1 << 63 else None


def claim_name(volume: Volume, pod: Pod) -> str | None:
    """The claim that the volume leads to, None for a volume of the pod's own (POP-20)."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return None


def _resolve(
    name: str, pod: Pod, volume: Volume, api: ApiClient | None
) -> tuple[PersistentVolumeClaim, PersistentVolume]:
    """The claim and the volume that it is bound to; both are read now, never from a cache."""
    namespace = pod.metadata.namespace
    where = f"{namespace}/{name}"
    if api is None:
        raise FailedPreconditionError("the host has no API to read claims from", action=f"error processing PVC {where}")
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim

    try:
        claim = api.get(PersistentVolumeClaim, name, namespace)
    except ObjectNotFoundError as error:
        reason = f"failed to fetch PVC from API server: {error.reason}"
        if volume.ephemeral is None:
            raise _claim_error(where, reason) from error
        raise _pending(name, namespace, reason) from error
    except ApiError as error:
        raise _claim_error(where, f"failed to fetch PVC from API server: {error.reason}") from error
    metadata = claim.metadata
    if metadata.deletion_timestamp and PVC_PROTECTION_FINALIZER not in metadata.finalizers:
        raise _claim_error(where, "PVC is being deleted")
    if claim.status.phase != "Bound":
        raise _pending(name, namespace, "PVC is not bound", claim)
    if not claim.spec.volume_name:
        raise _claim_error(where, "PVC has empty pvc.Spec.VolumeName")
    if volume.ephemeral is not None and not is_controlled_by(claim, pod):
        pod_name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        raise FailedPreconditionError(f"PVC {where} was not created for pod {pod_name} (pod is not owner)")
    bound_to = claim.spec.volume_name
    try:
        persistent_volume = api.get(PersistentVolume, bound_to)
    except ApiError as error:
        raise _claim_error(where, f"failed to fetch PV {bound_to} from API server: {error.reason}") from error
    reference = persistent_volume.spec.claim_ref
    if reference is None:
        raise _claim_error(where, f"PV {bound_to} is not bound to any claim (claimRef is empty)")
    if reference.uid != metadata.uid:
        raise _claim_error(where, f"PV {bound_to} is bound to another claim (uid {reference.uid}, not {metadata.uid})")
    return claim, persistent_volume


def is_controlled_by(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the claim was made for this pod (POP-20)."""
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)


def _check_mode(spec: Spec, name: str, used: UsedVolumes) -> None:
    """POP-27: mounted means Filesystem, mapped means Block; used in both ways always fails."""
    mode = spec.volume_mode()
    if name in used.mounts and mode != FILESYSTEM_MODE:
        raise SpecError(f"volume {name} has volumeMode {mode}, but is specified in volumeMounts", subject=name)
    if name in used.devices and mode != BLOCK_MODE:
        raise SpecError(f"volume {name} has volumeMode {mode}, but is specified in volumeDevices", subject=name)


def _pending(name: str, namespace: str, reason: str, claim: PersistentVolumeClaim | None = None) -> ClaimPendingError:
    action = f"error processing PVC {namespace}/{name}"
    return ClaimPendingError(reason, name=name, namespace=namespace, claim=claim, action=action)


def _claim_error(where: str, reason: str) -> FailedPreconditionError:
    return FailedPreconditionError(reason, action=f"error processing PVC {where}", subject=where)
