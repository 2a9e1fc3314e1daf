"""Where the volumes of a cluster's pods stand, as far as its API objects tell: for whoever is not on the pod's node.

Pods, claims, attachments and events are read, nothing of this machine. ``status`` and ``explain`` put what an agent
of this machine says in the place of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttachment
from volumehost.errors import ApiError, ForbiddenError, ObjectNotFoundError
from volumehost.node.explaining import sequence
from volumehost.node.explaining.events import last_trouble
from volumehost.node.explaining.explain import find_status, of_pod
from volumehost.node.explaining.facts import argument_of, explanation_of
from volumehost.node.explaining.recorded import RecordedFacts
from volumehost.node.journal.format import JournalContents
from volumehost.node.populating.claims import claim_name
from volumehost.node.populating.pods import UsedVolumes, used_volumes, workload_has_ended
from volumehost.node.status.records import PodStatus, VolumeStatus, pod_state

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Event, Volume
    from volumehost.node.explaining.explanation import PodExplanation

_CSI: Final = "kubernetes.io/csi"
_ATTACH: Final = "volume_attach"


@dataclass(slots=True)
class _Objects:
    """What pods' volumes depend on: claims by namespace and name, volumes by name, attachments by volume and node.

    ``all_volumes``: whoever asks may see them; where he may not, what he may see is told.
    """

    claims: Mapping[tuple[str, str], PersistentVolumeClaim] = field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    attachments: Mapping[tuple[str, str], VolumeAttachment] = field(default_factory=dict)
    all_volumes: bool = True


def cluster_status(api: ApiClient, namespace: str | None = None, name: str | None = None) -> list[PodStatus]:
    """One record for each pod, of the namespace, or of the name or uid, if one is given.

    A volume counts as ``mounted`` when the pod's containers have started, since none starts before that.
    """
    if name is not None:
        pods = [pod for pod in _named(api, namespace, name) if name in {pod.metadata.name, pod.metadata.uid}]
    else:
        pods = api.list(Pod, namespace).items
    objects = _objects(api, namespace) if any(pod.spec.volumes for pod in pods) else _Objects()
    found = [_status(pod, objects) for pod in pods]
    return sorted(found, key=lambda status: (status.namespace, status.name, status.uid))


def explain_in_cluster(api: ApiClient, namespace: str, name: str) -> PodExplanation:
    """Why the volumes of the pod are not ready, from the cluster's objects.

    :raises ObjectNotFoundError: there is no such pod.
    """
    status = find_status(cluster_status(api, namespace, name), namespace, name)
    pod = api.get(Pod, status.name, status.namespace)
    facts = RecordedFacts(JournalContents(), api, pod.spec.node_name)
    event = _event(api, pod)
    volumes = []
    for each in status.volumes:
        found = facts.of_volume(each, pod, status.uid)
        if pod.spec.node_name and not (found.claim is not None and found.claim.phase):
            found.here = sequence.ATTACH if each.operation == _ATTACH else sequence.CHECK
        if not each.ready and not found.error and event is not None and _concerns(event, each.volume):
            found.error = f"{event.reason}: {event.message}".splitlines()
        volumes.append(explanation_of(found))
    told = of_pod(status, None, volumes, ended=False, problem="", live=False)
    waits_for, advice = _of_pod(pod, event, ready=told.ready)
    notes = [*told.notes, "told from the cluster's objects"]
    if pod.spec.node_name:
        label = argument_of(f"{status.namespace}/{status.name}")
        notes[-1] += f"; on node {pod.spec.node_name} 'volumehost explain {label}' asks its agent"
    return msgspec.structs.replace(
        told, waits_for=(*waits_for, *told.waits_for), advice=(*advice, *told.advice), notes=tuple(notes)
    )


def _named(api: ApiClient, namespace: str | None, name: str) -> list[Pod]:
    try:
        return [api.get(Pod, name, namespace or "")]
    except ObjectNotFoundError:
        return api.list(Pod, namespace).items  # it may be a uid


def _objects(api: ApiClient, namespace: str | None) -> _Objects:
    claims = api.list(PersistentVolumeClaim, namespace).items
    found = _Objects({(each.metadata.namespace, each.metadata.name): each for each in claims})
    try:
        found.volumes = {each.metadata.name: each for each in api.list(PersistentVolume).items}
        found.attachments = {
            (each.spec.source.persistent_volume_name or "", each.spec.node_name): each
            for each in api.list(VolumeAttachment).items
        }
    except ForbiddenError:
        found.all_volumes = False
    return found


def _status(pod: Pod, objects: _Objects) -> PodStatus:
    used = used_volumes(pod)
    volumes = tuple(_volume(pod, volume, used, objects) for volume in pod.spec.volumes)
    going = pod.metadata.deletion_timestamp is not None
    metadata = pod.metadata
    state = "not-mounted" if workload_has_ended(pod) else pod_state(volumes, ending=going)
    note = "it is being deleted: its volumes are unmounted once its containers have ended" if going else ""
    return PodStatus(metadata.namespace, metadata.name, metadata.uid, state, volumes, note)


def _volume(pod: Pod, volume: Volume, used: UsedVolumes, objects: _Objects) -> VolumeStatus:
    name, inline = volume.name, _CSI if volume.csi is not None else ""
    if name not in used:
        return VolumeStatus(name, "unused", inline)
    if workload_has_ended(pod):
        return VolumeStatus(name, "not-mounted", inline)
    wanted = claim_name(volume, pod)
    if wanted is None:
        return _mounting(pod, name, inline)
    label = f"{pod.metadata.namespace}/{wanted}"
    claim = objects.claims.get((pod.metadata.namespace, wanted))
    if claim is None:
        return VolumeStatus(name, "pending", error=f"its claim {label} is not there")
    persistent = objects.volumes.get(claim.spec.volume_name)
    plugin = _CSI if persistent is not None and persistent.spec.csi is not None else ""
    if claim.status.phase != "Bound" or (persistent is None and objects.all_volumes):
        return VolumeStatus(name, "pending", plugin, error=f"its claim {label} is {claim.status.phase or 'Pending'}")
    attachment = objects.attachments.get((claim.spec.volume_name, pod.spec.node_name))
    if attachment is None or attachment.status.attached or _has_started(pod):
        return _mounting(pod, name, plugin)
    error = attachment.status.attach_error
    if error is not None:
        return VolumeStatus(name, "failed", plugin, operation=_ATTACH, error=error.message or "the attachment failed")
    return VolumeStatus(name, "mounting", plugin, operation=_ATTACH)


def _mounting(pod: Pod, name: str, plugin: str) -> VolumeStatus:
    """A volume that nothing but the pod's node is between."""
    if _has_started(pod):
        return VolumeStatus(name, "mounted", plugin)
    if not pod.spec.node_name:
        return VolumeStatus(name, "pending", plugin, error="the pod has no node yet")
    return VolumeStatus(name, "mounting", plugin)


