"""Resource versions and the bounded log of changes that watchers read."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from volumehost.errors import GoneError

#: How often the log is shortened, in changes: a little more than the limit may be kept.
_TRIM_EVERY = 128
#: How often all sizes are added up, in changes, though this process has not written so much that they matter: others
#: write too.
_MEASURE_EVERY = 1024


class HistoryLimits(msgspec.Struct, frozen=True):
    """How much history is kept for watchers that come back: at most so many changes, at most so many bytes."""

    changes: int = 10_000
    size: int = 64 * 1024 * 1024


class Change(msgspec.Struct, frozen=True):
    """One line of the log; ``kind`` is the name of the object's kind."""

    resource_version: int
    type: str
    body: bytes
    kind: str


def latest_version(connection: sqlite3.Connection) -> int:
    """The resource version of the last change of all."""
    return int(connection.execute("SELECT latest FROM versions").fetchone()[0])


def next_version(connection: sqlite3.Connection) -> int:
    """Claim the next resource version, in a write transaction."""
    row = connection.execute("UPDATE versions SET latest = latest + 1 RETURNING latest").fetchone()
    return int(row[0])


class Log:
    """The log of changes, as one process writes it; one write transaction at a time."""

    def __init__(self, limits: HistoryLimits) -> None:
        self._limits = limits
        #: So many bytes may come before the sizes matter again, and the version when they were last added up: to do
        #: that takes milliseconds when the log is full.
        self._room = 0
        self._measured = 0

    def append(self, connection: sqlite3.Connection, change: Change, namespace: str) -> None:
        """Log a change, in the write transaction that makes it."""
        version = change.resource_version
        connection.execute(
            "INSERT INTO changes VALUES (?, ?, ?, ?, ?)", (version, change.kind, namespace, change.type, change.body)
        )
        self._room -= len(change.body)
        if version % _TRIM_EVERY == 0:
            self._trim(connection, version)

    def _trim(self, connection: sqlite3.Connection, latest: int) -> None:
        """Forget the oldest changes beyond the limits; the newest stays, however large it is."""
        oldest_kept = latest - self._limits.changes + 1  # each version is one change
        if self._room <= 0 or latest - self._measured >= _MEASURE_EVERY:
            oldest_kept = max(oldest_kept, self._oldest_within_size(connection, latest))
        deleted = connection.execute("DELETE FROM changes WHERE resource_version < ?", (oldest_kept,)).rowcount
        if deleted:
            connection.execute("UPDATE versions SET forgotten = ?", (oldest_kept - 1,))

    def _oldest_within_size(self, connection: sqlite3.Connection, latest: int) -> int:
        """The oldest change that may stay as far as sizes go, 0 when all may."""
        (size,) = connection.execute("SELECT sum(length(body)) FROM changes").fetchone()
        self._room, self._measured = self._limits.size - size, latest
        if self._room >= 0:
            return 0
        oldest_kept = latest
        size = 0
        rows = connection.execute("SELECT resource_version, length(body) FROM changes ORDER BY resource_version DESC")
        for version, length in rows:
            size += length
            if size > self._limits.size and version != latest:
                break
            oldest_kept = version
        rows.close()
        return oldest_kept


def read_after(
    connection: sqlite3.Connection,
    resource_version: int,
    kinds: Sequence[str],
    namespace: str | None = None,
    *,
    limit: int = 500,
) -> tuple[list[Change], int]:
    """Changes of these kinds after a version, oldest first, and the version up to which they are complete.

    :raises GoneError: some of them are no longer known.
    """
    subject = ", ".join(kinds)
    action = f"watch {subject}"
    latest, forgotten = connection.execute("SELECT latest, forgotten FROM versions").fetchone()
    if resource_version < forgotten:
        raise GoneError(
            f"changes after resource version {resource_version} are no longer known (oldest: {forgotten})",
            action=action,
            subject=subject,
            hint="list again and watch from the list's resource version",
        )
    if resource_version > latest:
        raise GoneError(
            f"resource version {resource_version} has not happened yet (latest: {latest})",
            action=action,
            subject=subject,
            hint="it is of another store: list again and watch from the list's resource version",
        )
    rows = connection.execute(
        "SELECT resource_version, type, body, kind FROM changes WHERE resource_version > ? "
        "AND kind IN (SELECT value FROM json_each(?)) AND (? IS NULL OR namespace = ?) "
        "ORDER BY resource_version LIMIT ?",
        (resource_version, msgspec.json.encode(kinds).decode(), namespace, namespace, limit),
    ).fetchall()
    changes = [Change(*row) for row in rows]
    return changes, changes[-1].resource_version if len(changes) == limit else latest
