"""The embedded store for those who only look: ``get``, ``describe`` and ``status`` open it so.

It needs no right to write, leaves no file behind, and a store that is not there is an empty one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
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


class ReadOnlyStore(EmbeddedStore):
    """An ApiClient that reads the store as it is now and in the next moments, and refuses every write.

    :param path: the file; need not exist.
    :param busy_timeout: how long to wait for a lock, in seconds.
    :raises StoreError: the file is there and cannot be read.
    """

    def _open_database(self, busy_timeout: float) -> Database:
        return _ReadOnlyDatabase(self.path, busy_timeout=busy_timeout)


class _ReadOnlyDatabase(Database):
    """Connections to a file, or to a copy of it where the filesystem does not let SQLite work with the file itself."""

    def __init__(self, path: str, *, busy_timeout: float) -> None:
        self._copy: tempfile.TemporaryDirectory[str] | None = None
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
        for mode in ("rw", "ro"):
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
        """A private copy, with what its log holds. Where nobody may write, nobody changes it meanwhile."""
        copy = tempfile.TemporaryDirectory(prefix="volumehost-store-")
        try:
            shutil.copyfile(self.path, os.path.join(copy.name, "store"))
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{self.path}-wal", os.path.join(copy.name, "store-wal"))
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