def _has_started(pod: Pod) -> bool:
    """Whether containers were started, which no kubelet does before every volume is mounted."""
    return bool(pod.spec.node_name) and pod.status.phase == "Running"


def _event(api: ApiClient, pod: Pod) -> Event | None:
    try:
        return last_trouble(api, pod)
    except ApiError:
        return None  # events are a help, no more; whoever may not read them is told the rest


def _concerns(event: Event, volume: str) -> bool:
    """Whether the event names the volume, or no volume at all."""
    if event.reason not in {"FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedMountOnFilesystemMismatch"}:
        return False
    return f'"{volume}"' in event.message or "for volume " not in event.message


def _of_pod(pod: Pod, event: Event | None, *, ready: bool) -> tuple[list[str], list[str]]:
    """What the pod as a whole waits for, and what to do about it."""
    if pod.metadata.deletion_timestamp is not None:
        return [f"the end of its containers on node {pod.spec.node_name or '(none)'}: it is being deleted"], []
    if ready or pod.spec.node_name:
        return [], []
    scheduling = event.message if event is not None and event.reason == "FailedScheduling" else ""
    words = f"the scheduler, which has not given it a node{f': {scheduling}' if scheduling else ''}"
    return [words], ["where there is no scheduler, name a node in spec.nodeName"]
