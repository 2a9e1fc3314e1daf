"""The journal's lines and what they add up to; pure functions, shared by the writing manager and reading status.

A line is ``<crc32 of the rest, 8 hex digits> <JSON object>``. The first is the header. A record carries a key
(``v`` volume, ``p`` pod) and fields that are merged into what is known of that key; ``gone`` ends it. Fields that
this version does not know are kept.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

#: Version of the format that this code writes. A higher one is kept aside, never interpreted or deleted (BR-56).
VERSION = 1

#: States of a volume of a pod, and of a device, in records. The first three of each are intents or their success.
MOUNTING, MOUNTED, UNMOUNTING = "mounting", "mounted", "unmounting"
UNCERTAIN, UNMOUNTED, FAILED, LOST = "uncertain", "unmounted", "failed", "lost"

Fields = Mapping[str, Any]
_to_json = msgspec.json.Encoder().encode
#: (volume, pod): ("v", "") is the volume as a whole, ("", "p") the pod as a whole.
Key = tuple[str, str]


@dataclass(slots=True)
class JournalContents:
    """What a journal says. ``boot_id`` is that of the boot in which it was written, "" when unknown.

    ``intact`` is False when something that may have mattered could not be read: then the directories are asked too.
    """

    entries: dict[Key, dict[str, Any]] = field(default_factory=dict)
    boot_id: str = ""
    exists: bool = False
    intact: bool = True
    newer_version: bool = False
    notes: list[str] = field(default_factory=list)
    #: How many bytes from the start hold whole lines.
    good_bytes: int = 0

    def apply(self, record: Fields) -> None:
        """Merge one record."""
        merge(self.entries, record)


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


def merge(entries: dict[Key, dict[str, Any]], record: Fields) -> Key:
    """Merge one record into what is known; returns its key."""
    key = key_of(record)
    if record.get("gone"):
        entries.pop(key, None)
    elif key in entries:
        entries[key].update(record)
    else:
        entries[key] = dict(record)
    return key


def encode(record: Fields) -> bytes:
    """One line."""
    try:
        text = _to_json(record)
    except (UnicodeEncodeError, TypeError):  # a name on disk that is no text; a text of a type of its own
        text = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    return b"%08x %s\n" % (zlib.crc32(text), text)


def header(boot_id: str, written_at: float) -> bytes:
    """The first line of a journal."""
    return encode({"journal": VERSION, "boot": boot_id, "at": round(written_at, 3)})


def decode_line(line: bytes) -> dict[str, Any] | None:
    """The record of a line without its newline, None when it is damaged."""
    if len(line) < 11 or line[8:9] != b" ":
        return None
    text = line[9:]
    try:
        if int(line[:8], 16) != zlib.crc32(text):
            return None
        record = json.loads(text.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


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
    contents.good_bytes = len(data) - len(tail)
    if tail:
        contents.notes.append(f"the last line is torn ({len(tail)} bytes)")
    damaged = 0
    for number, line in enumerate(lines):
        record = decode_line(line)
        if record is None:
            damaged += 1
        elif "journal" in record:
            if not isinstance(record["journal"], int) or record["journal"] > VERSION:
                return JournalContents(
                    exists=True,
                    intact=False,
                    newer_version=True,
                    notes=[f"the journal has format version {record['journal']}, this program knows {VERSION}"],
                )
            contents.boot_id = str(record.get("boot", ""))
        else:
            contents.apply(record)
        if number == 0 and (record is None or "journal" not in record):
            contents.notes.append("the journal has no header")
            contents.intact = False
    if damaged:
        contents.intact = False
        contents.notes.append(f"{damaged} of {len(lines)} lines are damaged")
    if not lines:
        contents.intact = False
    return contents


def snapshot(entries: Mapping[Key, Fields], boot_id: str, written_at: float) -> bytes:
    """A whole journal that says the same as ``entries``."""
    return header(boot_id, written_at) + b"".join(encode(record) for record in entries.values())
