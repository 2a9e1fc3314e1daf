"""Events do not pile up: those older than an hour go, as on an API server, and so do all beyond a number.

The store looks for them while new ones come; an agent has it look from time to time where none come any more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from volumehost.api.decoding import timestamp
from volumehost.api.kinds import Kind
from volumehost.api.objects import Event

#: How long an event is kept, in seconds.
EVENT_SECONDS = 3600
#: How many are kept at most.
EVENT_LIMIT = 1000
_CHECK_EVERY = 50


def expired_after(connection: sqlite3.Connection, kind: Kind[Any], *, now: float) -> Iterator[dict[str, Any]]:
    """Events to be deleted after an object of the kind was made, looked for at every so many new ones."""
    if kind.struct is not Event:
        return
    (count,) = connection.execute("SELECT count(*) FROM objects WHERE kind = 'Event'").fetchone()
    if count % _CHECK_EVERY == 0:
        yield from expired_events(connection, now=now)


def expired_events(connection: sqlite3.Connection, *, now: float) -> Iterator[dict[str, Any]]:
    """Events to be deleted."""
    rows = connection.execute("SELECT body FROM objects WHERE kind = 'Event'").fetchall()
    events = sorted((msgspec.json.decode(row[0]) for row in rows), key=_last_seen)
    oldest = timestamp(datetime.fromtimestamp(int(now) - EVENT_SECONDS, UTC))
    for index, event in enumerate(events):
        if _last_seen(event) < oldest or index < len(events) - EVENT_LIMIT:
            yield event


def _last_seen(event: dict[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"])
