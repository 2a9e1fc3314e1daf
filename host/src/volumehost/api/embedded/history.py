"""Resource versions and the bounded log of changes that watchers read."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from volumehost.errors import GoneError

#: How often the log is shortened, in changes: a little more than the limit may be kept.
_TRIM_EVERY = 128


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


def append(connection: sqlite3.Connection, change: Change, namespace: str, limits: HistoryLimits) -> None:
    """Log a change, in the write transaction that makes it."""
    connection.execute(
        "INSERT INTO changes VALUES (?, ?, ?, ?, ?)",
        (change.resource_version, change.kind, namespace, change.type, change.body),
    )
    if change.resource_version % _TRIM_EVERY == 0:
        _trim(connection, limits)


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


def _trim(connection: sqlite3.Connection, limits: HistoryLimits) -> None:
    """Forget the oldest changes beyond the limits; the newest stays, however large it is."""
    oldest_kept = None
    size = 0
    rows = connection.execute(
        "SELECT resource_version, length(body) FROM changes ORDER BY resource_version DESC LIMIT ?", (limits.changes,)
    )
    for resource_version, length in rows:
        size += length
        if size > limits.size and oldest_kept is not None:
            break
        oldest_kept = resource_version
    rows.close()
    if oldest_kept is not None:
        deleted = connection.execute("DELETE FROM changes WHERE resource_version < ?", (oldest_kept,)).rowcount
        if deleted:
            connection.execute("UPDATE versions SET forgotten = ?", (oldest_kept - 1,))
