"""The drivers of a controller's host: controller services at endpoints that it was given, and nothing of a node.

There is no registration, no CSINode, no process to look after: whoever runs the controller runs the driver beside it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from volumehost.errors import StorageDriverError, StorageDriverUnavailableError
from volumehost.storage_driver import DriverOrigin, DriverState, DriverStatus
from volumehost_csi.metrics import CSIMetrics
from volumehost_csi.registration.checks import check_name
from volumehost_csi.registration.store import DriverInstance
from volumehost_csi.registration.versions import Version
from volumehost_csi.settings import Settings

if TYPE_CHECKING:
    from volumehost_csi.drivers.storage_driver import GrpcStorageDriver

_VERSION = Version((1, 0, 0))


class ControllerDrivers:
    """Implements StorageDrivers. Safe for threads; nothing is asked of a driver before it is needed."""

    def __init__(self, settings: Settings, metrics: CSIMetrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._lock = threading.Lock()
        self._instances: dict[str, DriverInstance] = {}
        self._sessions: dict[str, GrpcStorageDriver] = {}
        #: Drivers that have told their name.
        self._met: set[str] = set()
        self._subscribers: tuple[Callable[[str], None], ...] = ()

    def start(self) -> None:
        """Nothing to begin."""

    def statuses(self) -> list[DriverStatus]:
        """Every driver that there is an endpoint for, by name."""
        with self._lock:
            return [self._status(name) for name in sorted(self._instances)]

    def problems(self) -> list[str]:
        """None: nobody has to be noticed."""
        return []

    def register(self, name: str, endpoint: str) -> DriverStatus:
        """The driver serves there; it need not yet.

        :raises StorageDriverError: that is no name of a driver, or no endpoint.
        """
        check_name(name)
        from volumehost_csi_kit import endpoints

        try:
            endpoints.socket_path(endpoint)
        except endpoints.EndpointError as error:
            action = f"taking note of the CSI driver {name}"
            raise StorageDriverError(error.reason, driver=name, action=action) from error
        self.unregister(name)
        with self._lock:
            self._instances[name] = DriverInstance(
                name, endpoint, version=_VERSION, origin=DriverOrigin.COMMAND, identity=endpoint
            )
            status = self._status(name)
        self._tell(name)
        return status

    def unregister(self, name: str) -> None:
        """Forget the driver, if it is known."""
        with self._lock:
            instance = self._instances.pop(name, None)
            self._sessions.pop(name, None)
            self._met.discard(name)
        if instance is not None:
            instance.close()
            self._tell(name)

    def on_change(self, changed: Callable[[str], None]) -> None:
        """Call ``changed(name)`` at each change; it must not block."""
        with self._lock:
            self._subscribers = (*self._subscribers, changed)

    def driver(self, name: str, *, timeout: float) -> GrpcStorageDriver:
        """The driver; at first it is asked for its name, within ``timeout`` seconds.

        :raises StorageDriverUnavailableError: there is no endpoint for it, or it does not answer.
        :raises StorageDriverError: another driver serves there.
        """
        from volumehost_csi.drivers.storage_driver import GrpcStorageDriver

        with self._lock:
            instance, session = self._instances.get(name), self._sessions.get(name)
            if instance is None:
                hint = "name its endpoint with --csi-driver"
                raise StorageDriverUnavailableError("this controller has no endpoint of it", driver=name, hint=hint)
            if session is None:
                session = self._sessions[name] = GrpcStorageDriver(instance, self._metrics, self._settings)
        if name not in self._met:
            self._meet(instance, timeout)
            self._met.add(name)
        return session

    def close(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._subscribers = ()
            names = list(self._instances)
        for name in names:
            self.unregister(name)

    def _meet(self, instance: DriverInstance, timeout: float) -> None:
        from volumehost_csi.drivers.calls import Call, Caller
        from volumehost_csi_kit import csi, stubs

        channel = instance.channel()
        ask = Caller(instance, channel, self._metrics, timeout=timeout, create_timeout=timeout)
        call = Call("GetPluginInfo", f"asking the CSI driver at {instance.endpoint} for its name")
        info = ask(call, "Identity", stubs.IdentityStub(channel).GetPluginInfo, csi.GetPluginInfoRequest())
        if info.name != instance.name:
            raise StorageDriverError(
                f"the driver there is called {info.name!r}",
                driver=instance.name,
                action=call.action,
                hint="name driver and endpoint as they belong together",
            )

    def _status(self, name: str) -> DriverStatus:
        session = self._sessions.get(name)
        return DriverStatus(
            name,
            DriverOrigin.COMMAND,
            DriverState.READY if name in self._met else DriverState.STARTING,
            endpoint=self._instances[name].endpoint,
            version=session.vendor_version if session is not None else "",
            capabilities=session.known_capabilities if session is not None else None,
        )

    def _tell(self, name: str) -> None:
        for changed in self._subscribers:
            changed(name)
