"""Whether a claim may grow at all, which an API server of a cluster asks when more is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.control.provisioning.classes import class_of_claim
from volumehost.control.writes import get_or_none
from volumehost.errors import FailedPreconditionError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolumeClaim


def expansion_refusal(api: ApiClient, claim: PersistentVolumeClaim) -> FailedPreconditionError | None:
    """Why the claim may not grow; None when its storage class allows it."""
    from volumehost.api.objects import StorageClass

    name = class_of_claim(claim)
    storage_class = get_or_none(api, StorageClass, name) if name else None
    if storage_class is not None and storage_class.allow_volume_expansion:
        return None
    if not name:
        why = "the claim has no storage class, and only a storage class can allow that volumes grow"
    elif storage_class is None:
        why = f"its storage class {name} does not exist, so nothing allows that the volume grows"
    else:
        why = f"storage class {name} does not allow that volumes grow"
    return FailedPreconditionError(
        why,
        action=f"expanding claim {claim.metadata.namespace}/{claim.metadata.name}",
        subject=claim.metadata.name,
        hint=f"set allowVolumeExpansion: true in storage class {name}" if name else "",
    )
