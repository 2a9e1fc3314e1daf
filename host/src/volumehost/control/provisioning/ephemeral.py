"""Claims of generic ephemeral volumes: made for their pod, gone with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from volumehost.control.machinery.controller import Affects, ControlContext, Key
from volumehost.control.well_known import FINISHED_PHASES
from volumehost.control.writes import get_or_none
from volumehost.errors import AlreadyExistsError, ConflictError, FailedPreconditionError, ObjectNotFoundError

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject, OwnerReference, PersistentVolumeClaim, Pod, Volume


class EphemeralClaims:
    """The controller of pods as far as their ephemeral volumes are concerned."""

    name = "ephemeral volumes"

    def __init__(self, context: ControlContext) -> None:
        from volumehost.api.objects import Pod

        self.kind: type[KubeObject] = Pod
        self._api = context.api
        self._context = context

    def watches(self) -> Mapping[type[KubeObject], Affects]:
        """Pods, and claims that a pod owns."""
        from volumehost.api.objects import PersistentVolumeClaim, Pod

        return {Pod: _with_ephemeral_volumes, PersistentVolumeClaim: _owning_pod}

    def reconcile(self, key: Key) -> float | None:
        """Make the claims that a pod lacks, or delete those that a pod has left.

        :raises FailedPreconditionError: a claim of that name is there and is not the pod's.
        """
        from volumehost.api.objects import Pod

        pod = get_or_none(self._api, Pod, key.name, key.namespace)
        self._delete_left_behind(key, pod)
        if pod is None or pod.metadata.deletion_timestamp is not None or pod.status.phase in FINISHED_PHASES:
            return None
        for volume in pod.spec.volumes:
            if volume.ephemeral is not None:
                self._see_to(pod, volume)
        return None

    def _see_to(self, pod: Pod, volume: Volume) -> None:
        from volumehost.api.objects import ObjectMeta, OwnerReference, PersistentVolumeClaim

        template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
        if template is None:
            return
        metadata, name = pod.metadata, f"{pod.metadata.name}-{volume.name}"
        existing = get_or_none(self._api, PersistentVolumeClaim, name, metadata.namespace)
        if existing is None:
            owner = OwnerReference(
                api_version="v1",
                kind="Pod",
                name=metadata.name,
                uid=metadata.uid,
                controller=True,
                block_owner_deletion=True,
            )
            claim_metadata = ObjectMeta(
                name=name,
                namespace=metadata.namespace,
                labels=dict(template.metadata.labels),
                annotations=dict(template.metadata.annotations),
                owner_references=[owner],
            )
            try:
                existing = self._api.create(PersistentVolumeClaim(metadata=claim_metadata, spec=template.spec))
            except AlreadyExistsError:
                existing = self._api.get(PersistentVolumeClaim, name, metadata.namespace)
        found = _controlling_pod(existing)
        if found is None or found.uid != metadata.uid:
            where = f"{metadata.namespace}/{name}"
            raise FailedPreconditionError(
                f"PVC {where} was not created for pod {metadata.namespace}/{metadata.name} (pod is not owner)",
                action=f"making the claim of its ephemeral volume {volume.name}",
                subject=where,
                hint="delete that claim, or rename the volume",
            )

    def _delete_left_behind(self, key: Key, pod: Pod | None) -> None:
        """Delete the claims of a pod of that name that is gone."""
        from volumehost.api.objects import PersistentVolumeClaim

        for claim in self._api.list(PersistentVolumeClaim, key.namespace).items:
            owner = _controlling_pod(claim)
            if owner is None or owner.name != key.name or claim.metadata.deletion_timestamp is not None:
                continue
            if (pod is None or pod.metadata.uid != owner.uid) and self._is_gone(key, owner.uid):
                metadata = claim.metadata
                seen = {"uid": metadata.uid, "resource_version": metadata.resource_version}  # it is the pod's still
                try:
                    self._api.delete(type(claim), metadata.name, key.namespace, **seen)
                except (ObjectNotFoundError, ConflictError):
                    continue  # somebody else was faster

    def _is_gone(self, key: Key, uid: str) -> bool:
        """Whether there is no such pod: a cache may not have heard of it yet."""
        from volumehost.api.objects import Pod

        pod = get_or_none(self._context.uncached, Pod, key.name, key.namespace)
        return pod is None or pod.metadata.uid != uid


def _controlling_pod(claim: PersistentVolumeClaim) -> OwnerReference | None:
    return next((owner for owner in claim.metadata.owner_references if owner.controller and owner.kind == "Pod"), None)


def _owning_pod(claim: PersistentVolumeClaim) -> Iterable[Key]:
    owner = _controlling_pod(claim)
    return [] if owner is None else [Key(owner.name, claim.metadata.namespace)]


def _with_ephemeral_volumes(pod: Pod) -> Iterable[Key]:
    """A pod without them has nothing to be seen to; what a former one of its name left, its claims tell of."""
    return [Key.of(pod)] if any(volume.ephemeral is not None for volume in pod.spec.volumes) else []
