"""Drivers: every CSI driver that this host knows, whatever its origin, as StorageDrivers and as NodeClients."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from volumehost.errors import (
    NotAvailableOnHostError,
    StorageDriverError,
    StorageDriverUnavailableError,
)
from volumehost.storage_driver import DriverOrigin
from volumehost.volume_host import KubeletVolumeHost
from volumehost_csi.drivers.health import Health
from volumehost_csi.drivers.installed import GROUP, InstalledDriver, installed_drivers
from volumehost_csi.drivers.places import DriverPlaces
from volumehost_csi.drivers.records import read_process
from volumehost_csi.drivers.rounds import Rounds
from volumehost_csi.drivers.statuses import Known, status_of, status_of_misnamed
from volumehost_csi.metrics import CSIMetrics
from volumehost_csi.registration.checks import check_name
from volumehost_csi.registration.store import DriverStore
from volumehost_csi.settings import Settings

if TYPE_CHECKING:
    from volumehost.storage_driver import DriverStatus
    from volumehost.volume_host import VolumeHost
    from volumehost_csi.client import NodeClient
    from volumehost_csi.drivers.command_registry import CommandRegistry
    from volumehost_csi.drivers.driver_process import SupervisionSettings
    from volumehost_csi.drivers.node_registry import NodeRegistry
    from volumehost_csi.drivers.storage_driver import GrpcStorageDriver
    from volumehost_csi.drivers.supervised import SupervisedDriver
    from volumehost_csi.registration.attempts import SocketStatus
    from volumehost_csi.registration.store import DriverInstance

logger = logging.getLogger(__name__)

#: Seconds between two rounds: health, and what commands in other processes have changed.
_ROUND_SECONDS = 10.0
#: Seconds to wait for another process that writes the record of a driver.
_RECORD_SECONDS = 2.0
#: Seconds that a list of drivers waits for registration sockets that are just being met.
_LIST_SECONDS = 3.0
#: Longest wait of one try to mount for a driver that somebody else runs, in seconds.
_OTHERS_SECONDS = 2.0


class Drivers:
    """Every CSI driver of one host. Making one touches nothing; safe for threads. :meth:`close` it at the end.

    :param host: the host of a node (KubeletVolumeHost); any other has no drivers.
    :param store: the registered drivers.
    :param migrated: names of the in-tree plugins whose volumes go through CSI here (CSI-NIM-25).
    :param supervision: how the processes of installed drivers are looked after.
    """

    def __init__(
        self,
        host: VolumeHost,
        *,
        store: DriverStore | None = None,
        settings: Settings | None = None,
        metrics: CSIMetrics | None = None,
        migrated: Collection[str] | None = None,
        supervision: SupervisionSettings | None = None,
    ) -> None:
        self.host = host
        self.store = store if store is not None else DriverStore()
        self._settings = settings if settings is not None else Settings()
        self._metrics = metrics if metrics is not None else CSIMetrics()
        self._migrated = migrated
        self._supervision = supervision
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._sessions: dict[str, GrpcStorageDriver] = {}
        self._supervised: dict[str, SupervisedDriver] = {}
        self._subscribers: tuple[Callable[[str], None], ...] = ()
        self._registry: NodeRegistry | None = None
        self._commands: CommandRegistry | None = None
        self._entry_points: object = None
        self._installed: Mapping[str, InstalledDriver] = {}
        self._installed_lock = threading.Lock()
        self._meeting: set[str] = set()
        self._health = Health(lambda: iter(self.store), self._tell)
        self._rounds = Rounds((self._follow_commands, self._health.check), period=_ROUND_SECONDS)
        self.store.subscribe(self._tell)

    # --- the parts --------------------------------------------------------------------------------------------

    @property
    def registry(self) -> NodeRegistry:
        """What registers drivers; made now if it was not.

        :raises NotAvailableOnHostError: the host is not that of a node.
        """
        if self._registry is None:
            with self._lock:
                if self._registry is None:
                    from volumehost_csi.drivers.node_registry import NodeRegistry

                    self._registry = NodeRegistry(
                        self.host, self._node().get_plugins_registry_dir(), self.store, self._metrics, self._migrated
                    )
                    if self._stop.is_set():  # whoever asks now finds nothing, and begins nothing
                        self._registry.close()
        return self._registry

    @property
    def commands(self) -> CommandRegistry:
        """The drivers that were registered by command.

        :raises NotAvailableOnHostError: the host is not that of a node.
        """
        if self._commands is None:
            from volumehost_csi.drivers.command_registry import CommandRegistry

            self._commands = CommandRegistry(
                self._node().get_drivers_dir(), self._places, lambda: self.registry.handler
            )
        return self._commands

    # --- StorageDrivers ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Watch for drivers that register, ask all for their health, and take over those that an earlier host left
        running. Returns at once; may be called again.

        :raises RootDirectoryError: the registration directory cannot be made or read.
        """
        self.registry.registration.start()
        for name in self._recorded():
            if _runs(self._places(name)):
                self._begin(name)
        self._rounds.start()

    def statuses(self) -> list[DriverStatus]:
        """Every known driver, by name; starts none, but meets those whose registration sockets lie there."""
        if not isinstance(self.host, KubeletVolumeHost):
            return []
        sockets = {status.name: status for status in self.registry.settle(_LIST_SECONDS) if status.name}
        installed = self._installed_now()
        names = {*sockets, *installed, *self.store.names(), *self._recorded()}
        found = []
        for name in sorted(names):
            if not _is_name(name):
                found.append(status_of_misnamed(name, installed.get(name), sockets.get(name)))
                continue
            known = self._known(name, installed.get(name), sockets.get(name))
            here = known.installed or known.supervised or known.instance or known.endpoint or known.socket
            if here or _runs(known.places):  # otherwise only its data is left
                found.append(status_of(known))
        return found

    def problems(self) -> list[str]:
        """What the registration directory leaves out or notices late; asked after :meth:`statuses`, which looks."""
        problem = self._registry.problem if self._registry is not None else ""
        return [problem] if problem else []

    def driver(self, name: str, *, timeout: float) -> GrpcStorageDriver:
        """The driver, registered and answering; an installed one is started when it does not run.

        :raises StorageDriverUnavailableError: it is not known, not registered yet, or does not start (BR-27).
        """
        return self._session(self._find(name, timeout))

    def register(self, name: str, endpoint: str) -> DriverStatus:
        """Register a driver that serves at ``endpoint``, now and after a restart.

        :raises StorageDriverError: it does not answer, is not a CSI driver, or has another name; or a driver of that
            name is installed.
        """
        check_name(name)
        installed = self._installed_now().get(name)
        if installed is not None:
            raise StorageDriverError(
                f"a driver of that name is installed, by {installed.origin}",
                driver=name,
                action=f"registering the CSI driver {name}",
                hint="uninstall that distribution first",
            )
        self._remember(self._session(self.commands.register(name, endpoint)))
        return status_of(self._known(name, installed, None))

    def unregister(self, name: str) -> None:
        """Forget a driver that was registered by command; its mounts stay (CSI-REG-15).

        :raises StorageDriverUnavailableError: none of that name was registered by command.
        """
        check_name(name)
        self.commands.unregister(name)

    def on_change(self, changed: Callable[[str], None]) -> None:
        """Call ``changed(name)`` at each change of a driver; it must not block."""
        with self._lock:
            self._subscribers = (*self._subscribers, changed)

    # --- for mounters and the end -----------------------------------------------------------------------------

    def node_client(self, name: str, timeout: float = 0) -> NodeClient:
        """The client of the driver's present registration: the same object until it registers again.

        With ``timeout`` 0 an installed driver is begun to be started all the same: the next try finds it. For one that
        somebody else runs it is shorter: whoever mounts tries again, and tells meanwhile what is missing (BR-27).

        :raises StorageDriverUnavailableError: there is none within ``timeout`` seconds.
        """
        instance = self.store.get(name) or self._find(name, timeout, others=min(timeout, _OTHERS_SECONDS))
        return self._session(instance).node

    def close(self) -> None:
        """End what nobody else needs, leave the rest to the next host. Called by the plugin's ``shutdown``."""
        with self._lock:
            self._stop.set()
            supervised = list(self._supervised.values())
            self._subscribers = ()
        for driver in supervised:
            driver.ask_to_end()
        self._health.close()
        if self._registry is not None:
            self._registry.close()
        self._rounds.close()
        for driver in supervised:
            driver.wait_for_end()
        self.store.close()

    # --- looking up -------------------------------------------------------------------------------------------

    def _find(self, name: str, timeout: float, *, others: float | None = None) -> DriverInstance:
        """The driver's registration within ``timeout`` seconds, within ``others`` where this host does not start it."""
        deadline = time.monotonic() + (timeout if others is None else others)
        instance = self.store.get(name)
        if instance is not None:
            return instance
        action = f"looking up the CSI driver {name}"
        try:
            self._node()
            check_name(name)
        except (StorageDriverError, NotAvailableOnHostError) as error:
            raise StorageDriverUnavailableError(error.reason, driver=name, action=action, hint=error.hint) from error
        if self._stop.is_set():
            raise StorageDriverUnavailableError("the host is about to end", driver=name, action=action)
        if name in self._installed_now() or name in self._supervised or _runs(self._places(name)):
            self._begin(name).need(timeout)
            instance = self.store.get(name)
            if instance is None:  # it ended in this very moment
                raise StorageDriverUnavailableError("it has just ended", driver=name, action=action)
            return instance
        if self.commands.endpoint(name):
            return self.commands.meet_again(name, deadline, self._stop)
        return self.registry.wait_for(name, deadline)

    def _session(self, instance: DriverInstance) -> GrpcStorageDriver:
        session = self._sessions.get(instance.name)
        if session is None or session.instance is not instance:
            from volumehost_csi.drivers.storage_driver import GrpcStorageDriver

            with self._lock:
                session = self._sessions.get(instance.name)
                if session is None or session.instance is not instance:
                    session = GrpcStorageDriver(instance, self._metrics, self._settings)
                    self._sessions[instance.name] = session
        return session

    def _begin(self, name: str) -> SupervisedDriver:
        """From now on this host needs the installed driver; does not wait."""
        from volumehost_csi.drivers.driver_process import SupervisionSettings
        from volumehost_csi.drivers.installed_connection import InstalledConnection
        from volumehost_csi.drivers.supervised import SupervisedDriver

        with self._lock:
            driver = self._supervised.get(name)
            if driver is None:
                if self._stop.is_set():
                    raise StorageDriverUnavailableError("the host is about to end", driver=name)
                places = self._places(name)
                driver = self._supervised[name] = SupervisedDriver(
                    places,
                    lambda: self._installed_now().get(name),
                    InstalledConnection(self.host, places, self.store, self.registry.handler, self._session),
                    node_name=self.host.get_node_name(),
                    settings=self._supervision or SupervisionSettings(start_timeout=self._settings.start_timeout),
                    changed=self._tell,
                )
        driver.begin()
        return driver

    def _follow_commands(self) -> None:
        """Meet the drivers that were registered by command, and let go of those that were forgotten: the commands may
        have run in another process.
        """
        instances = [each for each in self.store if each.origin is DriverOrigin.COMMAND]
        busy = self.commands.busy  # in this order: what is in the store and not busy is written down
        registered = {name: self.commands.endpoint(name) for name in self.commands.names()}
        for instance in instances:
            if instance.name not in busy and registered.get(instance.name) != instance.endpoint:
                self.registry.handler.deregister(instance.name, instance.endpoint, identity=instance.identity)
        for name in registered:
            if self.store.get(name) is None and name not in self._meeting:
                self._meeting.add(name)
                threading.Thread(target=self._meet, args=(name,), name=f"csi driver {name}", daemon=True).start()

    def _meet(self, name: str) -> None:
        """In the background: register it as soon as it answers; look again at the next round."""
        try:
            self.commands.meet_again(name, time.monotonic() + _ROUND_SECONDS, self._stop)
        except StorageDriverError as error:
            logger.info("a CSI driver that was registered by command is not met: driver=%s reason=%s", name, error)
        finally:
            self._meeting.discard(name)

    # --- what is known ----------------------------------------------------------------------------------------

    def _node(self) -> KubeletVolumeHost:
        host = self.host
        if not isinstance(host, KubeletVolumeHost):
            raise NotAvailableOnHostError(
                "the host is not that of a node",
                action="using CSI drivers",
                hint="drivers run where volumes are mounted",
            )
        return host

    def _places(self, name: str) -> DriverPlaces:
        return DriverPlaces.of(self.host, self._node().get_drivers_dir(), name)

    def _installed_now(self) -> Mapping[str, InstalledDriver]:
        """What is installed; read anew only when that changed."""
        entry_points = self._node().get_installed_entry_points(GROUP)
        with self._installed_lock:
            if entry_points != self._entry_points:
                self._installed, self._entry_points = installed_drivers(entry_points), entry_points
            return self._installed

    def _recorded(self) -> list[str]:
        """Names of the drivers that have a directory."""
        try:
            names = os.listdir(self._node().get_drivers_dir())
        except OSError:
            return []
        return sorted(filter(_is_name, names))

    def _known(self, name: str, installed: InstalledDriver | None, socket: SocketStatus | None) -> Known:
        instance, session = self.store.get(name), self._sessions.get(name)
        return Known(
            self._places(name),
            installed=installed,
            supervised=self._supervised.get(name),
            instance=instance,
            capabilities=session.known_capabilities if session is not None else None,
            vendor_version=session.vendor_version if session is not None else "",
            health=self._health.of(instance),
            endpoint=self.commands.endpoint(name),
            socket=socket,
            stale_labels=self._registry.stale_labels(name) if self._registry is not None else (),
        )

    def _remember(self, session: GrpcStorageDriver) -> None:
        from volumehost_csi.drivers.installed_connection import remember
        from volumehost_csi.drivers.locks import locked

        places = self._places(session.name)
        with locked(places.start_lock, _RECORD_SECONDS) as mine:
            if mine:
                remember(places, session)

    def _tell(self, name: str) -> None:
        session = self._sessions.get(name)
        if session is not None and session.instance not in self.store.instances(name):
            self._sessions.pop(name, None)
        for changed in self._subscribers:
            try:
                changed(name)
            except Exception:
                logger.exception("a subscriber failed on the change of the CSI driver %s", name)


def _runs(places: DriverPlaces) -> bool:
    record = read_process(places)
    return record is not None and record.alive


def _is_name(name: str) -> bool:
    try:
        check_name(name)
    except StorageDriverError:
        return False
    return True
