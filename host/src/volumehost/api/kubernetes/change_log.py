"""What informers have seen, in order, for watches that are answered without the server.

One log serves all informers of a client, so that a watch of several kinds has one order of events to follow. Its lock
is the informers' lock too: a snapshot and a place in the log belong together.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from volumehost.api.client import EventType
from volumehost.api.kinds import Kind
from volumehost.errors import GoneError

#: At least so many entries are kept for watches that come back or are slow.
KEPT = 1000


@dataclass(frozen=True, slots=True)
class Change:
    """One event; a BOOKMARK has no body."""

    kind: str
    type: EventType
    version: str
    body: bytes
    namespace: str = ""


class ChangeLog:
    """Changes by number. ``changed`` guards this and everything that belongs to it, and is notified of each."""

    def __init__(self, kept: int = KEPT) -> None:
        self.changed = threading.Condition(threading.RLock())
        self._kept = kept
        self._first = 0
        self._entries: list[Change] = []

    @property
    def end(self) -> int:
        """The number that the next change will have. Under the lock."""
        return self._first + len(self._entries)

    def append(self, change: Change) -> None:
        """Add one, under the lock; waiting watches are not woken before :meth:`announce`."""
        self._entries.append(change)
        if len(self._entries) > 2 * self._kept:
            del self._entries[: self._kept]
            self._first += self._kept

    def announce(self) -> None:
        """Wake whoever waits. Under the lock."""
        self.changed.notify_all()

    def since(self, number: int, kinds: Collection[str]) -> list[Change]:
        """The changes of these kinds from that number on. Under the lock.

        :raises GoneError: some of them are not kept any more.
        """
        if number < self._first:
            raise GoneError("the watch fell behind", action="watch", hint="list again and watch from there")
        return [change for change in self._entries[number - self._first :] if change.kind in kinds]

    def find(self, kind: Kind[Any], version: str) -> int | None:
        """The number after the last change of the kind that is not later than a version. Under the lock.

        None when the changes since then are not all here; versions are compared as numbers where they are some.
        """
        for index in range(len(self._entries) - 1, -1, -1):
            change = self._entries[index]
            if change.kind == kind.kind and change.version and not is_later(change.version, version):
                # An older one in this place says that the wanted one, if it ever was, is of another kind of object.
                return self._first + index + 1
        return None


def is_later(version: str, than: str) -> bool:
    """Whether a resource version is later than another; different ones that are no numbers count as later."""
    if version.isdigit() and than.isdigit():
        return int(version) > int(than)
    return version != than
