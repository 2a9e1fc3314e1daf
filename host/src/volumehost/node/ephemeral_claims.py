"""Claims that were made for one pod (generic ephemeral volumes): they go with it, and their volumes with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import ConflictError, ObjectNotFoundError
from volumehost.node.claims import claim_name, is_controlled_by

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolumeClaim, Pod


def delete_ephemeral_claims(api: ApiClient, pod: Pod) -> list[PersistentVolumeClaim]:
    """Mark the claims that were made for the pod for deletion, as a garbage collector does; returns them."""
    from volumehost.api.objects import PersistentVolumeClaim

    deleted = []
    for volume in pod.spec.volumes:
        name = claim_name(volume, pod) if volume.ephemeral is not None else None
        if name is None:
            continue
        try:
            claim = api.get(PersistentVolumeClaim, name, pod.metadata.namespace)
            if is_controlled_by(claim, pod):
                api.delete(PersistentVolumeClaim, name, pod.metadata.namespace, uid=claim.metadata.uid)
                deleted.append(claim)
        except (ObjectNotFoundError, ConflictError):  # gone, or another claim under the same name
            continue
    return deleted


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
