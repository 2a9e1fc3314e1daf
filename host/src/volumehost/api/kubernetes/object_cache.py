"""The objects that one informer knows, as the bytes that came, and what this program has written since.

Bytes are a fraction of the size of objects, decode in microseconds, and hold every field. Own writes lie over what the
watch has told until it has told them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from volumehost.api.client import EventType
from volumehost.api.kinds import Kind
from volumehost.api.kubernetes.change_log import Change, ChangeLog, is_later
from volumehost.api.kubernetes.codec import Heading, RawEvent, read_heading

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """One state of an object."""

    uid: str
    version: str
    body: bytes


@dataclass(frozen=True, slots=True)
class OwnWrite:
    """What this program made of an object: a state of that version, or, without an entry, nothing any more.

    Deletions are numbered.
    """

    version: str
    uid: str
    entry: Entry | None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """What a change was to those who follow it: None for what was not there, or is not there any more."""

    old: bytes | None
    new: bytes | None


class ObjectCache:
    """The objects of a kind. Every method is called under the lock of the log.

    :param keep: whether an own write belongs to what is watched.
    """

    def __init__(self, kind: Kind[Any], log: ChangeLog, keep: Callable[[bytes], bool]) -> None:
        self._kind = kind
        self._log = log
        self._keep = keep
        self._entries: dict[Key, Entry] = {}
        self._own: dict[Key, OwnWrite] = {}
        self._deletions = 0
        self.version = ""

    # --- what is known ------------------------------------------------------------------------------------------------

    def get(self, key: Key) -> bytes | None:
        """The last known state, own writes included."""
        if key in self._own:
            entry = self._own[key].entry
            return entry.body if entry is not None else None
        found = self._entries.get(key)
        return found.body if found is not None else None

    def bodies(self, namespace: str = "", *, own: bool = True) -> list[bytes]:
        """All states, sorted by namespace and name; without own writes: exactly what the watch has told."""
        entries: dict[Key, Entry] = self._entries
        if own and self._own:
            over = {key: own.entry for key, own in self._own.items() if own.entry is not None}
            entries = {key: entry for key, entry in entries.items() if key not in self._own} | over
        keys = sorted(key for key in entries if not namespace or key[0] == namespace)
        return [entries[key].body for key in keys]

    def wrote_lately(self, version: str) -> bool:
        """Whether an own write that the watch has not told yet has made that version."""
        return any(own.entry is not None and own.version == version for own in self._own.values())

    # --- what the watch tells -----------------------------------------------------------------------------------------

    def apply(self, event: RawEvent) -> Difference | None:
        """An event; None when nothing is different for those who follow."""
        heading = read_heading(event.object)
        if event.type == "BOOKMARK":
            self._reached(heading.version)
            self._log.append(Change(self._kind.kind, "BOOKMARK", heading.version, b""))
            return None
        key, body = (heading.namespace, heading.name), bytes(event.object)
        old = self._entries.get(key)
        if event.type == "DELETED":
            self._entries.pop(key, None)
            difference = Difference(old.body, None) if old is not None else None
            kind: EventType = "DELETED"
        else:
            self._entries[key] = Entry(heading.uid, heading.version, body)
            difference = Difference(old.body if old is not None else None, body)
            kind = "MODIFIED" if old is not None else "ADDED"
        self._seen(key, heading, gone=event.type == "DELETED")
        self._reached(heading.version)
        if difference is not None:
            self._log.append(Change(self._kind.kind, kind, heading.version, body, heading.namespace))
        return difference

    def begin_list(self) -> int:
        """A list is about to be asked for; what :meth:`replace` wants to know of that."""
        return self._deletions

    def replace(self, bodies: Iterable[bytes], version: str, began: int) -> list[Difference]:
        """A list: what differs from what was known comes as changes, and what is not in it any more has gone."""
        before, now = self._entries, {}
        for body in bodies:
            heading = read_heading(body)
            now[heading.namespace, heading.name] = Entry(heading.uid, heading.version, body)
        first = not self.version
        self._entries, self.version = now, version
        if not version.isdigit():
            self._own.clear()
        self._own = {
            key: own
            for key, own in self._own.items()
            # A list that began before a deletion may still have the object.
            if is_later(own.version, version) or (own.entry is None and own.number > began)
        }
        found = []
        for namespace, difference, kind in _differences(before, now):
            found.append(difference)
            if not first:
                state = (difference.old if difference.new is None else difference.new) or b""
                self._log.append(Change(self._kind.kind, kind, "", state, namespace))
        self._log.append(Change(self._kind.kind, "BOOKMARK", version, b""))
        return found

    def _seen(self, key: Key, heading: Heading, *, gone: bool) -> None:
        """What the watch tells of an object takes the place of what was written, unless it is older."""
        own = self._own.get(key)
        if own is None:
            return
        keep = heading.version.isdigit() and own.version.isdigit() and is_later(own.version, heading.version)
        if own.entry is None and own.uid == heading.uid:
            # Of a deleted object everything is old until it is told that it has gone.
            keep = not gone
        if not keep:
            del self._own[key]

    def _reached(self, version: str) -> None:
        if version:
            self.version = version
        if self._own and version.isdigit():
            self._own = {
                key: own for key, own in self._own.items() if own.entry is None or is_later(own.version, version)
            }

    # --- own writes ---------------------------------------------------------------------------------------------------

    def wrote(self, body: bytes) -> None:
        """This state was made by an own write."""
        heading = read_heading(body)
        if not self.version or not is_later(heading.version, self.version):
            return  # the watch has told it already, or will not be asked before it has
        key = heading.namespace, heading.name
        known, own = self._entries.get(key), self._own.get(key)
        if known is not None and known.uid == heading.uid and not is_later(heading.version, known.version):
            return
        if own is not None:
            # Answers of several threads may come in any order.
            deleted_since = own.entry is None and own.uid == heading.uid
            if deleted_since or not is_later(heading.version, own.version):
                return
        entry = Entry(heading.uid, heading.version, body) if self._keep(body) else None
        if entry is not None or known is not None:
            self._own[key] = OwnWrite(heading.version, heading.uid, entry)

    def removed(self, body: bytes) -> None:
        """The object, of which this is the last state, was deleted by an own call."""
        heading = read_heading(body)
        key = heading.namespace, heading.name
        known, own = self._entries.get(key), self._own.get(key)
        latest = max(
            (heading.version, *(one.version for one in (known, own) if one is not None and one.uid == heading.uid)),
            key=_number,
        )
        if own is not None and own.uid != heading.uid and is_later(own.version, latest):
            return  # there is another one of that name since
        if known is not None and known.uid != heading.uid and is_later(known.version, latest):
            self._own.pop(key, None)
        elif known is not None or is_later(latest, self.version):
            self._deletions += 1
            self._own[key] = OwnWrite(latest, heading.uid, None, self._deletions)
        else:
            self._own.pop(key, None)


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0


def _differences(before: dict[Key, Entry], now: dict[Key, Entry]) -> Iterator[tuple[str, Difference, EventType]]:
    for key, entry in before.items():
        if key not in now or now[key].uid != entry.uid:
            yield key[0], Difference(entry.body, None), "DELETED"
    for key, entry in now.items():
        old = before.get(key)
        if old is None or old.uid != entry.uid:
            yield key[0], Difference(None, entry.body), "ADDED"
        elif old.version != entry.version:
            yield key[0], Difference(old.body, entry.body), "MODIFIED"
