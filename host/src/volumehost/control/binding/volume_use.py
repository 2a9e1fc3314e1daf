"""Whose a volume is, and who uses it, in words for those who wait for its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.control.binding.scheduling import claims_of
from volumehost.control.well_known import FINISHED_PHASES
from volumehost.control.writes import get_or_none

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, Pod


def claim_of(api: ApiClient, volume: PersistentVolume) -> PersistentVolumeClaim | None:
    """The claim that the volume belongs to; None when it belongs to none, that is gone, or another one has its name."""
    from volumehost.api.objects import PersistentVolumeClaim

    reference = volume.spec.claim_ref
    if reference is None:
        return None
    claim = get_or_none(api, PersistentVolumeClaim, reference.name, reference.namespace)
    return claim if claim is not None and claim.metadata.uid == reference.uid else None


def users_in_words(api: ApiClient, claim: PersistentVolumeClaim, volume: PersistentVolume) -> list[str]:
    """The pods that may still have the claim mounted, else the nodes that the volume is attached to."""
    from volumehost.api.objects import VolumeAttachment

    pods = pods_with(api, claim.metadata.name, claim.metadata.namespace)
    return [f"pod {pod.metadata.name}" for pod in pods] or [
        f"node {each.spec.node_name} (it is attached to it)"
        for each in api.list(VolumeAttachment).items
        if each.spec.source.persistent_volume_name == volume.metadata.name and each.status.attached
    ]


def pods_with(api: ApiClient, claim: str, namespace: str) -> list[Pod]:
    """The pods that may still have the claim of that name mounted.

    One that has ended or is being deleted has it until its volumes are unmounted, which finalizers tell.
    """
    from volumehost.api.objects import Pod

    return [
        pod
        for pod in api.list(Pod, namespace).items
        if claim in claims_of(pod) and (pod.status.phase not in FINISHED_PHASES or pod.metadata.finalizers)
    ]
