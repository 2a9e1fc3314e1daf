"""Watch: the changes after a version as a stream of events, with bookmarks, until its time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from volumehost.testing.api_server.cluster import Cluster, parse_revision, view
from volumehost.testing.api_server.failures import StatusError, expired
from volumehost.testing.api_server.messages import Answer
from volumehost.testing.api_server.presenting import empty_object
from volumehost.testing.api_server.reading import await_revision, options_invalid
from volumehost.testing.api_server.resources import Resource
from volumehost.testing.api_server.routing import Route, is_true
from volumehost.testing.api_server.selecting import Matcher, matcher
from volumehost.testing.api_server.storage import Change, Stored, TooOldError, versioned

_LONGEST = 1800.0
#: How often a watch looks whether whoever asked is still there, in seconds.
_LOOK = 0.5
_INITIAL_END = "k8s.io/initial-events-end"


@dataclass
class Watch:
    """One open watch, as tests may steer it."""

    resource: Resource
    bookmarks: bool
    #: What to do next, set from outside: ``close``, ``bookmark`` or a StatusError to send.
    orders: list[Any] = field(default_factory=list)


class Watches:
    """All open watches of a server."""

    def __init__(self, cluster: Cluster, bookmark_seconds: float) -> None:
        self._cluster = cluster
        self._bookmark_seconds = bookmark_seconds
        self._open: list[Watch] = []

    def count(self, resource: str = "*") -> int:
        """How many are open."""
        with self._cluster.storage.lock:
            return sum(resource in ("*", watch.resource.plural) for watch in self._open)

    def order(self, resource: str, what: Any) -> None:
        """Tell the watches of a resource what to do."""
        with self._cluster.storage.lock:
            for watch in self._open:
                if resource in ("*", watch.resource.plural):
                    watch.orders.append(what)
        self._cluster.storage.wake()

    def open(self, route: Route, query: dict[str, str], is_gone: Callable[[], bool]) -> Answer:
        """Begin a watch.

        :param is_gone: whether whoever asked has hung up.
        :raises StatusError: what is asked for cannot be given.
        """
        resource = route.resource
        if resource is None:
            raise AssertionError("only routes to resources come here")
        initial = query.get("sendInitialEvents", "")
        _check_options(query, initial)
        matches = matcher(resource, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        watch = Watch(resource, is_true(query.get("allowWatchBookmarks", "")))
        seconds = float(parse_revision(query.get("timeoutSeconds") or "0", "timeoutSeconds")) or _LONGEST
        version = query.get("resourceVersion", "")
        start = parse_revision(version) if version else 0
        if is_true(initial):
            await_revision(self._cluster, start)
        run = _Run(
            self._cluster, watch, _in_namespace(matches, route.namespace), is_gone, (seconds, self._bookmark_seconds)
        )
        present = is_true(initial) or (not initial and start == 0)
        with self._cluster.storage.lock:
            self._open.append(watch)
        events = run.events(start, present=present, marked=is_true(initial))
        return Answer(200, stream=events, finish=lambda: self._forget(watch))

    def _forget(self, watch: Watch) -> None:
        with self._cluster.storage.lock:
            self._open.remove(watch)
        self._cluster.storage.wake()


def _check_options(query: dict[str, str], initial: str) -> None:
    match = query.get("resourceVersionMatch", "")
    problem = ""
    if initial and match != "NotOlderThan":
        problem = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    elif match and not initial:
        problem = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    if problem:
        raise options_invalid(f"resourceVersionMatch: Forbidden: {problem}")


def _in_namespace(matches: Matcher, namespace: str) -> Matcher:
    if not namespace:
        return matches
    return lambda document: document["metadata"].get("namespace", "") == namespace and matches(document)


class _Run:
    """The events of one watch.

    :param seconds: until its end, and between bookmarks.
    """

    def __init__(
        self,
        cluster: Cluster,
        watch: Watch,
        matches: Matcher,
        is_gone: Callable[[], bool],
        seconds: tuple[float, float],
    ) -> None:
        self._cluster = cluster
        self._storage = cluster.storage
        self._watch = watch
        self._resource = watch.resource
        self._matches = matches
        self._is_gone = is_gone
        self._end = time.monotonic() + seconds[0]
        self._between = seconds[1]
        self._position = 0

    def events(self, start: int, *, present: bool, marked: bool) -> Iterator[bytes]:
        """The lines of the stream.

        :param present: whether what there is comes first, as ADDED; ``marked`` that a bookmark ends that part.
        """
        if present:
            self._position, found = self._cluster.cached(self._resource)
            for _key, stored in self._cluster.shuffled(found):
                if self._matches(stored.document):
                    yield self._line("ADDED", stored)
            if marked and self._watch.bookmarks:
                yield self._bookmark({_INITIAL_END: "true"})
        else:
            self._position = start or self._cluster.reached
        yield from self._changes()

    def _changes(self) -> Iterator[bytes]:
        next_bookmark = time.monotonic() + self._between
        while not (self._cluster.stopping.is_set() or self._is_gone()):
            try:
                with self._storage.lock:
                    reached = self._cluster.reached
                    changes = [
                        change
                        for change in self._storage.after(self._position, self._resource)
                        if change.revision <= reached
                    ]
                    orders, self._watch.orders = self._watch.orders, []
            except TooOldError as error:
                yield error_line(expired(f"too old resource version: {self._position} ({error.oldest})"))
                return
            for change in changes:
                line = self._change_line(change)
                if line is not None:
                    yield line
            self._position = max(self._position, reached)
            bookmark = self._watch.bookmarks and time.monotonic() >= next_bookmark
            for order in orders:
                if order == "close":
                    return
                if isinstance(order, StatusError):
                    yield error_line(order)
                    return
                bookmark = bookmark or (order == "bookmark" and self._watch.bookmarks)
            if bookmark:
                next_bookmark = time.monotonic() + self._between
                yield self._bookmark({})
            if time.monotonic() >= self._end:
                if self._watch.bookmarks:
                    yield self._bookmark({})
                return
            self._wait(next_bookmark)

    def _wait(self, next_bookmark: float) -> None:
        storage, position = self._storage, self._position
        moments = [self._end, time.monotonic() + _LOOK]
        if self._watch.bookmarks:
            moments.append(next_bookmark)
        storage.wait(
            lambda: (
                self._cluster.reached > position
                or bool(self._watch.orders)
                or self._cluster.stopping.is_set()
                or self._is_gone()
            ),
            max(0.0, min(moments) - time.monotonic()),
        )

    def _change_line(self, change: Change) -> bytes | None:
        before = change.old is not None and self._matches(change.old.document)
        after = change.new is not None and self._matches(change.new.document)
        if after and change.new is not None:
            return self._line("MODIFIED" if before else "ADDED", change.new)
        if before and change.old is not None:
            return self._line("DELETED", versioned(change.old.document, change.revision))
        return None

    def _line(self, kind: str, stored: Stored) -> bytes:
        body = view(self._resource, stored)
        return b'{"type":"%s","object":%s}\n' % (kind.encode(), body)

    def _bookmark(self, annotations: dict[str, str]) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(self._position)}
        if annotations:
            metadata["annotations"] = annotations
        document = empty_object(self._resource.api_version, self._resource.kind, metadata)
        return msgspec.json.encode({"type": "BOOKMARK", "object": document}) + b"\n"


def error_line(failure: StatusError) -> bytes:
    """An ERROR event."""
    return msgspec.json.encode({"type": "ERROR", "object": failure.status()}) + b"\n"
