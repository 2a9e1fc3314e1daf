"""One small JSON file for each record, all of them in memory: look-ups by id and by name, and pages, cost no disk.

A record that is in its directory exists, one that is not does not: there is no other state. Whoever has files that
belong to a record makes them before it and removes them after it, so that what a crash leaves is garbage that nobody
knows, never a record without its files.
"""

from __future__ import annotations

import bisect
import logging
import os
import threading
from collections.abc import Callable, Iterator
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from volumehost.sdk.file_replacement import replace_file
from volumehost_loop_driver.errors import AbortedError

logger = logging.getLogger(__name__)

_SUFFIX: Final = ".json"
_UNFINISHED: Final = _SUFFIX + ".new"


class Record(Protocol):
    """What a store needs of its records: a handle, the stem of its files, the name that it was created with."""

    @property
    def id(self) -> str: ...  # noqa: D102 - see the class
    @property
    def key(self) -> str: ...  # noqa: D102 - see the class
    @property
    def name(self) -> str: ...  # noqa: D102 - see the class
    @property
    def size(self) -> int: ...  # noqa: D102 - see the class


R = TypeVar("R", bound=Record)


class RecordStore(Generic[R]):
    """The records of one directory, read once when it is opened. Safe for threads.

    :raises OSError: the directory cannot be made or read.
    """

    def __init__(self, directory: str, kind: type[R]) -> None:
        self.directory = directory
        #: Stems of records that cannot be read. Their files are left alone, for somebody to look at.
        self.unreadable: set[str] = set()
        self._encode: Callable[[R], bytes] = msgspec.json.Encoder().encode
        self._by_id: dict[str, R] = {}
        self._by_name: dict[str, R] = {}
        self._ids: list[str] = []
        self._total_size = 0
        self._lock = threading.Lock()
        os.makedirs(directory, 0o700, exist_ok=True)
        decode = msgspec.json.Decoder(kind).decode
        for name in os.listdir(directory):
            if name.startswith("."):
                # A record whose writing was cut short: what was to be written never counted.
                if name.endswith(_UNFINISHED):
                    os.unlink(os.path.join(directory, name))
            elif name.endswith(_SUFFIX):
                self._load(name.removesuffix(_SUFFIX), decode)

    def _load(self, key: str, decode: Callable[[bytes], R]) -> None:
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                record = decode(file.read())
            if record.key != key:
                raise msgspec.ValidationError(f"it is the record of {record.key}")
        except (OSError, msgspec.MsgspecError):
            logger.exception("the record %s cannot be read, it and its image are left alone", path)
            self.unreadable.add(key)
            return
        self._remember(record)

    def _path(self, key: str) -> str:
        return os.path.join(self.directory, key + _SUFFIX)

    def _remember(self, record: R) -> None:
        before = self._by_id.get(record.id)
        if before is None:
            bisect.insort(self._ids, record.id)
        else:
            self._total_size -= before.size
        self._by_id[record.id] = record
        self._by_name[record.name] = record
        self._total_size += record.size

    def get(self, id: str) -> R | None:
        """The record with this handle."""
        return self._by_id.get(id)

    def by_name(self, name: str) -> R | None:
        """The record created with this name."""
        return self._by_name.get(name)

    def put(self, record: R) -> None:
        """Keep the record, new or changed; durable when this returns.

        :raises OSError: it cannot be written; what was there before still is.
        """
        replace_file(self._path(record.key), self._encode(record))
        with self._lock:
            self._remember(record)

    def remove(self, record: R) -> None:
        """Forget the record; durable when this returns. Success when it is gone already.

        :raises OSError: it cannot be removed.
        """
        try:
            os.unlink(self._path(record.key))
        except FileNotFoundError:
            pass
        else:
            _sync(self.directory)
        with self._lock:
            known = self._by_id.pop(record.id, None)
            if known is None:
                return
            self._by_name.pop(known.name, None)
            del self._ids[bisect.bisect_left(self._ids, known.id)]
            self._total_size -= known.size

    @property
    def total_size(self) -> int:
        """Bytes that all records promise together."""
        return self._total_size

    def keys(self) -> set[str]:
        """Stems of all records, those that cannot be read included."""
        with self._lock:
            return {record.key for record in self._by_id.values()} | self.unreadable

    def page(self, token: str, limit: int, wanted: Callable[[R], bool] = lambda _: True) -> tuple[list[R], str]:
        """Records in the order of their handles, from ``token`` on, and the token of the next page ("" at the end).

        Records that come or go between two pages are seen or not; all others are seen exactly once.

        :param limit: at most so many; 0 for all.
        :raises AbortedError: the token was not given out by this method.
        """
        if token and not token.startswith("from:"):
            raise AbortedError(
                "the paging token is not one of this driver's", action="list", hint="begin again without a token"
            )
        with self._lock:
            begin = bisect.bisect_left(self._ids, token.removeprefix("from:"))
            ids = self._ids[begin:]
        found: list[R] = []
        for record in self._existing(ids):
            if not wanted(record):
                continue
            if limit and len(found) == limit:
                return found, f"from:{record.id}"
            found.append(record)
        return found, ""

    def _existing(self, ids: list[str]) -> Iterator[R]:
        for id in ids:
            record = self._by_id.get(id)
            if record is not None:
                yield record


def _sync(directory: str) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
