"""What a journal adds up to, kept as encoded texts: the journal holds one for each volume and pod, and decodes few.

A record is the JSON text that its lines make together. Of a field that comes twice the last one counts, which every
reader of JSON agrees on: so lines are merged by joining texts, and fields that this version does not know are kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

#: When so many lines have come to a record it is written anew, without what later ones replace.
MOST_TEXTS = 8

Fields = Mapping[str, Any]
#: (volume, pod): ("v", "") is the volume as a whole, ("", "p") the pod as a whole.
Key = tuple[str, str]

_to_json = msgspec.json.Encoder().encode
_from_json = msgspec.json.Decoder(dict[str, Any]).decode


class Recorded(msgspec.Struct, gc=False):
    """The fields of a record by which a restart enters a volume, its device or its end; "" for what it does not tell.

    ``journal`` is the version in a header, -1 in every other line. ``dir``: it was entered for a directory, of which
    nothing else told.
    """

    v: str = ""
    p: str = ""
    gone: bool = False
    journal: int = -1
    state: str = ""
    plugin: str = ""
    ns: str = ""
    pod: str = ""
    inner: str = ""
    mode: str = ""
    path: str = ""
    mount: str = ""
    is_mount: bool | None = None
    dev: str = ""
    att: str = ""
    dpath: str = ""
    dmpath: str = ""
    sel: str = ""
    ended: bool = False
    dir: bool = False
    pv: msgspec.Raw = msgspec.Raw()
    vol: msgspec.Raw = msgspec.Raw()

    @property
    def has_spec(self) -> bool:
        """Whether it tells the volume's spec, which is read when it is needed."""
        return bool(self.pv) or bool(self.vol)


_to_recorded = msgspec.json.Decoder(Recorded).decode


