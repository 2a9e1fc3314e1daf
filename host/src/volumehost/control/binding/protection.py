"""Claims that pods use and volumes that claims are bound to stay until that ends, though they are deleted.

A cluster's API server puts the finalizers on; these controllers take them away. The embedded store does both itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from volumehost.api.defaults import PV_PROTECTION_FINALIZER, PVC_PROTECTION_FINALIZER
from volumehost.control.binding.scheduling import claims_of
from volumehost.control.machinery.controller import Affects, ControlContext, Key
from volumehost.control.writes import add_finalizer, get_or_none, remove_finalizer
from volumehost.errors import ObjectNotFoundError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import KubeObject, PersistentVolume, PersistentVolumeClaim, Pod


class ClaimProtection:
    """Controller of claims.

    :param live: asked before a claim is let go, since a cache may not have seen its newest pod.
    """

    name = "claim-protection"

    def __init__(self, context: ControlContext, live: ApiClient) -> None:
        from volumehost.api.objects import PersistentVolumeClaim

        self.kind: type[KubeObject] = PersistentVolumeClaim
        self._api = context.api
        self._live = live

    def watches(self) -> Mapping[type[KubeObject], Affects]:
        """Claims, and the pods that may have ended."""
        from volumehost.api.objects import PersistentVolumeClaim, Pod

        return {PersistentVolumeClaim: _unfinished, Pod: _claims}

    def reconcile(self, key: Key) -> float | None:
        """Protect the claim, or let it go when it is deleted and no pod uses it."""
        from volumehost.api.objects import PersistentVolumeClaim

        claim = get_or_none(self._api, PersistentVolumeClaim, key.name, key.namespace)
        if claim is None:
            return None
        protected = PVC_PROTECTION_FINALIZER in claim.metadata.finalizers
        if claim.metadata.deletion_timestamp is None:
            if not protected:
                _protect(self._api, claim, PVC_PROTECTION_FINALIZER)
        elif protected and not self._is_used(self._api, claim) and not self._is_used(self._live, claim):
            remove_finalizer(self._api, claim, PVC_PROTECTION_FINALIZER)
        return None

    @staticmethod
    def _is_used(api: ApiClient, claim: PersistentVolumeClaim) -> bool:
        from volumehost.api.objects import Pod

        return any(pod.spec.node_name and _uses(pod, claim) for pod in api.list(Pod, claim.metadata.namespace).items)


class VolumeProtection:
    """Controller of PersistentVolumes."""

    name = "volume-protection"

    def __init__(self, context: ControlContext) -> None:
        from volumehost.api.objects import PersistentVolume

        self.kind: type[KubeObject] = PersistentVolume
        self._api = context.api

    def watches(self) -> Mapping[type[KubeObject], Affects]:
        """Volumes."""
        from volumehost.api.objects import PersistentVolume

        return {PersistentVolume: lambda volume: [Key.of(volume)]}

    def reconcile(self, key: Key) -> float | None:
        """Protect the volume, or let it go when it is deleted and not bound."""
        from volumehost.api.objects import PersistentVolume

        volume: PersistentVolume | None = get_or_none(self._api, PersistentVolume, key.name)
        if volume is None:
            return None
        protected = PV_PROTECTION_FINALIZER in volume.metadata.finalizers
        if volume.metadata.deletion_timestamp is None:
            if not protected:
                _protect(self._api, volume, PV_PROTECTION_FINALIZER)
        elif protected and volume.status.phase != "Bound":
            remove_finalizer(self._api, volume, PV_PROTECTION_FINALIZER)
        return None


def _protect(api: ApiClient, obj: KubeObject, finalizer: str) -> None:
    try:
        add_finalizer(api, obj, finalizer)
    except ObjectNotFoundError:
        return


def _uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a pod that is on a node has the claim's volume, or may.

    One that has ended has it until its object is gone: its node may still be unmounting it. One of an ephemeral volume
    only where it was made for this very pod, and not when nobody waits for the pod any more: then some finalizer of the
    pod could wait for the claim, and the claim for the pod.
    """
    name = claim.metadata.name
    owners = {owner.uid for owner in claim.metadata.owner_references if owner.controller}
    metadata = pod.metadata
    shut_down = metadata.deletion_timestamp is not None and metadata.deletion_grace_period_seconds == 0
    return any(
        volume.persistent_volume_claim.claim_name == name
        if volume.persistent_volume_claim is not None
        else volume.ephemeral is not None
        and not shut_down
        and f"{metadata.name}-{volume.name}" == name
        and metadata.uid in owners
        for volume in pod.spec.volumes
    )


def _unfinished(claim: PersistentVolumeClaim) -> Iterable[Key]:
    metadata = claim.metadata
    idle = metadata.deletion_timestamp is None and PVC_PROTECTION_FINALIZER in metadata.finalizers
    return [] if idle else [Key.of(claim)]


def _claims(pod: Pod) -> Iterable[Key]:
    """Its claims: how it ends cannot be told from what is last told of it."""
    return [Key(name, pod.metadata.namespace) for name in claims_of(pod)]
