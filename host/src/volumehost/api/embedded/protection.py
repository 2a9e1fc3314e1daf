"""Storage in use is not deleted under its users: what two controllers do in a cluster, within the store's own writes.

A claim that a pod uses and a volume that is bound stay, marked for deletion, until their last user is gone. Being part
of the transaction, this has no moment in which a new user could slip in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from volumehost.api.defaults import PV_PROTECTION_FINALIZER, PVC_PROTECTION_FINALIZER
from volumehost.api.kinds import Kind, kind_of
from volumehost.api.objects import KubeObject, PersistentVolume, PersistentVolumeClaim, Pod

Document = dict[str, Any]

_FINISHED_PHASES = ("Succeeded", "Failed")


class Protection:
    """The rules, within one write transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def without_idle_finalizer(self, kind: Kind[Any], document: Document) -> Document:
        """The document of a claim or volume to be deleted, without its protection when nothing uses it."""
        if "deletionTimestamp" not in document["metadata"]:
            return document
        if kind.struct is PersistentVolumeClaim and self._is_claim_idle(document):
            return _without(document, PVC_PROTECTION_FINALIZER)
        if kind.struct is PersistentVolume and document.get("status", {}).get("phase") != "Bound":
            return _without(document, PV_PROTECTION_FINALIZER)
        return document

    def released_by(
        self, kind: Kind[Any], document: Document, *, gone: bool
    ) -> Iterator[tuple[Kind[KubeObject], Document]]:
        """Claims to be deleted whose last user the change of this pod has taken away, without their protection."""
        if kind.struct is not Pod or not (gone or _is_finished(document)):
            return
        claims = kind_of(PersistentVolumeClaim)
        namespace = document["metadata"].get("namespace", "")
        for name in sorted({name for name, _ephemeral in _claims_with_origin(document)}):
            row = self._connection.execute(
                "SELECT body FROM objects WHERE kind = ? AND namespace = ? AND name = ?", (claims.kind, namespace, name)
            ).fetchone()
            if row is None or b'"deletionTimestamp"' not in row[0]:
                continue
            claim: Document = msgspec.json.decode(row[0])
            changed = self.without_idle_finalizer(claims, claim)
            if changed is not claim:
                yield claims, changed

    def _is_claim_idle(self, claim: Document) -> bool:
        namespace = claim["metadata"].get("namespace", "")
        rows = self._connection.execute(
            "SELECT body FROM objects WHERE kind = 'Pod' AND namespace = ?", (namespace,)
        ).fetchall()
        pods = (msgspec.json.decode(row[0]) for row in rows)
        return not any(_uses(pod, claim) for pod in pods if not _is_finished(pod))


def _uses(pod: Mapping[str, Any], claim: Document) -> bool:
    """Whether the pod uses the claim; one for an ephemeral volume only if it is the pod's own.

    The claim of a former pod of that name must go, or the new pod could never have its own.
    """
    metadata = claim["metadata"]
    owners = {owner.get("uid") for owner in metadata.get("ownerReferences", ()) if owner.get("controller")}
    is_owner = pod["metadata"].get("uid") in owners
    return any(name == metadata["name"] and (is_owner or not ephemeral) for name, ephemeral in _claims_with_origin(pod))


def _claims_with_origin(pod: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """The names of the claims that a pod uses, and whether each is for an ephemeral volume."""
    for volume in pod.get("spec", {}).get("volumes", ()):
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"].get("claimName", ""), False
        elif "ephemeral" in volume:
            yield f"{pod['metadata']['name']}-{volume['name']}", True


def _is_finished(pod: Mapping[str, Any]) -> bool:
    return pod.get("status", {}).get("phase") in _FINISHED_PHASES


def _without(document: Document, finalizer: str) -> Document:
    finalizers = document["metadata"].get("finalizers", [])
    if finalizer not in finalizers:
        return document
    metadata = dict(document["metadata"])
    metadata["finalizers"] = [name for name in finalizers if name != finalizer]
    if not metadata["finalizers"]:
        del metadata["finalizers"]
    return document | {"metadata": metadata}
