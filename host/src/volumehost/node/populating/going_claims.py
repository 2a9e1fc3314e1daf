"""Claims that go with a pod, and their volumes with them: those that were made for it (generic ephemeral volumes), and
those that were deleted while it used them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import ConflictError, ObjectNotFoundError
from volumehost.node.populating.claims import PVC_PROTECTION_FINALIZER, claim_name, is_controlled_by

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolumeClaim, Pod


def let_claims_go(api: ApiClient, pod: Pod) -> list[PersistentVolumeClaim]:
    """Mark the claims that were made for the pod for deletion, as a garbage collector does.

    :returns: these, and those that somebody else has marked.
    """
    from volumehost.api.objects import PersistentVolumeClaim

    going = []
    for volume in pod.spec.volumes:
        name = claim_name(volume, pod)
        if name is None:
            continue
        try:
            claim = api.get(PersistentVolumeClaim, name, pod.metadata.namespace)
            if volume.ephemeral is not None and is_controlled_by(claim, pod):
                api.delete(PersistentVolumeClaim, name, pod.metadata.namespace, uid=claim.metadata.uid)
                going.append(claim)
            elif claim.metadata.deletion_timestamp:
                going.append(claim)
        except (ObjectNotFoundError, ConflictError):  # gone, or another claim under the same name
            continue
    return going


def is_used_by_others(api: ApiClient, claim: PersistentVolumeClaim) -> bool:
    """Whether the claim stays although the pod is gone, because another pod uses it."""
    from volumehost.api.objects import PersistentVolumeClaim
    from volumehost.control.writes import get_or_none

    found = get_or_none(api, PersistentVolumeClaim, claim.metadata.name, claim.metadata.namespace)
    same = found is not None and found.metadata.uid == claim.metadata.uid
    return same and found is not None and PVC_PROTECTION_FINALIZER in found.metadata.finalizers


def is_reclaimed(api: ApiClient, claim: PersistentVolumeClaim) -> bool:
    """Whether neither the claim nor a volume that is to be deleted with it is left."""
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim
    from volumehost.control.writes import get_or_none

    found = get_or_none(api, PersistentVolumeClaim, claim.metadata.name, claim.metadata.namespace)
    if found is not None and found.metadata.uid == claim.metadata.uid:
        return False
    volume = get_or_none(api, PersistentVolume, claim.spec.volume_name) if claim.spec.volume_name else None
    return (
        volume is None
        or volume.spec.persistent_volume_reclaim_policy != "Delete"
        or volume.spec.claim_ref is None
        or volume.spec.claim_ref.uid != claim.metadata.uid
    )
