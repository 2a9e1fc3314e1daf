"""EmbeddedStore: the API without a server, one SQLite file under the root directory.

The default behind every command and manager. Several processes may work with one file at once, and a process may be
killed at any moment. Each write is durable when it returns, with two exceptions that may be undone when the machine
dies: an Event, and a patch that only takes finalizers away, for whoever let go of an object does so again.
"""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import msgspec

from volumehost.api.client import EventType, ObjectList, WatchEvent
from volumehost.api.embedded.database import Database
from volumehost.api.embedded.expiry import expired_after, expired_events
from volumehost.api.embedded.history import Change, HistoryLimits, Log, latest_version, next_version, read_after
from volumehost.api.embedded.incoming import (
    Incoming,
    check_stored,
    incoming,
    storage_namespace,
    typed_from_body,
    typed_from_document,
)
from volumehost.api.embedded.protection import Protection
from volumehost.api.embedded.transitions import (
    Document,
    check_condition,
    concerns_finalizers,
    encode,
    is_finished,
    marked_document,
    new_document,
    replaced_document,
    status_document,
    without_finalizers,
)
from volumehost.api.embedded.watching import Commits, Watch, select_bodies
from volumehost.api.kinds import Kind, kind_of
from volumehost.api.merging import merge_patch
from volumehost.api.mirrors import mirrored_uid
from volumehost.api.objects import Event, KubeObject
from volumehost.api.selectors import parse_selector
from volumehost.errors import AlreadyExistsError, InvalidObjectError, ObjectNotFoundError

T = TypeVar("T", bound=KubeObject)

#: Letters of generated names: no vowels, so that no words arise; none that look alike.
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_GENERATED_BASE_LENGTH = 58
_NAME_ATTEMPTS = 8

_SELECT_BODY = "SELECT body FROM objects WHERE kind = ? AND namespace = ? AND name = ?"


class _MoreThanAReleaseError(Exception):
    """A patch does more than take finalizers away."""


