"""Storage: the objects, their one resource version, and a bounded memory of what changed, for watches and old lists."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from volumehost.testing.api_server.presenting import presented
from volumehost.testing.api_server.resources import Resource

Document = dict[str, Any]
#: Namespace and name; the namespace is "" for resources that have none.
Key = tuple[str, str]


class Stored:
    """One state of one object. It is never changed; its JSON is made when it is first needed."""

    __slots__ = ("_body", "_item", "document", "revision")

    def __init__(self, document: Document, revision: int) -> None:
        self.document = document
        self.revision = revision
        self._body: bytes | None = None
        self._item: bytes | None = None

    @property
    def body(self) -> bytes:
        """The object as it is answered."""
        if self._body is None:
            self._body = msgspec.json.encode(presented(self.document))
        return self._body

    @property
    def item(self) -> bytes:
        """The object as an item of a list of a built-in kind: without apiVersion and kind."""
        if self._item is None:
            self._item = msgspec.json.encode(
                {key: value for key, value in presented(self.document).items() if key not in ("apiVersion", "kind")}
            )
        return self._item


@dataclass(frozen=True, slots=True)
class Change:
    """What happened at ``revision``: ``old`` and ``new`` states, None where there was or is none."""

    revision: int
    resource: str
    key: Key
    old: Stored | None
    new: Stored | None


class TooOldError(Exception):
    """The changes after that revision are no longer known."""

    def __init__(self, oldest: int) -> None:
        super().__init__(oldest)
        self.oldest = oldest


class Storage:
    """All objects of all resources. Every method may be called from any thread; ``lock`` makes several calls one.

    :param limit: how many changes are remembered.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        # A new cluster has written a good deal before anybody comes: no version is ever 0 or 1.
        self.revision = 1000
        self._compacted = self.revision
        self._objects: dict[str, dict[Key, Stored]] = {}
        self._changes: list[Change] = []

    @property
    def oldest(self) -> int:
        """The oldest revision from which all changes are known."""
        return self._compacted

    def get(self, resource: Resource, key: Key) -> Stored | None:
        """The object as it is."""
        with self.lock:
            return self._objects.get(resource.key, {}).get(key)

    def all(self, resource: Resource) -> list[tuple[Key, Stored]]:
        """Every object, by namespace and name."""
        with self.lock:
            return sorted(self._objects.get(resource.key, {}).items(), key=lambda item: item[0])

    def put(self, resource: Resource, document: Document) -> Stored:
        """Keep the document in place of what there was, under a new resource version."""
        metadata = document["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        with self.lock:
            kept = self._objects.setdefault(resource.key, {})
            old = kept.get(key)
            self.revision += 1
            new = versioned(document, self.revision)
            kept[key] = new
            self._append(Change(self.revision, resource.key, key, old, new))
        return new

    def remove(self, resource: Resource, key: Key) -> Stored:
        """Take the object away; returns its last state under the version of its end."""
        with self.lock:
            old = self._objects[resource.key].pop(key)
            self.revision += 1
            self._append(Change(self.revision, resource.key, key, old, None))
            return versioned(old.document, self.revision)

    def _append(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > self._limit + self._limit // 4 + 1:
            self._forget(len(self._changes) - self._limit)
        self.changed.notify_all()

    def _forget(self, count: int) -> None:
        if count:
            self._compacted = self._changes[count - 1].revision
            del self._changes[:count]

    def compact(self) -> None:
        """Forget every change so far."""
        with self.lock:
            self._forget(len(self._changes))
            self._compacted = self.revision

    def after(self, revision: int, resource: Resource) -> list[Change]:
        """The changes of the resource after a revision.

        :raises TooOldError: they are not known any more.
        """
        with self.lock:
            if revision < self._compacted:
                raise TooOldError(self._compacted)
            start = bisect.bisect_right(self._changes, revision, key=lambda change: change.revision)
            return [change for change in self._changes[start:] if change.resource == resource.key]

    def at(self, revision: int, resource: Resource) -> list[tuple[Key, Stored]]:
        """Every object of the resource as it was at a revision, by namespace and name.

        :raises TooOldError: that is not known any more.
        """
        with self.lock:
            changes = self.after(revision, resource)
            objects = dict(self._objects.get(resource.key, {}))
        for change in reversed(changes):
            if change.old is None:
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.old
        return sorted(objects.items(), key=lambda item: item[0])

    def wait(self, done: Callable[[], bool], timeout: float) -> bool:
        """Wait until ``done()``, asked after each change; False when it did not come about in ``timeout`` seconds."""
        with self.changed:
            return self.changed.wait_for(done, timeout)

    def wake(self) -> None:
        """Let everybody who waits look again."""
        with self.changed:
            self.changed.notify_all()

    def everything(self) -> Iterator[tuple[str, Key, Stored]]:
        """Every object with the key of its resource."""
        with self.lock:
            found = [
                (resource, key, stored) for resource, kept in self._objects.items() for key, stored in kept.items()
            ]
        yield from found


def versioned(document: Document, revision: int) -> Stored:
    """The document under a resource version."""
    return Stored(document | {"metadata": document["metadata"] | {"resourceVersion": str(revision)}}, revision)
