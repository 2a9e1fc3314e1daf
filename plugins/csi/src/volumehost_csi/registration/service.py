"""Registration: all of this room put together for one host. ``volumehost_csi.drivers`` makes it, starts and ends it."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import TYPE_CHECKING

from volumehost.errors import ApiError, NotAvailableOnHostError
from volumehost.volume_host import AttachDetachVolumeHost, KubeletVolumeHost
from volumehost_csi.registration.allocatable import AllocatableUpdater
from volumehost_csi.registration.handler import CSIRegistrationHandler
from volumehost_csi.registration.initialisation import (
    REPAIR_SECONDS,
    STANDALONE_REPAIR_SECONDS,
    CSINodeInitialisation,
)
from volumehost_csi.registration.manager import PluginManager
from volumehost_csi.registration.node_info import NodeInfoManager
from volumehost_csi.registration.operations import CSI_PLUGIN

if TYPE_CHECKING:
    from volumehost.volume_host import VolumeHost
    from volumehost_csi.metrics import CSIMetrics
    from volumehost_csi.registration.store import DriverStore


class Registration:
    """How drivers get into the store on one node. Making one touches nothing.

    ``handler`` registers drivers by command without :meth:`start`; ``manager`` tells about sockets.

    :param host: the host of a node.
    :param migrated: names of the in-tree plugins whose volumes go through CSI here (CSI-NIM-25); None: nobody said.
    :raises NotAvailableOnHostError: the host is not that of a node.
    """

    def __init__(
        self,
        host: VolumeHost,
        store: DriverStore,
        *,
        metrics: CSIMetrics | None = None,
        migrated: Collection[str] | None = None,
    ) -> None:
        if not isinstance(host, KubeletVolumeHost):
            raise NotAvailableOnHostError("only the host of a node has drivers", action="registering CSI drivers")
        self._host: VolumeHost = host
        # A host that is node and controller at once has the store to itself: no kubelet is there to make the Node.
        standalone = isinstance(host, AttachDetachVolumeHost)
        self.node_info = NodeInfoManager(host, migrated=migrated, register_node=standalone)
        self.handler = CSIRegistrationHandler(store, self.node_info, metrics=metrics)
        self.manager = PluginManager(host.get_plugins_registry_dir(), {CSI_PLUGIN: self.handler})
        self.updater = AllocatableUpdater(store, self.handler, lambda name: host.csi_driver_lister().get(name))
        repair_seconds = STANDALONE_REPAIR_SECONDS if standalone else REPAIR_SECONDS
        self._initialisation = CSINodeInitialisation(host, self.node_info, repair_seconds=repair_seconds)
        store.subscribe(self.manager.retry_refused)
        self._lock = threading.Lock()
        self._started = False

    def start(self) -> None:
        """Make the node known and watch for drivers, in the background; may be called again.

        :raises RootDirectoryError: the registration directory cannot be made or read.
        """
        with self._lock:
            if self._started:
                return
            self.manager.start()
            self._started = True
        if self._has_api():  # CSI-SOLO-06
            self._initialisation.start()
        self.updater.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End everything within about ``timeout`` seconds; drivers stay registered. Who made the store closes it."""
        self.manager.stop(timeout)
        self.updater.stop(timeout)
        self._initialisation.stop(timeout)

    def _has_api(self) -> bool:
        """An API that cannot be opened now is one all the same: the initialisation waits for it."""
        try:
            return self._host.get_kube_client() is not None
        except ApiError:
            return True
