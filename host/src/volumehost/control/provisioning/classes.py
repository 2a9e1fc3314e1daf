"""Storage classes: which one a claim or a volume has, and which is the default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.control.well_known import BETA_DEFAULT_CLASS, DEFAULT_CLASS

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, StorageClass

#: What was there before the field, and still wins over it.
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def class_of_claim(claim: PersistentVolumeClaim) -> str | None:
    """The name of the claim's class; "" means none, None that it has not been decided."""
    return claim.metadata.annotations.get(_BETA_CLASS, claim.spec.storage_class_name)


def class_of_volume(volume: PersistentVolume) -> str:
    """The name of the volume's class, "" for none."""
    return volume.metadata.annotations.get(_BETA_CLASS, volume.spec.storage_class_name)


def is_delayed(storage_class: StorageClass | None) -> bool:
    """Whether volumes of the class wait for their first consumer."""
    return storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"


def default_class(api: ApiClient) -> StorageClass | None:
    """The newest of the classes marked as the default one; among those as new the first by name (UTIL-24)."""
    from volumehost.api.objects import StorageClass

    marked = [
        each
        for each in api.list(StorageClass).items
        if "true" in {each.metadata.annotations.get(DEFAULT_CLASS), each.metadata.annotations.get(BETA_DEFAULT_CLASS)}
    ]
    newest = max((each.metadata.creation_timestamp or "" for each in marked), default="")
    return next((each for each in marked if (each.metadata.creation_timestamp or "") == newest), None)
