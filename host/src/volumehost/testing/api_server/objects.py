"""Objects: what the server holds, for tests to read and change past the API, its checks and its record."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from volumehost.api.manifest_documents import read_documents
from volumehost.api.merging import merge_patch
from volumehost.testing.api_server.cluster import Cluster
from volumehost.testing.api_server.defaulting import with_defaults
from volumehost.testing.api_server.resources import Resource, find, of_document
from volumehost.testing.api_server.storage import Document, Key


class Objects:
    """What the server holds, by resource (``pods``, or the kind ``Pod``). Documents that come back are copies.

    ``namespace`` "" means ``default`` for resources that have namespaces.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def get(self, resource: str, name: str, namespace: str = "") -> Document:
        """The object as it is now.

        :raises LookupError: there is none.
        """
        found = self.find(resource, name, namespace)
        if found is None:
            raise LookupError(f"the API server holds no {resource} {namespace or 'default'}/{name}")
        return found

    def find(self, resource: str, name: str, namespace: str = "") -> Document | None:
        """The object as it is now, None when there is none."""
        known = find(resource)
        stored = self._cluster.storage.get(known, _key(known, name, namespace))
        return None if stored is None else copy.deepcopy(stored.document)

    def list(self, resource: str, namespace: str = "") -> list[Document]:
        """All objects, of every namespace for "", by namespace and name."""
        return [
            copy.deepcopy(stored.document)
            for key, stored in self._cluster.storage.all(find(resource))
            if not namespace or key[0] == namespace
        ]

    def put(self, document: Mapping[str, Any]) -> Document:
        """Create the object or replace it, status included, whatever there was; makes its namespace too.

        uid and creation time stay or are made; defaults are filled in.
        """
        resource = of_document(document["apiVersion"], document["kind"])
        made: Document = copy.deepcopy(dict(document))
        metadata = made["metadata"]
        if resource.namespaced:
            metadata.setdefault("namespace", "default")
            self._cluster.make_namespace(metadata["namespace"])
        with self._cluster.storage.lock:
            key = _key(resource, metadata["name"], metadata.get("namespace", ""))
            old = self._cluster.storage.get(resource, key)
            kept = {} if old is None else old.document["metadata"]
            metadata.setdefault("uid", kept.get("uid") or self._cluster.uid())
            metadata.setdefault("creationTimestamp", kept.get("creationTimestamp") or self._cluster.now())
            if resource.has_generation:
                metadata.setdefault("generation", kept.get("generation", 0) + 1)
            status = made.get("status")
            made = with_defaults(resource, made, new=old is None)
            if status is not None:
                made["status"] = {**made.get("status", {}), **status}
            return copy.deepcopy(self._cluster.storage.put(resource, made).document)

    def load(self, path: str) -> None:
        """Put every object of a file of manifests.

        :raises OSError: it cannot be read.
        """
        with open(path, encoding="utf-8") as file:
            documents = [document.value for document in read_documents(file.read())]
        for document in documents:
            if document:
                self.put(document)

    def patch(self, resource: str, name: str, patch: Mapping[str, Any], namespace: str = "") -> Document:
        """Apply a JSON merge patch, to the status too, whatever may not change."""
        known = find(resource)
        with self._cluster.storage.lock:
            document = merge_patch(self.get(resource, name, namespace), patch)
            return copy.deepcopy(self._cluster.storage.put(known, document).document)

    def delete(self, resource: str, name: str, namespace: str = "") -> Document:
        """Take the object away at once, finalizers or not.

        :raises LookupError: there is none.
        """
        known = find(resource)
        with self._cluster.storage.lock:
            self.get(resource, name, namespace)
            last = self._cluster.storage.remove(known, _key(known, name, namespace))
            return copy.deepcopy(last.document)

    def wait(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        *,
        until: Callable[[Document | None], object],
        timeout: float = 10.0,
    ) -> Document | None:
        """Wait until the condition holds of the object (None while there is none); returns it as it is then.

        :raises TimeoutError: it did not; shows the object.
        """
        held: list[Document | None] = []

        def holds() -> bool:
            held[:] = [self.find(resource, name, namespace)]
            return bool(until(held[0]))

        if not self._cluster.storage.wait(holds, timeout):
            shown = msgspec.json.format(msgspec.json.encode(held[0] if held else None), indent=2).decode()
            raise TimeoutError(f"{resource} {name} did not become so within {timeout:g} s; it is {shown}")
        return held[0]


def _key(resource: Resource, name: str, namespace: str) -> Key:
    return (namespace or "default") if resource.namespaced else "", name
