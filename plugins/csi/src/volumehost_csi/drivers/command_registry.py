"""Drivers that were registered by command: remembered on disk, met again when somebody asks for them."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from volumehost.errors import StorageDriverError, StorageDriverUnavailableError
from volumehost.storage_driver import DriverOrigin
from volumehost_csi.drivers.locks import locked
from volumehost_csi.drivers.records import read_registered, write_registered

if TYPE_CHECKING:
    from volumehost_csi.drivers.places import DriverPlaces
    from volumehost_csi.registration.handler import CSIRegistrationHandler
    from volumehost_csi.registration.store import DriverInstance

#: Seconds that a driver has to answer when it is registered.
REGISTER_TIMEOUT = 30.0
#: Seconds to wait for another process that writes the same record.
_LOCK_SECONDS = 10.0
#: Seconds between two tries to meet a driver that does not answer: nothing announces that it is back.
_PAUSE = 0.25


class CommandRegistry:
    """The drivers of ``drivers register``. Safe for threads.

    :param places: of a driver, by its name.
    """

    def __init__(
        self, drivers_dir: str, places: Callable[[str], DriverPlaces], handler: Callable[[], CSIRegistrationHandler]
    ) -> None:
        self._drivers_dir = drivers_dir
        self._places = places
        self._handler = handler
        self._busy: set[str] = set()

    @property
    def busy(self) -> frozenset[str]:
        """Names that are just being registered: in the store perhaps, and not written down yet."""
        return frozenset(self._busy)

    def names(self) -> list[str]:
        """Names of the registered drivers, sorted."""
        try:
            known = sorted(os.listdir(self._drivers_dir))
        except OSError:
            return []
        return [name for name in known if os.path.isfile(f"{self._drivers_dir}/{name}/registered.json")]

    def endpoint(self, name: str) -> str:
        """Where that driver serves, "" when it was not registered by command."""
        return read_registered(self._places(name))

    def register(self, name: str, endpoint: str) -> DriverInstance:
        """Meet the driver, and remember it only when it is what it should be.

        :raises StorageDriverError: it does not answer, is not a CSI driver, or has another name.
        """
        self._busy.add(name)
        try:
            return self._register(name, endpoint)
        finally:
            self._busy.discard(name)

    def _register(self, name: str, endpoint: str) -> DriverInstance:
        identity = (DriverOrigin.COMMAND, name)
        instance = self._handler().register(name, endpoint, timeout=REGISTER_TIMEOUT, identity=identity)
        places = self._places(name)
        try:
            places.prepare()
            with locked(places.start_lock, _LOCK_SECONDS) as mine:
                if not mine:
                    raise TimeoutError("another process is busy with the driver")
                write_registered(places, instance.endpoint)
        except OSError as error:
            self._handler().deregister(name, instance.endpoint, identity=identity)
            raise StorageDriverError(
                f"it cannot be remembered: {error.strerror or error}",
                driver=name,
                action=f"registering the CSI driver {name}",
                hint=f"make {places.directory} writable",
            ) from error
        return instance

    def meet_again(self, name: str, deadline: float, stop: threading.Event) -> DriverInstance:
        """Register again what was registered in an earlier process, as soon as it answers.

        :param deadline: on the monotonic clock.
        :raises StorageDriverUnavailableError: it does not by then.
        """
        while True:
            try:
                return self._handler().register(
                    name,
                    self.endpoint(name),
                    timeout=max(1.0, deadline - time.monotonic()),
                    identity=(DriverOrigin.COMMAND, name),
                )
            except StorageDriverError as error:
                if time.monotonic() + _PAUSE >= deadline or stop.wait(_PAUSE):
                    raise StorageDriverUnavailableError(
                        error.reason,
                        driver=name,
                        action=f"looking up the CSI driver {name}, which was registered by command",
                        hint=f"start it, or forget it: volumehost drivers unregister {name}",
                    ) from error

    def unregister(self, name: str) -> None:
        """Forget it.

        :raises StorageDriverUnavailableError: it was not registered by command.
        """
        places = self._places(name)
        endpoint = read_registered(places)
        if not endpoint:
            raise StorageDriverUnavailableError(
                "no driver of that name was registered by command",
                driver=name,
                action=f"unregistering the CSI driver {name}",
                hint="see volumehost drivers list",
            )
        for path in (places.registered_file, places.facts_file):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        self._handler().deregister(name, endpoint, identity=(DriverOrigin.COMMAND, name))
