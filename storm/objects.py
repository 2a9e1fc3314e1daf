"""The store as a storm uses it: from outside, as commands do, whether or not an agent runs."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from typing import Any

from storm.expected import Source
from storm.wishes import LOOP, Pod
from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from volumehost.api.objects import Pod as StoredPod
from volumehost.api.store import EmbeddedStore
from volumehost.errors import AlreadyExistsError, ConflictError, ObjectNotFoundError
from volumehost.hosts.layout import Layout

ENDED = {"volumehost.io/workload-ended": "true"}


class Objects:
    """One root directory's store."""

    def __init__(self, root: str) -> None:
        self.store = EmbeddedStore(Layout(root).store_file())

    def close(self) -> None:
        """Close it."""
        self.store.close()

    # --- wishes -----------------------------------------------------------------------------------------------------

    def create(self, *documents: dict[str, Any]) -> None:
        """Make objects, but for those that are there."""
        for document in documents:
            with contextlib.suppress(AlreadyExistsError):
                self.store.create(document)

    def end_pod(self, name: str) -> None:
        """The word that the pod's workload has ended, with its deletion; nothing happens when it is gone."""
        with contextlib.suppress(ObjectNotFoundError):
            self.store.patch(StoredPod, name, {"metadata": {"annotations": ENDED}}, "default")
            self.store.delete(StoredPod, name, "default")

    def label_pod(self, name: str, value: str) -> None:
        """Change a pod in a way that does not matter to its volumes."""
        with contextlib.suppress(ObjectNotFoundError, ConflictError):
            self.store.patch(StoredPod, name, {"metadata": {"labels": {"storm": value}}}, "default")

    def delete_claim(self, name: str) -> None:
        """Delete a claim; its volume goes with it."""
        with contextlib.suppress(ObjectNotFoundError):
            self.store.delete(PersistentVolumeClaim, name, "default")

    def grow_claim(self, name: str, size: str) -> None:
        """Ask for more."""
        patch = {"spec": {"resources": {"requests": {"storage": size}}}}
        self.store.patch(PersistentVolumeClaim, name, patch, "default")

    # --- what there is ----------------------------------------------------------------------------------------------

    def pods(self) -> dict[str, StoredPod]:
        """By name."""
        return {pod.metadata.name: pod for pod in self.store.list(StoredPod).items}

    def claims(self) -> dict[str, PersistentVolumeClaim]:
        """By name."""
        return {claim.metadata.name: claim for claim in self.store.list(PersistentVolumeClaim).items}

    def volumes(self) -> dict[str, PersistentVolume]:
        """By name."""
        return {volume.metadata.name: volume for volume in self.store.list(PersistentVolume).items}

    def attached_volumes(self) -> list[str]:
        """Names of the PersistentVolumes that attachments are for."""
        return [
            attachment.spec.source.persistent_volume_name or ""
            for attachment in self.store.list(VolumeAttachment).items
        ]

    def sources(self, pods: Iterable[Pod]) -> dict[tuple[str, str], Source]:
        """The CSI volumes of these pods, as far as they are bound, by the names of pod and volume."""
        claims, volumes = self.claims(), self.volumes()
        found = {}
        for pod in pods:
            for volume in pod.volumes:
                if volume.kind == "inline":
                    handle = f"csi-{hashlib.sha256((pod.uid + volume.name).encode()).hexdigest()}"
                    found[pod.name, volume.name] = Source(volume.name, handle, LOOP)
                elif volume.is_csi:
                    name = volume.claim or f"{pod.stored_name}-{volume.name}"
                    bound = volumes.get(claims[name].spec.volume_name or "") if name in claims else None
                    if bound is not None and bound.spec.csi is not None:
                        handle = bound.spec.csi.volume_handle
                        found[pod.name, volume.name] = Source(bound.metadata.name, handle, volume.driver, name)
        return found
