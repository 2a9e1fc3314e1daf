"""The journal's lines and what they add up to; pure functions, shared by the writing manager and reading status.

A line is ``<crc32 of the rest, 8 hex digits> <JSON object>``. The first is the header; after a rewrite it has the size
and the crc32 of what was written then, so that the lines need not be checked one by one. A record carries a key (``v``
volume, ``p`` pod) and fields that are merged into what is known of that key; ``gone`` ends it. Fields that this version
does not know are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from volumehost.node.journal.records import (
    Fields,
    Key,
    Recorded,
    Records,
    decode_text,
    encode_text,
    recorded,
    recorded_all,
)

#: Version of the format that this code writes. A higher one is kept aside, never interpreted or deleted (BR-56).
VERSION = 1

#: States of a volume of a pod, and of a device, in records. The first three of each are intents or their success.
MOUNTING, MOUNTED, UNMOUNTING = "mounting", "mounted", "unmounting"
UNCERTAIN, UNMOUNTED, FAILED, LOST = "uncertain", "unmounted", "failed", "lost"

_SPACE = b" "


@dataclass(slots=True)
class JournalContents:
    """What a journal says. ``boot_id`` is that of the boot in which it was written, "" when unknown.

    ``intact`` is False when something that may have mattered could not be read: then the directories are asked too.
    ``complete``: whoever wrote it had looked at the directories too, and had recorded what it found there.
    """

    records: Records = field(default_factory=Records)
    boot_id: str = ""
    exists: bool = False
    intact: bool = True
    complete: bool = False
    newer_version: bool = False
    notes: list[str] = field(default_factory=list)
    #: How many bytes from the start hold whole lines.
    good_bytes: int = 0
    lines: int = 0
    _entries: dict[Key, dict[str, Any]] | None = field(default=None, init=False, repr=False)

    @property
    def entries(self) -> dict[Key, dict[str, Any]]:
        """Every record as it was read, decoded when they are first asked for."""
        if self._entries is None:
            self._entries = self.records.decoded()
        return self._entries

    def for_restart(self) -> Iterator[Recorded]:
        """What a restart needs of every record."""
        return self.records.recorded()


def text_of(record: Fields, name: str) -> str:
    """A text of a record, "" when it has none: what is on disk may be anything."""
    value = record.get(name, "")
    return value if isinstance(value, str) else ""


def texts_of(record: Fields, name: str) -> list[str]:
    """A list of texts of a record; likewise."""
    values = record.get(name, [])
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def key_of(record: Fields) -> Key:
    """What a record is about."""
    return str(record.get("v", "")), str(record.get("p", ""))


def line_of(text: bytes) -> bytes:
    """The line of an encoded record."""
    return b"%08x %s\n" % (crc32(text), text)


def text_in(line: bytes) -> bytes:
    """The encoded record of a line that :func:`encode` made; without the room that the encoder leaves at the end."""
    return line[9:-1]


def encode(record: Fields) -> bytes:
    """One line."""
    return line_of(encode_text(record))


def header(boot_id: str, written_at: float, *, complete: bool = False, body: bytes = b"") -> bytes:
    """The first line of a journal, of which ``body`` is what follows; one that comes later replaces it."""
    record: dict[str, Any] = {"journal": VERSION, "boot": boot_id, "at": round(written_at, 3)}
    if complete:
        record["complete"] = True
    if body:
        record |= {"bytes": len(body), "crc": crc32(body)}
    return encode(record)


def parse(data: bytes) -> JournalContents:
    """Read a whole journal, whatever state it is in.

    A torn last line is no damage: what an unfinished append announced was never begun.
    """
    contents = JournalContents(exists=True)
    if not data:
        contents.intact = False
        contents.notes.append("the journal is empty")
        return contents
    *lines, tail = data.split(b"\n")
    contents.good_bytes, contents.lines = len(data) - len(tail), len(lines)
    if tail:
        contents.notes.append(f"the last line is torn ({len(tail)} bytes)")
    if not lines or not _is_header(lines[0]):
        contents.notes.append("the journal has no header")
        contents.intact = False
    texts, found = _read_together(data, lines)
    damaged = 0
    for line in lines if not found else [lines[0], *lines[len(found) + 1 :]]:
        text = line[9:]
        record = recorded(text) if _is_whole(line, text) else None
        if record is None:
            damaged += 1
        elif record.journal < 0:
            found.append(record)
            texts.append(text)
        elif record.journal > VERSION:
            return _newer(text)
        else:
            head = decode_text(text) or {}
            contents.boot_id, contents.complete = str(head.get("boot", "")), head.get("complete") is True
    contents.records.load(found, texts)
    if damaged:
        contents.intact = False
        contents.notes.append(f"{damaged} of {len(lines)} lines are damaged")
    return contents


def _read_together(data: bytes, lines: list[bytes]) -> tuple[list[bytes], list[Recorded]]:
    """The records that a rewrite wrote, and what they say: the lines after the first, checked as one.

    Nothing where that is not to be had: the lines are then read one by one.
    """
    head = decode_text(lines[0][9:]) if lines and _is_header(lines[0]) else None
    length, begin = (head or {}).get("bytes"), len(lines[0]) + 1 if lines else 0
    if not isinstance(length, int) or crc32(memoryview(data)[begin : begin + length]) != (head or {}).get("crc"):
        return [], []
    texts = [line[9:] for line in lines[1 : data.count(b"\n", begin, begin + length) + 1]]
    found = recorded_all(texts)
    return (texts, found) if found is not None and all(record.journal < 0 for record in found) else ([], [])


def _is_whole(line: bytes, text: bytes) -> bool:
    """Whether the line says of its text what its checksum is."""
    try:
        return int(line[:8], 16) == crc32(text) and line[8:9] == _SPACE
    except ValueError:
        return False


def _is_header(line: bytes) -> bool:
    text = line[9:]
    record = recorded(text) if _is_whole(line, text) else None
    return record is not None and record.journal >= 0


def _newer(text: bytes) -> JournalContents:
    version = (decode_text(text) or {}).get("journal")
    note = f"the journal has format version {version}, this program knows {VERSION}"
    return JournalContents(exists=True, intact=False, newer_version=True, notes=[note])


def snapshot(texts: Iterable[bytes], boot_id: str, written_at: float, *, complete: bool = False) -> bytes:
    """A whole journal that says what these encoded records say."""
    body = b"".join([line_of(text) for text in texts])
    return header(boot_id, written_at, complete=complete, body=body) + body
