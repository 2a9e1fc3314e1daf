"""Drivers: every CSI driver that this host knows, whatever its origin; implements StorageDrivers and NodeDrivers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from volumehost_csi.registration.store import DriverStore

if TYPE_CHECKING:
    from volumehost.storage_driver import DriverStatus, StorageDriver
    from volumehost.volume_host import VolumeHost
    from volumehost_csi.client import NodeClient
    from volumehost_csi.metrics import CSIMetrics
    from volumehost_csi.settings import Settings


class Drivers:
    """Every CSI driver of one host. Making one touches nothing; safe for threads. :meth:`close` it at the end.

    :param host: the host of a node (KubeletVolumeHost); others have no drivers of their own to start.
    :param store: the registered drivers, shared with the registration room.
    """

    def __init__(
        self,
        host: VolumeHost,
        *,
        store: DriverStore | None = None,
        settings: Settings | None = None,
        metrics: CSIMetrics | None = None,
    ) -> None:
        self.host = host
        self._settings, self._metrics = settings, metrics
        self.store = store if store is not None else DriverStore()

    def start(self) -> None:
        """Watch for drivers that register, and take over those that an earlier host left running. Returns at once."""
        raise NotImplementedError

    def statuses(self) -> list[DriverStatus]:
        """Every known driver, by name; starts none."""
        raise NotImplementedError

    def driver(self, name: str, *, timeout: float) -> StorageDriver:
        """The driver, registered and answering; an installed one is started when it does not run."""
        raise NotImplementedError

    def node_client(self, name: str, timeout: float = 0) -> NodeClient:
        """The client of the driver's present registration: the same object until it registers again."""
        raise NotImplementedError

    def register(self, name: str, endpoint: str) -> DriverStatus:
        """Register a driver that serves at ``endpoint``, now and after a restart."""
        raise NotImplementedError

    def unregister(self, name: str) -> None:
        """Forget a driver that was registered by command."""
        raise NotImplementedError

    def on_change(self, changed: Callable[[str], None]) -> None:
        """Call ``changed(name)`` at each change of a driver; it must not block."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop what nobody else needs, leave the rest to the next host; called by the plugin's ``shutdown``."""
        raise NotImplementedError
