"""Cluster: what all parts of the API server share: the objects, the time, chance."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from volumehost.testing.api_server.event_versions import from_core
from volumehost.testing.api_server.failures import StatusError, forbidden, not_found
from volumehost.testing.api_server.resources import Resource, find
from volumehost.testing.api_server.storage import Document, Key, Storage, Stored

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Cluster:
    """The objects of one API server and how they come to be what they are."""

    def __init__(
        self, *, history: int, seed: int, clock: Callable[[], float], patience: float, service_accounts: bool
    ) -> None:
        self.storage = Storage(history)
        self.clock = clock
        self.service_accounts = service_accounts
        self.stopping = threading.Event()
        #: Certificates in PEM by which a pod would know the server.
        self.authority = "-----BEGIN CERTIFICATE-----\ndGVzdA==\n-----END CERTIFICATE-----\n"
        #: How long a read of a version that is not there yet waits for it, in seconds.
        self.patience = patience
        #: Where the caches stay behind, if they do: what is read "from any version", and watched, ends there.
        self.lag: int | None = None
        self._random = random.Random(seed)  # noqa: S311 - chance, not secrecy
        self._random_lock = threading.Lock()

    def now(self) -> str:
        """The time as metadata has it."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.clock()))

    def uid(self) -> str:
        """A new uid."""
        return str(uuid.uuid4())

    def suffix(self) -> str:
        """The end of a generated name."""
        with self._random_lock:
            return "".join(self._random.choice(_LETTERS) for _ in range(5))

    def shuffled(self, items: list[Any]) -> list[Any]:
        """The items in another order."""
        with self._random_lock:
            return self._random.sample(items, len(items))

    @property
    def reached(self) -> int:
        """The revision up to which the caches know everything."""
        return self.storage.revision if self.lag is None else min(self.lag, self.storage.revision)

    def cached(self, resource: Resource) -> tuple[int, list[tuple[Key, Stored]]]:
        """What the caches have of a resource, by namespace and name, and as of which revision."""
        with self.storage.lock:
            if self.lag is None:
                return self.storage.revision, self.storage.all(resource)
            return self.reached, self.storage.at(self.reached, resource)

    def existing(self, resource: Resource, key: Key) -> Stored:
        """The object.

        :raises StatusError: there is none (404).
        """
        stored = self.storage.get(resource, key)
        if stored is None:
            raise not_found(resource, key[1])
        return stored

    def make_namespace(self, name: str) -> None:
        """Let there be a namespace, with what every namespace has."""
        namespaces = find("namespaces")
        with self.storage.lock:
            if self.storage.get(namespaces, ("", name)) is not None:
                return
            metadata = {"name": name, "uid": self.uid(), "creationTimestamp": self.now()}
            labels = {"kubernetes.io/metadata.name": name}
            self.storage.put(
                namespaces,
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": metadata | {"labels": labels},
                    "spec": {"finalizers": ["kubernetes"]},
                    "status": {"phase": "Active"},
                },
            )

    def check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        """Refuse to make something in a namespace that is not there, or going.

        :raises StatusError: it is so (404, 403).
        """
        namespaces = find("namespaces")
        stored = self.existing(namespaces, ("", namespace))
        if "deletionTimestamp" in stored.document["metadata"]:
            failure = forbidden(
                resource,
                name,
                f"unable to create new content in namespace {namespace} because it is being terminated",
            )
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            failure.details["causes"] = [cause]
            raise failure


def view(resource: Resource, stored: Stored) -> bytes:
    """The object as this resource shows it."""
    if stored.document["apiVersion"] == resource.api_version:
        return stored.body
    return Stored(from_core(stored.document), stored.revision).body


def item_view(resource: Resource, stored: Stored) -> bytes:
    """The object within a list: a built-in kind's items do not say what they are."""
    if resource.custom:
        return stored.body
    if stored.document["apiVersion"] == resource.api_version:
        return stored.item
    return Stored(from_core(stored.document), stored.revision).item


def document_view(resource: Resource, stored: Stored) -> Document:
    """The same as data."""
    if stored.document["apiVersion"] == resource.api_version:
        return stored.document
    return from_core(stored.document)


def parse_revision(text: str, field: str = "resourceVersion") -> int:
    """A resource version as a number.

    :raises StatusError: it is none.
    """
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise StatusError(
            400,
            f'{field}: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax',
        )
    return int(text)