class EmbeddedStore:
    """An ApiClient on one file, which is made when it is not there.

    :param path: the file; its directory is made too.
    :param clock: seconds since the epoch, for creation and deletion times.
    :param history: how much is remembered for watchers that come back.
    :param busy_timeout: how long to wait for other writers, in seconds.
    :raises StoreError: the file cannot be used; says why and what to do. It is then left as it is.
    """

    #: Whoever reads waits for nobody, so that no thread of its own is needed for that.
    answers_at_once = True

    def __init__(
        self,
        path: str,
        *,
        clock: Callable[[], float] = time.time,
        history: HistoryLimits | None = None,
        busy_timeout: float = 10.0,
    ) -> None:
        self.path = os.path.abspath(path)
        self._clock = clock
        self._log = Log(history or HistoryLimits())
        self._commits = Commits()
        self._database = self._open_database(busy_timeout)

    def _open_database(self, busy_timeout: float) -> Database:
        return Database(self.path, busy_timeout=busy_timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<EmbeddedStore {self.path}>"

    @property
    def errors(self) -> int:
        """How many reads and writes of this process have failed because of the file."""
        return self._database.errors

    def expire_events(self) -> int:
        """Delete events that are older than an hour, and all beyond a number; returns how many.

        :raises StoreError: the file cannot be written.
        """
        kind = self._kind(Event)
        with self._database.write(durable=False) as connection:
            old = list(expired_events(connection, now=self._clock()))
            for document in old:
                self._write(connection, kind, document, "DELETED")
        if old:
            self._commits.announce()
        return len(old)

    def close(self) -> None:
        """Let go of the file; watches end."""
        self._database.close()
        self._commits.announce()

    @property
    def identity(self) -> str:
        """Tells this store from every other, also from one that comes in its place when it was lost.

        "" for a store that has none, since an early version made it.
        """
        with self._database.read() as connection:
            columns = {row[1] for row in connection.execute("PRAGMA table_info(versions)")}
            if "identity" not in columns:
                return ""
            return str(connection.execute("SELECT identity FROM versions").fetchone()[0])

    # --- reading -----------------------------------------------------------------------------------------------

    def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """See ApiClient."""
        known = self._kind(kind)
        namespace = storage_namespace(known, namespace)
        row = self._database.row(_SELECT_BODY, (known.kind, namespace, name))
        if row is None:
            raise _not_found(known, name, namespace)
        result: T = typed_from_body(known, row[0])
        return result

    def list(
        self, kind: type[T], namespace: str | None = None, labels: Mapping[str, str] | str | None = None
    ) -> ObjectList[T]:
        """See ApiClient."""
        known = self._kind(kind)
        selector = parse_selector(labels)
        with self._database.read() as connection:
            bodies = select_bodies(connection, known, _scope(known, namespace))
            version = latest_version(connection)
        objects = (typed_from_body(known, body) for body in bodies)
        return ObjectList([obj for obj in objects if selector.matches(obj.metadata.labels)], str(version))

    def watch(
        self,
        kind: type[T],
        namespace: str | None = None,
        resource_version: str = "",
        *,
        stop: Callable[[], bool] | None = None,
        timeout: float | None = None,
    ) -> Iterator[WatchEvent[T]]:
        """See ApiClient. A resource version that is too old is told here, not at the first event."""
        known = self._kind(kind)
        position = _parse_version(resource_version)
        namespace = _scope(known, namespace)
        with self._database.read() as connection:
            if position is not None:
                read_after(connection, position, (known.kind,), namespace, limit=1)
        watch = Watch(self._database, self._commits, (known,), namespace, stop=stop, timeout=timeout)
        return watch.events(position)

    def watch_kinds(
        self,
        kinds: Sequence[type[KubeObject]],
        *,
        stop: Callable[[], bool] | None = None,
        timeout: float | None = None,
    ) -> Iterator[WatchEvent[Any]]:
        """See MultiKindWatcher."""
        known = [self._kind(kind) for kind in kinds]
        watch = Watch(self._database, self._commits, known, None, stop=stop, timeout=timeout, bookmark_seconds=0)
        return watch.events(None)

    # --- writing -----------------------------------------------------------------------------------------------

    @overload
    def create(self, obj: T) -> T: ...
    @overload
    def create(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def create(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient."""
        item = incoming(obj)
        metadata = item.typed.metadata
        if not metadata.name and metadata.generate_name:
            return self._create_with_generated_name(item)
        uid = mirrored_uid(item.typed) or str(uuid.uuid4())
        return self._insert(item.kind, new_document(item, uid=uid, now=self._now()))

    def _create_with_generated_name(self, item: Incoming) -> Any:
        for _ in range(_NAME_ATTEMPTS - 1):
            try:
                return self._insert(item.kind, self._named_document(item))
            except AlreadyExistsError:
                continue
        return self._insert(item.kind, self._named_document(item))

    def _named_document(self, item: Incoming) -> Document:
        metadata = item.typed.metadata
        suffix = "".join(_SUFFIX_LETTERS[byte % len(_SUFFIX_LETTERS)] for byte in os.urandom(_SUFFIX_LENGTH))
        metadata.name = metadata.generate_name[:_GENERATED_BASE_LENGTH] + suffix
        return new_document(item, uid=str(uuid.uuid4()), now=self._now())

    def _insert(self, kind: Kind[Any], document: Document) -> Any:
        metadata = document["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        with self._database.write(durable=kind.struct is not Event) as connection:
            found = connection.execute(
                "SELECT 1 FROM objects WHERE kind = ? AND namespace = ? AND name = ?", (kind.kind, namespace, name)
            ).fetchone()
            if found:
                subject = kind.describe(name, namespace)
                raise AlreadyExistsError(f"{subject} exists already", action=f"create {subject}", subject=subject)
            body = self._write(connection, kind, document, "ADDED")
            for old in expired_after(connection, kind, now=self._clock()):
                self._write(connection, kind, old, "DELETED")
        self._commits.announce()
        return typed_from_body(kind, body)

    @overload
    def replace(self, obj: T) -> T: ...
    @overload
    def replace(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def replace(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient."""
        item = incoming(obj)
        return self._change(
            item, lambda stored: replaced_document(item, stored, typed_from_document(item.kind, stored))
        )

    @overload
    def replace_status(self, obj: T) -> T: ...
    @overload
    def replace_status(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def replace_status(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient."""
        item = incoming(obj)
        return self._change(item, lambda stored: status_document(item, stored))

    def patch(self, kind: type[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See ApiClient."""
        known = self._kind(kind)
        namespace = storage_namespace(known, namespace)

        def released(stored: Document) -> Document:
            document = without_finalizers(known, stored, patch)
            if document is None:
                raise _MoreThanAReleaseError
            return document

        def patched(stored: Document) -> Document:
            item = incoming(merge_patch(stored, patch))
            found = item.typed.metadata
            if (found.name, found.namespace) != (name, namespace):
                raise InvalidObjectError(
                    subject=known.describe(name, namespace),
                    problems=[("metadata.name", "Forbidden: a patch cannot change name or namespace")],
                )
            return replaced_document(item, stored, typed_from_document(known, stored))

        result: T
        if concerns_finalizers(patch):
            try:
                result = self._update(known, name, namespace, released, durable=False)
            except _MoreThanAReleaseError:
                pass
            else:
                return result
        result = self._update(known, name, namespace, patched)
        return result

    def _change(self, item: Incoming, transition: Callable[[Document], Document]) -> Any:
        metadata = item.typed.metadata
        if not metadata.name:
            raise InvalidObjectError(subject=item.kind.kind, problems=[("metadata.name", "Required value")])
        return self._update(item.kind, metadata.name, metadata.namespace, transition)

    def _update(
        self,
        kind: Kind[Any],
        name: str,
        namespace: str,
        transition: Callable[[Document], Document],
        *,
        durable: bool = True,
    ) -> Any:
        with self._database.write(durable=durable) as connection:
            body = _select(connection, kind, name, namespace)
            stored: Document = msgspec.json.decode(body)
            document = transition(stored)
            protection = Protection(connection)
            document = protection.without_idle_finalizer(kind, document)
            if document != stored:
                gone = is_finished(document)
                body = self._write(connection, kind, document, "DELETED" if gone else "MODIFIED")
                for claim_kind, claim in protection.released_by(kind, document, gone=gone):
                    self._write(connection, claim_kind, claim, "DELETED" if is_finished(claim) else "MODIFIED")
        self._commits.announce()
        return typed_from_body(kind, body)

    def delete(
        self,
        kind: type[T],
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> T:
        """See ApiClient."""
        known = self._kind(kind)

        def marked(stored: Document) -> Document:
            check_condition(known, stored, uid=uid, resource_version=resource_version)
            return marked_document(stored, now=self._now())

        result: T = self._update(known, name, storage_namespace(known, namespace), marked)
        return result

    # --- helpers -----------------------------------------------------------------------------------------------

    def _write(self, connection: sqlite3.Connection, kind: Kind[Any], document: Document, change: EventType) -> bytes:
        """Keep the document with a new resource version and log the change; returns the body."""
        version = next_version(connection)
        metadata = document["metadata"] | {"resourceVersion": str(version)}
        body = encode(document | {"metadata": metadata})
        key = (kind.kind, metadata.get("namespace", ""), metadata["name"])
        if change == "ADDED":
            connection.execute("INSERT INTO objects VALUES (?, ?, ?, ?)", (*key, body))
        elif change == "MODIFIED":
            connection.execute(
                "UPDATE objects SET body = ? WHERE kind = ? AND namespace = ? AND name = ?", (body, *key)
            )
        else:
            connection.execute("DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?", key)
        self._log.append(connection, Change(version, change, body, kind.kind), key[1])
        return body

    def _now(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._clock()))

    @staticmethod
    def _kind(struct: type[T]) -> Kind[T]:
        kind: Kind[Any] = kind_of(struct)
        check_stored(kind)
        return kind


def _select(connection: sqlite3.Connection, kind: Kind[Any], name: str, namespace: str) -> bytes:
    row = connection.execute(_SELECT_BODY, (kind.kind, namespace, name)).fetchone()
    if row is None:
        raise _not_found(kind, name, namespace)
    body: bytes = row[0]
    return body


def _not_found(kind: Kind[Any], name: str, namespace: str) -> ObjectNotFoundError:
    subject = kind.describe(name, namespace)
    return ObjectNotFoundError(f"there is no {subject}", subject=subject)


def _scope(kind: Kind[Any], namespace: str | None) -> str | None:
    """The one namespace that is meant, None for all."""
    return (namespace or None) if kind.namespaced else None


def _parse_version(resource_version: str) -> int | None:
    if not resource_version:
        return None
    if not (resource_version.isascii() and resource_version.isdigit() and len(resource_version) < 19):
        raise InvalidObjectError(
            subject="watch",
            problems=[("resourceVersion", f"Invalid value: {resource_version!r}: not one of this store")],
        )
    return int(resource_version)
