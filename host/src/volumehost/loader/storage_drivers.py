"""The storage drivers behind the loaded plugins, as one: for controllers, the volume manager and the command line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from volumehost.errors import StorageDriverUnavailableError

if TYPE_CHECKING:
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.storage_driver import DriverStatus, StorageDriver, StorageDrivers

logger = logging.getLogger(__name__)

#: What to do where no plugin fronts storage drivers.
INSTALL_HINT = "pip install volumehost-csi"


def storage_drivers_of(plugins: Iterable[LoadedPlugin]) -> list[StorageDrivers]:
    """The storage drivers that these plugins front, in their order.

    A plugin whose hook raises is logged and left out: it costs the others nothing.
    """
    found = []
    for plugin in plugins:
        try:
            drivers = plugin.get_storage_drivers()
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            logger.error("the storage drivers of a plugin cannot be had: plugin=%s error=%s", plugin.name, error)  # noqa: TRY400
            continue
        if drivers is not None:
            found.append(drivers)
    return found


class CombinedStorageDrivers:
    """The drivers of several plugins as one; implements StorageDrivers. Where two know a name, the first one wins."""

    def __init__(self, parts: Sequence[StorageDrivers]) -> None:
        self._parts = tuple(parts)

    def __bool__(self) -> bool:
        """Whether any plugin fronts storage drivers."""
        return bool(self._parts)

    def start(self) -> None:
        """Start all of them."""
        for part in self._parts:
            part.start()

    def statuses(self) -> list[DriverStatus]:
        """Every known driver, by name."""
        known: dict[str, DriverStatus] = {}
        for part in self._parts:
            for status in part.statuses():
                known.setdefault(status.name, status)
        return [known[name] for name in sorted(known)]

    def problems(self) -> list[str]:
        """What keeps drivers from being noticed, or delays it."""
        return [problem for part in self._parts for problem in part.problems()]

    def driver(self, name: str, *, timeout: float) -> StorageDriver:
        """The driver of that name, registered and answering.

        :raises StorageDriverUnavailableError: no plugin fronts drivers, or the one that does cannot reach it.
        """
        return self._part_of(name, f"looking up the driver {name}").driver(name, timeout=timeout)

    def register(self, name: str, endpoint: str) -> DriverStatus:
        """Register a driver with the first plugin that fronts drivers."""
        return self._part_of(name, f"registering the driver {name}").register(name, endpoint)

    def unregister(self, name: str) -> None:
        """Forget a driver that was registered by command."""
        self._part_of(name, f"unregistering the driver {name}").unregister(name)

    def on_change(self, changed: Callable[[str], None]) -> None:
        """Call ``changed(name)`` for a change of any driver."""
        for part in self._parts:
            part.on_change(changed)

    def _part_of(self, name: str, action: str) -> StorageDrivers:
        if not self._parts:
            raise StorageDriverUnavailableError(
                "no installed plugin fronts storage drivers", driver=name, action=action, hint=INSTALL_HINT
            )
        if len(self._parts) > 1:
            for part in self._parts:
                if any(status.name == name for status in part.statuses()):
                    return part
        return self._parts[0]
