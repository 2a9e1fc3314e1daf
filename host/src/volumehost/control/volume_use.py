"""Who uses a volume, in words for those who wait for its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.control.scheduling import claims_of

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim

_FINISHED = ("Succeeded", "Failed")


def users_in_words(api: ApiClient, claim: PersistentVolumeClaim, volume: PersistentVolume) -> list[str]:
    """The pods that may still have the claim mounted, else the nodes that the volume is attached to.

    A pod that is being deleted has it until its volumes are unmounted, which finalizers tell.
    """
    from volumehost.api.objects import Pod, VolumeAttachment

    pods = [
        f"pod {pod.metadata.name}"
        for pod in api.list(Pod, claim.metadata.namespace).items
        if claim.metadata.name in claims_of(pod) and (pod.status.phase not in _FINISHED or pod.metadata.finalizers)
    ]
    return pods or [
        f"node {each.spec.node_name} (it is attached to it)"
        for each in api.list(VolumeAttachment).items
        if each.spec.source.persistent_volume_name == volume.metadata.name and each.status.attached
    ]
