"""The storage drivers of this host as controllers see them, through whichever plugins front them now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from volumehost.errors import StorageDriverUnavailableError

if TYPE_CHECKING:
    from volumehost.control.machinery.gate import Gate
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.loader.storage_drivers import CombinedStorageDrivers
    from volumehost.storage_driver import DriverStatus, StorageDriver, StorageDrivers

#: How long a controller waits for a driver that is just starting, in seconds; after that it tries again later.
DRIVER_SECONDS = 10.0


class HostDrivers:
    """Looks drivers up; a plugin that is installed while the plane runs is found too.

    :param changed: called with a driver's name when it came, left or changed its state; must not block.
    :param gate: what the calls of drivers go through.
    """

    def __init__(self, plugins: VolumePluginManager, changed: Callable[[str], None], gate: Gate) -> None:
        self._gate = gate
        self._plugins = plugins
        self._changed = changed
        self._lock = threading.Lock()
        self._heard: list[StorageDrivers] = []

    def driver(self, name: str) -> StorageDriver:
        """The driver, registered and answering, started if need be.

        :raises StorageDriverUnavailableError: it is not known, not ready within a few seconds, or hangs.
        """
        with self._gate.entered(name):
            return self._gate.guarded(self._now().driver(name, timeout=DRIVER_SECONDS))

    def knows(self, name: str) -> bool:
        """Whether this host has a driver of that name, without starting it."""
        return any(status.name == name for status in self.statuses())

    def statuses(self) -> Sequence[DriverStatus]:
        """Every driver that this host has."""
        return self._now().statuses()

    def _now(self) -> CombinedStorageDrivers:
        from volumehost.loader.storage_drivers import CombinedStorageDrivers, storage_drivers_of

        parts = storage_drivers_of(self._plugins.loaded_plugins())
        with self._lock:
            new = [part for part in parts if not any(part is heard for heard in self._heard)]
            self._heard += new
        for part in new:
            part.on_change(self._changed)
            part.start()
        return CombinedStorageDrivers(parts)


def unknown_driver(name: str, action: str) -> StorageDriverUnavailableError:
    """The error of an object that names a driver which this host does not have."""
    return StorageDriverUnavailableError(
        f"this host has no driver {name}",
        driver=name,
        action=action,
        hint="install it with pip, or register it with: volumehost drivers register NAME ENDPOINT",
    )


def unique_csi_name(driver: str, handle: str) -> str:
    """The name of a driver's volume among all volumes of a node (IDENT-02), as ``status.volumesInUse`` has it."""
    return f"kubernetes.io/csi/{driver}^{handle}"
