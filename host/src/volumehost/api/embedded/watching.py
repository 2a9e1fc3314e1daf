"""Watching the store: changes of this process at once, those of other processes within a few hundredths of a second."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from volumehost.api.client import WatchEvent
from volumehost.api.embedded.database import Database
from volumehost.api.embedded.history import Change, latest_version, read_after
from volumehost.api.embedded.incoming import typed_from_body
from volumehost.api.kinds import Kind
from volumehost.api.objects import ObjectMeta

#: How often another process' commits are looked for, in seconds: one read of shared memory each time. Often when
#: something has just happened, since an answer may follow; less often the longer it has been quiet.
_SHORTEST_PAUSE = 0.005
_LONGEST_PAUSE = 0.05
_PAUSE_PER_QUIET_SECOND = 0.05
#: How often a watcher that hears nothing else is told how far it has got, in seconds.
_BOOKMARK_SECONDS = 30.0


class Commits:
    """Wakes the watchers of this process when it has committed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._condition = threading.Condition(self._lock)
        self._count = 0
        self._waiting = 0

    def announce(self) -> None:
        """Something was committed."""
        with self._lock:
            self._count += 1
            if self._waiting:
                self._condition.notify_all()

    @property
    def count(self) -> int:
        """How many commits there were."""
        return self._count

    def wait(self, seen: int, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for a commit after ``seen``; whether there was one."""
        with self._condition:
            self._waiting += 1
            try:
                return self._condition.wait_for(lambda: self._count != seen, timeout)
            finally:
                self._waiting -= 1


class Watch:
    """One watch of one kind, or of several at the price of one.

    ``bookmark_seconds`` 0: a bookmark as often as everything up to the present has been told.
    """

    def __init__(
        self,
        database: Database,
        commits: Commits,
        kinds: Sequence[Kind[Any]],
        namespace: str | None,
        *,
        stop: Callable[[], bool] | None,
        timeout: float | None,
        bookmark_seconds: float = _BOOKMARK_SECONDS,
    ) -> None:
        self._database = database
        self._commits = commits
        self._kinds = {kind.kind: kind for kind in kinds}
        self._namespace = namespace
        self._stop = stop or (lambda: False)
        self._bookmark_seconds = bookmark_seconds
        self._deadline = None if timeout is None else time.monotonic() + timeout

    def events(self, position: int | None) -> Iterator[WatchEvent[Any]]:
        """Events after ``position``; for None the present state first."""
        with self._database.watching() as connection:
            if position is None:
                bodies, position = self._present(connection)
                for kind, body in bodies:
                    yield self._event(Change(0, "ADDED", body, kind))
                yield self._bookmark(position)
            told = position
            quiet_since = time.monotonic()
            while not self._stopped():
                seen, version = self._commits.count, _data_version(connection)
                with _reading(connection):
                    changes, position = read_after(connection, position, tuple(self._kinds), self._namespace)
                for change in changes:
                    yield self._event(change)
                    told = change.resource_version
                if changes:
                    quiet_since = time.monotonic()
                    continue
                if self._expired():
                    return
                if position > told and time.monotonic() - quiet_since >= self._bookmark_seconds:
                    yield self._bookmark(position)
                    told, quiet_since = position, time.monotonic()
                self._wait(connection, seen, version, quiet_since)

    def _wait(self, connection: sqlite3.Connection, seen: int, version: int, quiet_since: float) -> None:
        """Return when something was committed anywhere, when the watch is over, or when a bookmark may be due."""
        bookmark_due = time.monotonic() + (self._bookmark_seconds or _BOOKMARK_SECONDS)
        while not (self._stopped() or self._expired()) and time.monotonic() < bookmark_due:
            if self._commits.wait(seen, self._pause(quiet_since)) or _data_version(connection) != version:
                return

    def _pause(self, quiet_since: float) -> float:
        now = time.monotonic()
        pause = min(max((now - quiet_since) * _PAUSE_PER_QUIET_SECOND, _SHORTEST_PAUSE), _LONGEST_PAUSE)
        return pause if self._deadline is None else max(0.0, min(pause, self._deadline - now))

    def _expired(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _stopped(self) -> bool:
        return self._stop() or self._database.closed

    def _present(self, connection: sqlite3.Connection) -> tuple[list[tuple[str, bytes]], int]:
        with _reading(connection):
            bodies = [
                (name, body)
                for name, kind in self._kinds.items()
                for body in select_bodies(connection, kind, self._namespace)
            ]
            return bodies, latest_version(connection)

    def _event(self, change: Change) -> WatchEvent[Any]:
        return WatchEvent(change.type, typed_from_body(self._kinds[change.kind], change.body))  # type: ignore[arg-type]

    def _bookmark(self, position: int) -> WatchEvent[Any]:
        first = next(iter(self._kinds.values()))
        return WatchEvent("BOOKMARK", first.struct(metadata=ObjectMeta(resource_version=str(position))))


def select_bodies(connection: sqlite3.Connection, kind: Kind[Any], namespace: str | None) -> list[bytes]:
    """All stored objects of a kind, sorted by namespace and name."""
    rows = connection.execute(
        "SELECT body FROM objects WHERE kind = ? AND (? IS NULL OR namespace = ?) ORDER BY namespace, name",
        (kind.kind, namespace, namespace),
    )
    return [row[0] for row in rows]


def _data_version(connection: sqlite3.Connection) -> int:
    """A number that changes when another connection, of any process, has committed."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


@contextmanager
def _reading(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")
