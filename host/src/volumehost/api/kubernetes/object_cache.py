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
        self._own: dict[Key, tuple[str, Entry | None]] = {}
        self.version = ""

    # --- what is known ------------------------------------------------------------------------------------------------

    def get(self, key: Key) -> bytes | None:
        """The last known state, own writes included."""
        if key in self._own:
            entry = self._own[key][1]
            return entry.body if entry is not None else None
        found = self._entries.get(key)
        return found.body if found is not None else None

    def bodies(self, namespace: str = "", *, own: bool = True) -> list[bytes]:
        """All states, sorted by namespace and name; without own writes: exactly what the watch has told."""
        entries: dict[Key, Entry] = self._entries
        if own and self._own:
            over = {key: entry for key, (_version, entry) in self._own.items() if entry is not None}
            entries = {key: entry for key, entry in entries.items() if key not in self._own} | over
        keys = sorted(key for key in entries if not namespace or key[0] == namespace)
        return [entries[key].body for key in keys]

    def wrote_lately(self, version: str) -> bool:
        """Whether an own write that the watch has not told yet has made that version."""
        return any(entry is not None and entry.version == version for _version, entry in self._own.values())

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

    def replace(self, bodies: Iterable[bytes], version: str) -> list[Difference]:
        """A list: what differs from what was known comes as changes, and what is not in it any more has gone."""
        before, now = self._entries, {}
        for body in bodies:
            heading = read_heading(body)
            now[heading.namespace, heading.name] = Entry(heading.uid, heading.version, body)
        first = not self.version
        self._entries, self.version = now, version
        self._own = {
            key: own for key, own in self._own.items() if version.isdigit() and is_later(own[0], version) and own[1]
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
        version, entry = own
        older = version.isdigit() and heading.version.isdigit() and int(heading.version) < int(version)
        if entry is None:
            # A deleted object: what is told of it until it goes was before that.
            keep = not gone and heading.version.isdigit() and not is_later(heading.version, version)
        else:
            keep = older
        if not keep:
            del self._own[key]

    def _reached(self, version: str) -> None:
        if version:
            self.version = version
        if self._own and version.isdigit():
            self._own = {key: own for key, own in self._own.items() if own[1] is None or is_later(own[0], version)}

    # --- own writes ---------------------------------------------------------------------------------------------------

    def wrote(self, body: bytes) -> None:
        """This state was made by an own write."""
        heading = read_heading(body)
        if not self.version or not is_later(heading.version, self.version):
            return  # the watch has told it already, or will not be asked before it has
        key = heading.namespace, heading.name
        known = self._entries.get(key)
        if known is not None and known.uid == heading.uid and not is_later(heading.version, known.version):
            return
        entry = Entry(heading.uid, heading.version, body) if self._keep(body) else None
        if entry is not None or known is not None:
            self._own[key] = (heading.version, entry)

    def removed(self, body: bytes) -> None:
        """The object, of which this is the last state, was deleted by an own call."""
        heading = read_heading(body)
        key = heading.namespace, heading.name
        known = self._entries.get(key)
        if known is not None and known.uid == heading.uid:
            self._own[key] = (max(known.version, heading.version, key=_number), None)
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
