"""Binds claims to volumes, and has volumes made where none suits (PVC-10 to -12, PVC-50).

What a claim waits for without that being anybody's failure is reported as a step, not raised.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from volumehost.control.binding.bind_writes import bind, set_claim_bound, set_claim_phase, set_volume_phase
from volumehost.control.binding.intent import clear_intent, has_intent
from volumehost.control.binding.matching import NodeView, find_match, refers_to, requested_volume_problem, why_none
from volumehost.control.binding.scheduling import claims_of, selected_node, users_of
from volumehost.control.binding.volume_use import claim_of
from volumehost.control.machinery.controller import Affects, ControlContext, Key
from volumehost.control.machinery.counting import counted_class_assignment
from volumehost.control.provisioning.classes import class_of_claim, default_class, is_delayed
from volumehost.control.provisioning.provisioner import Provisioner
from volumehost.control.well_known import BIND_COMPLETED, BOUND_BY_CONTROLLER, CLONING_FINALIZER
from volumehost.control.writes import get_or_none, remove_finalizer, update
from volumehost.errors import FailedPreconditionError

if TYPE_CHECKING:
    from volumehost.api.objects import (
        KubeObject,
        Node,
        PersistentVolume,
        PersistentVolumeClaim,
        StorageClass,
        VolumeSnapshot,
    )


class ClaimBinder:
    """The controller of claims."""

    name = "binder"

    def __init__(self, context: ControlContext) -> None:
        from volumehost.api.objects import PersistentVolumeClaim

        self.kind: type[KubeObject] = PersistentVolumeClaim
        self._context = context
        self._api = context.api
        self._provisioner = Provisioner(context)
        # Hints on what to look at when something else changes; without them a claim would only come later.
        self._lock = threading.Lock()
        #: Claims that wait for something.
        self._waiting: set[Key] = set()
        #: From what claims are to be made from, by kind, to those claims.
        self._made_from: dict[tuple[str, Key], set[Key]] = {}
        #: From a volume to the claim that names it.
        self._named: dict[str, Key] = {}
        #: The labels of each node; nothing else about nodes matters here, and their status changes all the time.
        self._labels: dict[str, Mapping[str, str]] = {}

    def watches(self) -> Mapping[type[KubeObject], Affects]:
        """Claims, the volumes that they could have, and whatever else could end a claim's waiting."""
        from volumehost.api import objects

        return {
            objects.PersistentVolumeClaim: self._of_claim,
            objects.PersistentVolume: self._of_volume,
            objects.Pod: self._of_pod,
            objects.StorageClass: self._all_waiting,
            objects.VolumeAttributesClass: self._all_waiting,
            objects.CSINode: self._all_waiting,
            objects.Node: self._of_node,
            objects.CSIStorageCapacity: self._all_waiting,
            objects.Secret: self._all_waiting,
            objects.VolumeSnapshot: self._of_snapshot,
        }

    def reconcile(self, key: Key) -> float | None:
        """Bring one claim a step further."""
        from volumehost.api.objects import ObjectMeta, PersistentVolumeClaim

        with self._lock:
            self._waiting.add(key)
        claim = get_or_none(self._api, PersistentVolumeClaim, key.name, key.namespace)
        if claim is None:
            self._release_volumes_of(key)
            claim = PersistentVolumeClaim(metadata=ObjectMeta(name=key.name, namespace=key.namespace))
        elif not self._reconcile(claim):
            return None
        self._forget(key, gone=not claim.metadata.uid)
        self._context.progress(claim, "")
        return None

    def _reconcile(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the claim needs nothing any more."""
        self._remember(claim)
        if CLONING_FINALIZER in claim.metadata.finalizers and not self._is_being_cloned(claim):
            remove_finalizer(self._api, claim, CLONING_FINALIZER)
        if claim.metadata.deletion_timestamp is not None:
            self._provisioner.abandon(claim)
            return True
        if BIND_COMPLETED in claim.metadata.annotations:
            return self._check_bound(claim)
        if has_intent(claim):
            storage_class = self._class_of(claim)
            return self._provision(claim, self._node_for(claim, storage_class), storage_class)
        if claim.spec.volume_name:
            return self._take_named_volume(claim)
        return self._find_volume(claim)

    # --- claims that are not bound ----------------------------------------------------------------------------------

    def _find_volume(self, claim: PersistentVolumeClaim) -> bool:
        """PVC-10: the best volume that there is, else have one made, else wait."""
        from volumehost.api.objects import PersistentVolume

        name, storage_class = class_of_claim(claim), self._class_of(claim)
        delayed, node = is_delayed(storage_class), self._node_for(claim, storage_class)
        volumes = self._api.list(PersistentVolume).items
        match = find_match(claim, volumes, node=node, delayed=delayed)
        if match is not None:
            return self._bind(match, claim)
        if name is None and self._assign_default_class(claim):
            return False  # the change brings it back at once
        candidates = [each for each in volumes if each.spec.claim_ref is None or refers_to(each, claim)]
        reasons = why_none(claim, candidates, node=node, delayed=delayed)
        if delayed and node is None:
            self._wait_for_consumer(claim)
        elif name:
            return self._provision(claim, node, storage_class, reasons)
        else:
            text = "no persistent volumes available for this claim and no storage class is set"
            self._event(claim, "Normal", "FailedBinding", text)
            self._context.progress(claim, f"waiting for a volume: {reasons or text}")
        set_claim_phase(self._api, claim, "Pending")
        return False

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        from volumehost.api.objects import StorageClass

        name = class_of_claim(claim)
        return get_or_none(self._api, StorageClass, name) if name else None

    def _node_for(self, claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> NodeView | None:
        """The node that the claim waits for, where its class waits for one."""
        if not is_delayed(storage_class):
            return None
        context = self._context
        return selected_node(self._api, claim, context.node_name, has_scheduler=context.external_drivers)

    def _provision(
        self,
        claim: PersistentVolumeClaim,
        node: NodeView | None,
        storage_class: StorageClass | None,
        reasons: str = "",
    ) -> bool:
        volume = self._provisioner.provision(claim, storage_class, node, reasons)
        if volume is None:
            set_claim_phase(self._api, claim, "Pending")
            return False
        return self._bind(volume, claim)

    def _take_named_volume(self, claim: PersistentVolumeClaim) -> bool:
        """PVC-11: the claim says which volume it wants."""
        from volumehost.api.objects import PersistentVolume

        name = claim.spec.volume_name
        volume = get_or_none(self._api, PersistentVolume, name)
        if volume is None:
            return self._wait(claim, f"waiting for persistentvolume {name}, which is not there")
        if volume.spec.claim_ref is None:
            problem = requested_volume_problem(volume, claim)
            if not problem:
                return self._bind(volume, claim)
            text = f'Cannot bind to requested volume "{name}": {problem}'
            self._event(claim, "Warning", "VolumeMismatch", text)
            return self._wait(claim, f"waiting for another volume: {text}")
        if refers_to(volume, claim):
            return self._bind(volume, claim)
        text = f'volume "{name}" already bound to a different claim.'
        self._event(claim, "Warning", "FailedBinding", text)
        if BOUND_BY_CONTROLLER in claim.metadata.annotations:
            raise FailedPreconditionError(text, action=f"binding {_where(claim)}", subject=name)
        return self._wait(claim, f"waiting for its volume: {text}")

    def _bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        self._context.progress(claim, f"binding persistentvolume {volume.metadata.name}")
        bind(self._api, volume, claim)
        return True

    def _wait(self, claim: PersistentVolumeClaim, step: str) -> bool:
        self._context.progress(claim, step)
        set_claim_phase(self._api, claim, "Pending")
        return False

    def _wait_for_consumer(self, claim: PersistentVolumeClaim) -> None:
        pods = users_of(self._api, claim)
        if pods:
            names = ",".join(sorted(pod.metadata.name for pod in pods))
            reason, text = "WaitForPodScheduled", f"waiting for pod {names} to be scheduled"
        else:
            reason, text = "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
        self._event(claim, "Normal", reason, text)
        self._context.progress(claim, text)

    def _assign_default_class(self, claim: PersistentVolumeClaim) -> bool:
        """PVC-53: a claim that says nothing gets the default class, also one that was there before the class."""
        storage_class = default_class(self._api)
        if storage_class is None:
            return False

        def change(fresh: PersistentVolumeClaim) -> None:
            if fresh.spec.storage_class_name is None:
                fresh.spec.storage_class_name = storage_class.metadata.name

        with counted_class_assignment(self._context.metrics):
            update(self._api, claim, change)
        return True

    # --- claims that are bound --------------------------------------------------------------------------------------

    def _check_bound(self, claim: PersistentVolumeClaim) -> bool:
        """PVC-12: the volume is still there and still this claim's."""
        from volumehost.api.objects import PersistentVolume

        if has_intent(claim):
            claim = clear_intent(self._api, claim)
        name = claim.spec.volume_name
        volume = get_or_none(self._api, PersistentVolume, name) if name else None
        if volume is None and name:
            volume = get_or_none(self._context.uncached, PersistentVolume, name)
        if volume is None:
            what = "PersistentVolume" if name else "reference to PersistentVolume"
            return self._lose(claim, "ClaimLost", f"Bound claim has lost its {what}. Data on the volume is lost!")
        reference = volume.spec.claim_ref
        if reference is not None and reference.uid not in {"", claim.metadata.uid}:
            text = "Two claims are bound to the same volume, this one is bound incorrectly"
            return self._lose(claim, "ClaimMisbound", text)
        if reference is None or not reference.uid:
            return self._bind(volume, claim)
        if volume.status.phase != "Bound":
            set_volume_phase(self._api, volume, "Bound")
        set_claim_bound(self._api, volume, claim)
        return True

    def _lose(self, claim: PersistentVolumeClaim, reason: str, text: str) -> bool:
        if claim.status.phase != "Lost":
            self._event(claim, "Warning", reason, text)
            set_claim_phase(self._api, claim, "Lost")
        return True

    def _release_volumes_of(self, key: Key) -> None:
        """The claim is gone: its volumes are told, also those that it had been given and did not know of yet."""
        from volumehost.api.objects import PersistentVolume

        for volume in self._api.list(PersistentVolume).items:
            reference = volume.spec.claim_ref
            if reference is None or not reference.uid or (reference.name, reference.namespace) != key:
                continue
            if volume.status.phase in {"Released", "Failed"}:
                continue
            if claim_of(self._context.uncached, volume) is None:  # one that a cache has not heard of yet is not gone
                set_volume_phase(self._api, volume, "Released")

    def _is_being_cloned(self, source: PersistentVolumeClaim) -> bool:
        """Whether a claim that is not bound yet has this one as its source."""
        from volumehost.api.objects import PersistentVolumeClaim

        for claim in self._api.list(PersistentVolumeClaim, source.metadata.namespace).items:
            if _cloned_from(claim) != Key.of(source):
                continue
            if claim.status.phase == "Pending" and (claim.metadata.deletion_timestamp is None or has_intent(claim)):
                return True
        return False

    # --- hints ------------------------------------------------------------------------------------------------------

    def _remember(self, claim: PersistentVolumeClaim) -> None:
        """What other objects have to do with this claim."""
        key, source = Key.of(claim), _source_of(claim)
        with self._lock:
            if claim.spec.volume_name:
                self._named[claim.spec.volume_name] = key
            if source is not None:
                self._made_from.setdefault(source, set()).add(key)

    def _forget(self, key: Key, *, gone: bool) -> None:
        """The claim waits for nothing, and names no volume when it is gone."""
        with self._lock:
            self._waiting.discard(key)
            self._made_from = {source: rest for source, made in self._made_from.items() if (rest := made - {key})}
            if gone:
                self._named = {name: owner for name, owner in self._named.items() if owner != key}

    # --- what concerns which claim ----------------------------------------------------------------------------------

    def _of_claim(self, claim: PersistentVolumeClaim) -> Iterable[Key]:
        """The claim itself; those that wait for it as their source; the source that it was cloned from."""
        own, source = Key.of(claim), _cloned_from(claim)
        with self._lock:
            made = self._made_from.get(("PersistentVolumeClaim", own), ())
            return [own, *made, *((source,) if source is not None else ())]

    def _of_snapshot(self, snapshot: VolumeSnapshot) -> Iterable[Key]:
        """Those that are to be made from it; others have nothing to hope for, and keep their backoff (BR-53)."""
        with self._lock:
            return list(self._made_from.get(("VolumeSnapshot", Key.of(snapshot)), ()))

    def _of_volume(self, volume: PersistentVolume) -> Iterable[Key]:
        reference = volume.spec.claim_ref
        if reference is not None:
            return [Key(reference.name, reference.namespace)]
        owner = self._named.get(volume.metadata.name)
        return [*self._all_waiting(volume), *((owner,) if owner is not None else ())]

    def _of_pod(self, pod: Any) -> Iterable[Key]:
        with self._lock:
            return {Key(name, pod.metadata.namespace) for name in claims_of(pod)} & self._waiting

    def _of_node(self, node: Node) -> Iterable[Key]:
        name, labels = node.metadata.name, node.metadata.labels
        with self._lock:
            before, self._labels[name] = self._labels.get(name), labels
            return list(self._waiting) if labels != before else []

    def _all_waiting(self, _changed: Any) -> Iterable[Key]:
        with self._lock:
            return list(self._waiting)

    def _event(self, claim: PersistentVolumeClaim, event_type: str, reason: str, message: str) -> None:
        self._context.event(claim, event_type, reason, message)


def _source_of(claim: PersistentVolumeClaim) -> tuple[str, Key] | None:
    """What this one is to be made from, with its kind."""
    reference = claim.spec.data_source_ref
    return None if reference is None else (reference.kind, Key(reference.name, claim.metadata.namespace))


def _cloned_from(claim: PersistentVolumeClaim) -> Key | None:
    """The claim that this one is to be cloned from."""
    source = _source_of(claim)
    return source[1] if source is not None and source[0] == "PersistentVolumeClaim" else None


def _where(claim: PersistentVolumeClaim) -> str:
    return f"persistentvolumeclaim {claim.metadata.namespace}/{claim.metadata.name}"
