"""Watching the store: changes of this process at once, those of other processes within a tenth of a second."""

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
#: something has just happened, since an answer may follow; less often the longer it has been quiet, and after ten
#: seconds least often, for an agent that has nothing to do.
_SHORTEST_PAUSE = 0.005
_LONG_PAUSE = 0.05
_PAUSE_PER_QUIET_SECOND = 0.05
_LONGEST_PAUSE = 0.1
_QUIET_SECONDS = 10.0
#: How often the other watchers of this process, for which one looks, ask whether they are to stop, in seconds; and when
#: it has been quiet.
_ASK_SECONDS = 0.1
_QUIET_ASK_SECONDS = 0.5
#: How often a watcher that hears nothing else is told how far it has got, in seconds.
_BOOKMARK_SECONDS = 30.0


class Commits:
    """Wakes the watchers of this process when it has committed, or when one of them saw that another process has."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._condition = threading.Condition(self._lock)
        self._count = 0
        self._waiting = 0
        #: Held by the one watcher that looks for commits of other processes.
        self.looking = threading.Lock()
        self.last = 0.0

    def announce(self) -> None:
        """Something was committed."""
        with self._lock:
            self._count += 1
            self.last = time.monotonic()
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
        """Return when something was committed anywhere, when the watch is over, or when a bookmark may be due.

        Of the watchers of a process one looks for commits of others, on behalf of all.
        """
        bookmark_due = time.monotonic() + (self._bookmark_seconds or _BOOKMARK_SECONDS)
        while not (self._stopped() or self._expired()) and time.monotonic() < bookmark_due:
            quiet = time.monotonic() - max(quiet_since, self._commits.last)
            if not self._commits.looking.acquire(blocking=False):
                pause = self._limited(_ASK_SECONDS if quiet < _QUIET_SECONDS else _QUIET_ASK_SECONDS)
                # What came while nobody looked, between one watcher and the next, is seen here.
                if self._commits.wait(seen, pause) or _data_version(connection) != version:
                    return
                continue
            try:
                if self._commits.wait(seen, self._limited(_pause(quiet))):
                    return
                if _data_version(connection) != version:
                    self._commits.announce()
                    return
            finally:
                self._commits.looking.release()

    def _limited(self, pause: float) -> float:
        return pause if self._deadline is None else max(0.0, min(pause, self._deadline - time.monotonic()))

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


def _pause(quiet: float) -> float:
    """How long to wait between two looks, when nothing has happened for so many seconds."""
    if quiet > _QUIET_SECONDS:
        return _LONGEST_PAUSE
    return min(max(quiet * _PAUSE_PER_QUIET_SECOND, _SHORTEST_PAUSE), _LONG_PAUSE)


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