def encode_text(record: Fields) -> bytes:
    """The JSON text of a record."""
    try:
        return _to_json(record)
    except (UnicodeEncodeError, TypeError):  # a name on disk that is no text; a text of a type of its own
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def decode_text(text: bytes) -> dict[str, Any] | None:
    """The record of a JSON text, None when it is none."""
    try:
        return _from_json(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    try:
        record = json.loads(text.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def recorded(text: bytes) -> Recorded | None:
    """The fields of a JSON text that a restart needs, None when it is no record; a field of another type is not there.

    What is on disk may be anything.
    """
    try:
        return _to_recorded(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        record = decode_text(text)
    if record is None:
        return None
    found = Recorded(v=str(record.get("v", "")), p=str(record.get("p", "")), gone=bool(record.get("gone")))
    for name in _TEXTS:
        value = record.get(name)
        if isinstance(value, str):
            setattr(found, name, value)
        elif value and name in _STATES:  # something was the case, and nobody here knows what
            setattr(found, name, "uncertain")
    found.ended, found.dir = bool(record.get("ended")), bool(record.get("dir"))
    if isinstance(record.get("is_mount"), bool):
        found.is_mount = record["is_mount"]
    if "journal" in record:  # a version that is no number is none that this program knows
        found.journal = record["journal"] if isinstance(record["journal"], int) else sys.maxsize
    found.pv, found.vol = (msgspec.Raw(b"{}") if name in record else msgspec.Raw() for name in ("pv", "vol"))
    return found


def recorded_all(texts: list[bytes]) -> list[Recorded] | None:
    """The same for many texts; None when one of them is not what this program writes."""
    try:
        return list(map(_to_recorded, texts))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


_STATES = ("state", "dev", "att")
_TEXTS = (*_STATES, "plugin", "ns", "pod", "inner", "mode", "path", "mount", "dpath", "dmpath")


#: The texts of a record in their order; most have one.
_Texts = bytes | tuple[bytes, ...]


class Records:
    """Encoded records by volume and pod. Not safe for threads by itself.

    ``size``: bytes of all texts; ``replaced``: about how many of them say what later ones replace.
    """

    def __init__(self) -> None:
        self._of_pods: dict[str, dict[str, _Texts]] = {}
        self._count = 0
        self.size = 0
        self.replaced = 0
        #: Those that consist of several texts.
        self._untidy: dict[Key, None] = {}
        #: What a restart needs of each record, while that is what was read from the file.
        self._read: list[Recorded] = []
        #: Those of which it says more than one thing, so that they have to be read together.
        self._merged: set[Key] = set()

    def __len__(self) -> int:
        return self._count

    def load(self, found: list[Recorded], texts: list[bytes]) -> None:
        """Merge the texts that were read from a file, before anything else; ``found`` is what they say."""
        of_pods, merged = self._of_pods, set[Key]()
        for record, text in zip(found, texts, strict=True):
            records = of_pods.get(record.p)
            if record.gone or (records is not None and record.v in records):
                key = record.v, record.p
                self.merge(key, text, gone=record.gone)
                merged.add(key)
                continue
            if records is None:
                records = of_pods[record.p] = {}
            records[record.v] = text
            self._count += 1
            self.size += len(text)
        self._read, self._merged = found, merged

    def recorded(self) -> Iterator[Recorded]:
        """What a restart needs of each record. What was read from a file is not read again, the first time."""
        read, self._read = self._read, []
        if not read:
            yield from (recorded(text) or Recorded(*key) for key, text in self.texts())
            return
        merged = self._merged
        yield from read if not merged else [each for each in read if (each.v, each.p) not in merged]
        for key in merged:
            text = self.text(key)
            if text is not None:
                yield recorded(text) or Recorded(*key)

    def merge(self, key: Key, text: bytes, *, gone: bool = False) -> bool:
        """Merge one record into what is known of its key, or end that; whether something was known of it."""
        self._read = []
        volume, pod = key
        records = self._of_pods.get(pod)
        former = records.get(volume) if records is not None else None
        if gone:
            if records is not None and former is not None:
                self._remove(records, key, former)
            return former is not None
        if records is None:
            records = self._of_pods[pod] = {}
        self.size += len(text)
        if former is None:
            self._count += 1
            records[volume] = text
            return False
        self.replaced += len(text)
        self._untidy[key] = None
        if isinstance(former, bytes):
            records[volume] = (former, text)
        elif len(former) < MOST_TEXTS:
            records[volume] = (*former, text)
        else:
            self._replace(records, volume, tidy((*former, text)))
        return True

    def text(self, key: Key) -> bytes | None:
        """The record as one text."""
        records = self._of_pods.get(key[1])
        found = records.get(key[0]) if records is not None else None
        return found if found is None or isinstance(found, bytes) else _joined(found)

    def keys_of_pod(self, pod: str) -> list[Key]:
        """All keys that concern the pod."""
        return sorted((volume, pod) for volume in self._of_pods.get(pod, ()))

    def texts(self) -> Iterator[tuple[Key, bytes]]:
        """Every record as one text."""
        for pod, records in self._of_pods.items():
            for volume, found in records.items():
                yield (volume, pod), found if isinstance(found, bytes) else _joined(found)

    def tidy_up(self) -> None:
        """Make every record one text without what is replaced: it takes half the memory."""
        untidy, self._untidy = self._untidy, {}
        for volume, pod in untidy:
            records = self._of_pods.get(pod, {})
            found = records.get(volume)
            if isinstance(found, tuple):
                self._replace(records, volume, tidy(found))

    def decoded(self) -> dict[Key, dict[str, Any]]:
        """Every record."""
        return {key: decode_text(text) or {} for key, text in self.texts()}

    def _remove(self, records: dict[str, _Texts], key: Key, former: bytes | tuple[bytes, ...]) -> None:
        del records[key[0]]
        if not records:
            del self._of_pods[key[1]]
        self._count -= 1
        self._forget_size(former)

    def _replace(self, records: dict[str, _Texts], volume: str, text: bytes) -> None:
        self._forget_size(records[volume])
        records[volume] = text
        self.size += len(text)

    def _forget_size(self, former: _Texts) -> None:
        if isinstance(former, bytes):
            self.size -= len(former)
        else:
            self.size -= sum(map(len, former))
            self.replaced -= sum(map(len, former[1:]))


def tidy(texts: tuple[bytes, ...]) -> bytes:
    """One text that says what these say one after the other, without what is replaced."""
    merged: dict[str, Any] = {}
    for text in texts:
        merged.update(decode_text(text) or {})
    return bytes(memoryview(encode_text(merged)))  # a copy, since the encoder leaves room at the end


def _joined(texts: tuple[bytes, ...]) -> bytes:
    if all(text[:2] == b'{"' and text[-1:] == b"}" for text in texts):
        return b"{%b}" % b",".join([text[1:-1] for text in texts])
    return tidy(texts)
