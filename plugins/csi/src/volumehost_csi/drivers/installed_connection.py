"""Registers the process of one installed driver: what :class:`SupervisedDriver` asks for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from volumehost.errors import ApiError, StorageDriverError, StorageDriverUncertainError
from volumehost.sdk import escape_qualified_name
from volumehost.storage_driver import DriverOrigin
from volumehost_csi.drivers.readiness import Waiting, wait_until_ready
from volumehost_csi.drivers.records import ProcessRecord, read_facts, write_facts
from volumehost_csi.plugin import PLUGIN_NAME

if TYPE_CHECKING:
    from volumehost.volume_host import VolumeHost
    from volumehost_csi.drivers.places import DriverPlaces
    from volumehost_csi.drivers.storage_driver import GrpcStorageDriver
    from volumehost_csi.registration.handler import CSIRegistrationHandler
    from volumehost_csi.registration.store import DriverInstance, DriverStore


logger = logging.getLogger(__name__)


class InstalledConnection:
    """One installed driver between its process and the store of registered drivers.

    :param session: what a registration of a driver is called through.
    """

    def __init__(
        self,
        host: VolumeHost,
        places: DriverPlaces,
        store: DriverStore,
        handler: CSIRegistrationHandler,
        session: Callable[[DriverInstance], GrpcStorageDriver],
    ) -> None:
        self._host = host
        self._places = places
        self._store = store
        self._handler = handler
        self._session = session
        self._instance: DriverInstance | None = None

    def connect(self, record: ProcessRecord, waiting: Waiting) -> None:
        """Wait until the process is ready, register it, and remember what it tells; ``start.lock`` is held.

        :raises StorageDriverError: the wait has ended without that, or it is not the driver that it should be.
        """
        wait_until_ready(record.endpoint, waiting)
        while self._instance is None:
            seconds = max(1.0, waiting.deadline - time.monotonic())
            try:
                self._instance = self._handler.register(
                    self._places.name, record.endpoint, timeout=seconds, origin=DriverOrigin.INSTALLED
                )
            except (StorageDriverUncertainError, ApiError) as error:  # neither needs another process (BR-25)
                waiting.pause(error.reason)
        remember(self._places, self._session(self._instance))

    def disconnect(self) -> None:
        """Take it out of the store. What the cluster was told of it stays: it is about to be back, or will be asked for
        again (CSI-REG-15).
        """
        instance, self._instance = self._instance, None
        if instance is not None:
            self._store.remove(instance)

    def busy(self) -> bool:
        """Whether a call to it is on its way from here."""
        try:
            return self._instance is not None and self._session(self._instance).busy
        except StorageDriverError:  # its registration is being replaced in this moment
            return False

    def mounts_need_it(self) -> bool:
        """Whether there are mounts of CSI volumes: nothing tells whose they are, so that any counts."""
        below = f"{self._host.get_plugin_dir(PLUGIN_NAME)}/"
        pods, escaped = f"{self._host.get_pods_dir()}/", f"/{escape_qualified_name(PLUGIN_NAME)}/"
        return any(
            mount.path.startswith(below) or (mount.path.startswith(pods) and escaped in mount.path)
            for mount in self._host.get_mounter().list_mounts()
        )


def remember(places: DriverPlaces, driver: GrpcStorageDriver) -> None:
    """Write down what a driver tells of itself, for those who look while it does not run; ``start.lock`` is held.

    A driver that does not tell its capabilities is registered all the same: whoever needs them gets the error.
    """
    error = ""
    try:
        driver.capabilities()
    except StorageDriverError as failure:
        error = str(failure)
    info = driver.instance.node_info
    facts = replace(
        read_facts(places),
        version=driver.vendor_version,
        node_id=info.node_id if info is not None else "",
        max_volumes=info.max_volumes if info is not None else 0,
        topology=dict(info.topology) if info is not None else {},
        capabilities=driver.known_capabilities,
        asked_at=time.time(),
        error=error,
    )
    try:
        write_facts(places, facts)
    except OSError as failure:  # what is only remembered stops nobody
        logger.warning("what a CSI driver told cannot be written down: driver=%s error=%s", places.name, failure)
