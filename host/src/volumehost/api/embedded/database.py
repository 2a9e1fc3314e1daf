"""The SQLite file: opening it safely, connections for many threads, transactions.

Readers never wait for the writer (write-ahead log). Writers of one process queue here, those of several processes in
SQLite. A commit is on disk when it returns, unless it is said not to matter.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from volumehost.api.embedded.failures import store_error, store_errors
from volumehost.api.embedded.tables import bring_up_to_date
from volumehost.errors import StoreError

logger = logging.getLogger(__name__)

_FILE_MODE = 0o600
_DIRECTORY_MODE = 0o750
_SWITCH_PAUSE = 0.01
_MAX_IDLE = 8
#: The log is cut back to this size once its content is in the file, in bytes.
_LOG_BYTES = 8 * 1024 * 1024


class StoreConnection(sqlite3.Connection):
    """A connection that knows whether its commits are synced."""

    _durable: bool | None = None

    def make_durable(self, durable: bool) -> None:
        """Sync each commit from now on, or only the next that another one makes durable."""
        if self._durable is not durable:
            self.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable


class Database:
    """One store file. ``busy_timeout`` is how long to wait for other processes' locks, in seconds."""

    def __init__(self, path: str, *, busy_timeout: float) -> None:
        self.path = path
        self._busy_timeout = busy_timeout
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._idle: list[StoreConnection] = []
        self._closed = False
        #: How many reads and writes have failed because of the file.
        self.errors = 0
        self._process = os.getpid()
        # Connections that a fork inherited must neither be used nor closed: closing them would drop the parent's locks.
        self._inherited: list[sqlite3.Connection] = []
        self._open_now()

    def _open_now(self) -> None:
        """Open the file, so that whoever makes this learns whether it can be used."""
        self._idle.append(self._first_connection())

    def _first_connection(self) -> StoreConnection:
        """Make sure of the file, and open it."""
        with store_errors(self.path, "open the store"):
            self._identity = _prepare_file(self.path)
            return self._open()

    def row(self, query: str, parameters: Sequence[object]) -> Any:
        """The first row that the query finds, None without one; a query is a transaction of its own."""
        self._after_fork()
        connection = self._take("read the store")
        try:
            return connection.execute(query, parameters).fetchone()
        except sqlite3.Error as error:
            raise self._failure("read the store", error) from error
        finally:
            self._give_back(connection)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one state of the store and changes nothing."""
        with self._connection("read the store") as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                _end(connection, "ROLLBACK")

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction that nobody else writes during; on disk when the block ends, undone when it raises.

        :param durable: False for what may be undone when the machine (not the process) dies before the next commit.
        """
        self._begin_writing()
        try:
            connection = self._take("write the store")
            try:
                self._check_identity()
                connection.make_durable(durable)
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    _end(connection, "ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise self._failure("write the store", error) from error
            finally:
                self._give_back(connection)
        finally:
            self._writing.release()

    @contextmanager
    def watching(self) -> Iterator[sqlite3.Connection]:
        """A connection of the caller's own for as long as the block lasts, without a transaction."""
        with self._connection("watch the store") as connection:
            yield connection

    @property
    def closed(self) -> bool:
        """Whether it has been closed."""
        return self._closed

    def close(self) -> None:
        """Close the connections that nobody uses; those in use are closed when they come back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        if os.getpid() == self._process:
            for connection in idle:
                connection.close()

    def _after_fork(self) -> None:
        """Start afresh in a child process: another thread of the parent may have held the locks."""
        if os.getpid() != self._process:
            self._lock = threading.Lock()
            self._writing = threading.Lock()
            self._inherited += self._idle
            self._idle = []
            self._process = os.getpid()

    def _begin_writing(self) -> None:
        """Queue behind the other writers of this process."""
        self._after_fork()
        if not self._writing.acquire(timeout=self._busy_timeout):
            self.errors += 1
            raise StoreError(
                f"{self.path}: another thread has been writing for {self._busy_timeout:g} s",
                action="write the store",
                subject=self.path,
            )

    @contextmanager
    def _connection(self, action: str) -> Iterator[StoreConnection]:
        self._after_fork()
        connection = self._take(action)
        try:
            yield connection
        except sqlite3.Error as error:
            raise self._failure(action, error) from error
        finally:
            self._give_back(connection)

    def _failure(self, action: str, error: sqlite3.Error) -> StoreError:
        self.errors += 1
        return store_error(self.path, action, error)

    def _take(self, action: str) -> StoreConnection:
        with self._lock:
            if self._closed:
                raise StoreError(f"{self.path} has been closed", action=action, subject=self.path)
            if self._idle:
                return self._idle.pop()
        with store_errors(self.path, action):
            return self._open()

    def _give_back(self, connection: StoreConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _open(self) -> StoreConnection:
        # One thread at a time uses a connection, though not always the same one.
        connection = sqlite3.connect(
            self.path,
            timeout=self._busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            factory=StoreConnection,
        )
        try:
            _switch_to_wal(connection, self._busy_timeout)
            connection.make_durable(True)
            connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
            # Deleted secrets are overwritten, not only forgotten.
            connection.execute("PRAGMA secure_delete = ON")
            bring_up_to_date(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_identity(self) -> None:
        """A file that was removed or replaced would take writes that nobody ever reads."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._identity:
            self.errors += 1
            raise StoreError(
                f"{self.path} was {'removed' if found is None else 'replaced'} while it was in use",
                action="write the store",
                subject=self.path,
                hint="put the file back, or restart this process to work with what is there now",
            )


def _prepare_file(path: str) -> tuple[int, int]:
    """Make sure that the file is there, regular and private; returns its identity."""
    os.makedirs(os.path.dirname(path), mode=_DIRECTORY_MODE, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, _FILE_MODE)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(f"{path} is not a regular file", action="open the store", subject=path)
        if found.st_mode & 0o077:
            logger.warning("%s could be used by others (mode %04o): made private", path, stat.S_IMODE(found.st_mode))
            os.fchmod(descriptor, _FILE_MODE)
    finally:
        os.close(descriptor)
    return found.st_dev, found.st_ino


def _switch_to_wal(connection: sqlite3.Connection, timeout: float) -> None:
    """SQLite does not wait for locks by itself while a file changes to the write-ahead log."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            busy = getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
            if not busy or time.monotonic() >= deadline:
                raise
            time.sleep(_SWITCH_PAUSE)
        else:
            return


def _end(connection: sqlite3.Connection, statement: str) -> None:
    """End a transaction that SQLite may have ended by itself, as it does when the disk is full."""
    if connection.in_transaction:
        connection.execute(statement)
