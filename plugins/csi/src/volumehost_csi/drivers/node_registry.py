"""Waits for drivers that register themselves through the watched directory."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from volumehost.errors import StorageDriverUnavailableError, VolumeHostError
from volumehost_csi.registration.attempts import RegistrationState
from volumehost_csi.registration.service import Registration

if TYPE_CHECKING:
    from collections.abc import Collection

    from volumehost.volume_host import VolumeHost
    from volumehost_csi.metrics import CSIMetrics
    from volumehost_csi.registration.attempts import SocketStatus
    from volumehost_csi.registration.handler import CSIRegistrationHandler
    from volumehost_csi.registration.store import DriverInstance, DriverStore


class NodeRegistry:
    """The registration of one node, and waiting for it. Making one touches nothing. Safe for threads.

    :raises NotAvailableOnHostError: the host is not that of a node.
    """

    def __init__(
        self,
        host: VolumeHost,
        sockets_dir: str,
        store: DriverStore,
        metrics: CSIMetrics,
        migrated: Collection[str] | None = None,
    ) -> None:
        self._store = store
        self.registration = Registration(host, store, metrics=metrics, migrated=migrated)
        self._sockets = self.registration.manager
        metrics.sockets = self._sockets.total_plugins
        self._directory = sockets_dir
        self._condition = threading.Condition()
        self._closed = False
        store.subscribe(self._notify)
        self._sockets.on_change(self._notify)

    @property
    def handler(self) -> CSIRegistrationHandler:
        """Registers drivers by name and endpoint."""
        return self.registration.handler

    @property
    def problem(self) -> str:
        """What the registration directory leaves out or notices late, "" when nothing."""
        problem = self._sockets.problem
        return f"the registration directory {self._directory}: {problem}" if problem else ""

    def stale_labels(self, name: str) -> tuple[str, ...]:
        """Labels of the node that a driver's former topology left behind (CSI-NIM-12)."""
        return self.registration.node_info.stale_labels.get(name, ())

    def wait_for(self, name: str, deadline: float) -> DriverInstance:
        """The driver, when its socket lies in the directory and is registered by ``deadline`` (monotonic).

        :raises StorageDriverUnavailableError: it is not, with the reason (BR-25, BR-27).
        """
        action = f"looking up the CSI driver {name}"
        try:
            self._sockets.start()
        except VolumeHostError as error:
            raise StorageDriverUnavailableError(error.reason, driver=name, action=action, hint=error.hint) from error
        with self._condition:
            while True:
                instance = self._store.get(name)
                if instance is not None:
                    return instance
                remaining = deadline - time.monotonic()
                if self._closed or remaining <= 0 or not self._coming(name, remaining):
                    raise StorageDriverUnavailableError(
                        "it is not registered: it is not installed, was not registered by command, and "
                        f"{self._sockets.explain(name)}",
                        driver=name,
                        action=action,
                        hint="install or start it; volumehost drivers list shows what there is",
                    )
                self._condition.wait(remaining)

    def settle(self, timeout: float) -> list[SocketStatus]:
        """The registration sockets, when what lies there was met or ``timeout`` seconds have passed.

        A directory that is not there has none, and is not made.
        """
        if not os.path.isdir(self._directory):
            return []
        try:
            self._sockets.start()
        except VolumeHostError:
            return []
        deadline = time.monotonic() + timeout
        with self._condition:
            self._condition.wait_for(lambda: self._closed or not self._coming("", deadline - time.monotonic()), timeout)
        return self._sockets.statuses()

    def close(self) -> None:
        """Register nothing more."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        self.registration.stop()

    def _coming(self, name: str, within: float) -> bool:
        """Whether a socket is being met that may be that driver's, or will be again within so many seconds."""
        for status in self._sockets.statuses():
            if status.state is RegistrationState.REGISTERING and status.name in {"", name}:
                return True
            if name and status.name == name and status.retry_at and status.retry_at - time.time() < within:
                return True
        return False

    def _notify(self, _what: str) -> None:
        with self._condition:
            self._condition.notify_all()
