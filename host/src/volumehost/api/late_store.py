"""The embedded store for an agent: opened when it is first used and can be, so that the agent starts without it.

Static pods are mounted though the store cannot be read (BR-54); every call tells why, until it can.
"""

from __future__ import annotations

import threading

from volumehost.api.embedded.database import Database, StoreConnection
from volumehost.api.store import EmbeddedStore
from volumehost.errors import StoreError


class LateStore(EmbeddedStore):
    """An EmbeddedStore that may not be usable yet: its calls raise StoreError until it is.

    :param path: the file, which is made when it is not there.
    """

    def _open_database(self, busy_timeout: float) -> Database:
        self._late = _LateDatabase(self.path, busy_timeout=busy_timeout)
        return self._late

    @property
    def problem(self) -> str:
        """Why it could not be opened the last time that it was tried, "" when it is open or was not used yet."""
        return self._late.problem


class _LateDatabase(Database):
    """Makes its first connection when somebody wants one."""

    problem = ""

    def _open_now(self) -> None:
        self._opened = False
        self._opening = threading.Lock()

    def _take(self, action: str) -> StoreConnection:
        if not self._opened:
            with self._opening:
                if not self._opened:
                    self._open_late()
        return super()._take(action)

    def _open_late(self) -> None:
        try:
            connection = self._first_connection()
        except StoreError as error:
            self.problem = str(error)
            raise
        self.problem = ""
        self._give_back(connection)
        self._opened = True
