"""The embedded store for those who only look: ``get``, ``describe`` and ``status`` open it so.

It needs no right to write, leaves no file behind, and a store that is not there is an empty one.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from volumehost.api.embedded.database import Database, StoreConnection
from volumehost.api.embedded.failures import store_errors
from volumehost.api.embedded.tables import bring_up_to_date
from volumehost.api.store import EmbeddedStore
from volumehost.errors import StoreError

#: SQLite wants to make its shared memory file beside the store; these are its ways to say that it cannot.
_NOT_WRITABLE = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_FULL", "SQLITE_IOERR")

#: How often store and log are read until two readings agree, and how much of the log tells one from the next.
_READS = 10
_LOG_HEADER = 32


class ReadOnlyStore(EmbeddedStore):
    """An ApiClient that reads the store as it is now and in the next moments, and refuses every write.

    :param path: the file; need not exist.
    :param busy_timeout: how long to wait for a lock, in seconds.
    :param untouched: read a private copy, so that not even SQLite's own files beside the store change.
    :raises StoreError: the file is there and cannot be read.
    """

    def __init__(self, path: str, *, busy_timeout: float = 10.0, untouched: bool = False) -> None:
        self._untouched = untouched
        super().__init__(path, busy_timeout=busy_timeout)

    def _open_database(self, busy_timeout: float) -> Database:
        return _ReadOnlyDatabase(self.path, busy_timeout=busy_timeout, untouched=self._untouched)


class _ReadOnlyDatabase(Database):
    """Connections to a file, or to a copy of it where the filesystem does not let SQLite work with the file itself."""

    def __init__(self, path: str, *, busy_timeout: float, untouched: bool) -> None:
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._untouched = untouched
        super().__init__(path, busy_timeout=busy_timeout)

    def _first_connection(self) -> StoreConnection:
        # Not the base class's, which would make the file.
        try:
            with store_errors(self.path, "open the store"):
                return self._open()
        except BaseException:
            self._remove_copy()
            raise

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:  # noqa: ARG002 - the base class's
        """Refuse.

        :raises StoreError: always.
        """
        raise StoreError(f"{self.path} was opened for reading only", action="write the store", subject=self.path)
        yield  # a context manager, as the base class's

    def close(self) -> None:
        """Close the connections, and remove the copy if there is one."""
        super().close()
        self._remove_copy()

    def _open(self) -> StoreConnection:
        connection = self._connect()
        try:
            bring_up_to_date(connection, self.path)
            connection.execute("PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self) -> StoreConnection:
        if self._copy is not None:
            return self._sqlite(os.path.join(self._copy.name, "store"), "")
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return self._sqlite(":memory:", "")
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(f"{self.path} is not a regular file", action="open the store", subject=self.path)
        # Opened for writing, though nothing is written, SQLite takes its log and shared memory away again at the end.
        for mode in () if self._untouched else ("rw", "ro"):
            connection = self._sqlite(self.path, f"?mode={mode}")
            try:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.Error as error:
                connection.close()
                if not getattr(error, "sqlite_errorname", "").startswith(_NOT_WRITABLE):
                    raise
            else:
                return connection
        self._copy = self._make_copy()
        return self._connect()

    def _make_copy(self) -> tempfile.TemporaryDirectory[str]:
        copy = tempfile.TemporaryDirectory(prefix="volumehost-store-", dir=directory_for_copies())
        try:
            copy_store(self.path, os.path.join(copy.name, "store"))
        except BaseException:
            copy.cleanup()
            raise
        return copy

    def _sqlite(self, path: str, parameters: str) -> StoreConnection:
        # One thread at a time uses a connection, though not always the same one.
        return sqlite3.connect(
            f"file:{quote(path)}{parameters}" if parameters else path,
            uri=bool(parameters),
            timeout=self._busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            factory=StoreConnection,
        )

    def _remove_copy(self) -> None:
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None


def copy_store(path: str, target: str) -> None:
    """Write the store, as it is at one moment, to another place, whose directory is the caller's alone.

    :raises StoreError: it changes too fast.
    """
    store, log = _read_together(path)
    for name, data in ((target, store), (f"{target}-wal", log)):
        with open(name, "wb") as file:
            file.write(data)


def _read_together(path: str) -> tuple[bytes, bytes]:
    """The store and its log, of one moment: a checkpoint by somebody else would make one older than the other.

    Between two equal readings of the store nothing was put into it from the log, which otherwise only grows.
    """
    for _ in range(_READS):
        store, log = _read(path), _read(f"{path}-wal")
        if _read(path) == store and _read(f"{path}-wal", _LOG_HEADER) == log[:_LOG_HEADER]:
            return store, log
    raise StoreError(
        f"it changed during each of {_READS} readings", action=f"read {path}", subject=path, hint="try again"
    )


def _read(path: str, length: int = -1) -> bytes:
    """The file's content, "" when there is none; the time of its last access stays where that is allowed."""
    try:
        with open(path, "rb", opener=_open_quietly) as file:
            return file.read(length)
    except FileNotFoundError:
        return b""


def _open_quietly(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_NOATIME)
    except PermissionError:
        return os.open(path, flags)


def directory_for_copies() -> str | None:
    """Somewhere to write where the usual places for temporary files do not allow it."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return next((path for path in ("/dev/shm", "/run") if os.access(path, os.W_OK)), None)  # noqa: S108 - in memory
    return None
