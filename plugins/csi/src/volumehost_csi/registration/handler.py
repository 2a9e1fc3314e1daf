"""Registering CSI drivers: checks, the node's information, the store; one path for every origin (CSI-REG-01 to -18).

The plugin manager calls this for drivers that put a socket into the registration directory; drivers that are
registered by command or supervised by this host come here too, with an explicit endpoint.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Protocol

from volumehost.errors import StorageDriverError, StorageDriverUnavailableError, StorageDriverUnsupportedError
from volumehost.storage_driver import DriverOrigin
from volumehost_csi.client import DEFAULT_TIMEOUT, NodeClient, NodeInfo
from volumehost_csi.failures import rpc_failure, status_code
from volumehost_csi.names import shorten
from volumehost_csi.registration.checks import DriverNameTakenError, check_endpoint, check_name, check_versions
from volumehost_csi.registration.keyed_lock import KeyedLock
from volumehost_csi.registration.store import DriverInstance, DriverStore
from volumehost_csi.registration.versions import Version

if TYPE_CHECKING:
    from volumehost_csi.metrics import CSIMetrics

logger = logging.getLogger(__name__)

#: Bytes of a node id that CSI and the API allow (CSI-NIM-21).
LONGEST_NODE_ID = 256

#: The service of a driver that this host starts or is told of has no registrar that could tell its versions.
DEFAULT_VERSIONS = ("1.0.0",)


class NodePublisher(Protocol):
    """Tells the cluster which drivers this node has; ``node_info.NodeInfoManager`` is the real one."""

    def install(self, driver: str, info: NodeInfo) -> None:
        """The driver runs here and says this (CSI-NIM-09)."""
        ...

    def update(self, driver: str, info: NodeInfo) -> None:
        """The driver says something else now (CSI-NIM-22)."""
        ...

    def uninstall(self, driver: str) -> None:
        """The driver has left (CSI-NIM-23)."""
        ...


class CSIRegistrationHandler:
    """Puts drivers into the store and takes them out. Safe for threads; names are handled one at a time each.

    A driver is in the store once it has answered and the cluster was told, not before: whoever finds it there can use
    it, and a driver that runs well is not hidden by a newer one that does not (CSI-REG-11 improved).

    :param timeout: seconds for the calls to the driver during one registration (CSI-REG-07).
    """

    def __init__(
        self,
        store: DriverStore,
        node: NodePublisher,
        *,
        metrics: CSIMetrics | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self._store = store
        self._node = node
        self._metrics = metrics
        self._timeout = timeout
        self._names = KeyedLock()
        self._lock = threading.Lock()
        self._under_way: set[DriverInstance] = set()
        self._closed = False

    def validate(
        self,
        name: str,
        endpoint: str,
        versions: Sequence[str],
        *,
        origin: DriverOrigin = DriverOrigin.COMMAND,
        identity: Hashable = None,
        replaces: Hashable = None,
    ) -> Version:
        """The version that the driver would be registered with (CSI-REG-01 to -06); changes nothing.

        :param identity: of this registration, see :meth:`register`.
        :param replaces: identity of an earlier registration that this one takes the place of.
        :raises StorageDriverError: name, endpoint or versions cannot be used.
        :raises DriverNameTakenError: another driver has the name.
        """
        check_name(name)
        version = check_versions(name, versions)
        self._check_free(name, check_endpoint(name, endpoint), version, origin, {identity, replaces})
        return version

    def register(
        self,
        name: str,
        endpoint: str,
        versions: Sequence[str] = DEFAULT_VERSIONS,
        timeout: float | None = None,
        *,
        origin: DriverOrigin = DriverOrigin.COMMAND,
        identity: Hashable = None,
        replaces: Hashable = None,
    ) -> DriverInstance:
        """Register the driver that serves at ``endpoint`` (CSI-REG-07).

        Drivers from a socket must have a node service; those that are registered by command or started by this host
        may be without (CSI-WIRE-06).

        :param timeout: seconds for its answers; the handler's own when not given.
        :param identity: tells this registration from others of the name; one for each origin and name when not given.
            Registering again with the same identity takes the place of the first.
        :param replaces: identity of an earlier registration that this one takes the place of.
        :raises StorageDriverError: it cannot be registered; what was registered before still is.
        """
        identity = identity if identity is not None else (origin, name)
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        with self._names(name):
            version = self.validate(name, endpoint, versions, origin=origin, identity=identity, replaces=replaces)
            instance = DriverInstance(
                name, check_endpoint(name, endpoint), version=version, origin=origin, identity=identity
            )
            self._begin(instance)
            try:
                instance.node_info = self._introduce(instance, deadline)
                if instance.node_info is not None:
                    self._node.install(name, instance.node_info)
                self._store.add(instance, replaces=self._find(name, {identity, replaces}))
            except BaseException:
                instance.close()
                self._put_back(name)
                raise
            finally:
                with self._lock:
                    self._under_way.discard(instance)
        logger.info("the CSI driver %s is registered at %s (%s)", name, instance.endpoint, origin.value)
        return instance

    def deregister(self, name: str, endpoint: str, *, identity: Hashable = None) -> bool:
        """Take out the registration with this identity, or without one those at this endpoint; mounts stay
        (CSI-REG-12 to -15). Never raises; returns whether there was one.

        An older instance of the name, if there is one, is in use again (CSI-STORE-07).
        """
        with self._names(name):
            found = [
                each
                for each in self._store.instances(name)
                if (each.endpoint == endpoint if identity is None else each.identity == identity)
            ]
            for instance in found:
                self._store.remove(instance)
                logger.info("the CSI driver %s is no longer registered at %s", name, instance.endpoint)
            if any(instance.node_info is not None for instance in found):
                self._put_back(name)
        return bool(found)

    def refresh(self, name: str) -> NodeInfo:
        """Ask a driver again about this node and publish what changed (CSI-REG-16). It stays registered if that fails.

        :raises StorageDriverUnavailableError: it is not registered.
        :raises StorageDriverError: it does not answer, or with nonsense.
        :raises ApiError: the answer could not be published.
        """
        instance = self._store.get(name)
        if instance is None or instance.node_info is None:
            raise StorageDriverUnavailableError(
                "it is not registered" if instance is None else "it has no node service",
                driver=name,
                action=f"asking the CSI driver {name} about this node",
            )
        # Without the lock: one that hangs must not keep another from taking its place.
        info = self._ask_node_info(instance, time.monotonic() + self._timeout)
        with self._names(name):
            if self._store.get(name) is instance:
                self._node.update(name, info)
                self._store.set_node_info(instance, info)
        return info

    def close(self) -> None:
        """Register nothing more; calls to drivers that are under way end at once."""
        with self._lock:
            self._closed = True
            under_way = list(self._under_way)
        for instance in under_way:
            instance.close()

    # --- checks ---------------------------------------------------------------------------------------------

    def _check_free(self, name: str, path: str, version: Version, origin: DriverOrigin, own: set[Hashable]) -> None:
        others = [each for each in self._store.instances(name) if each.identity not in own]
        if not others:
            return
        other = others[-1]
        if other.endpoint == path and other.origin is not origin:
            return  # The same driver, known in two ways: started here, and it has a registration socket too.
        if not version.newer_than(other.version):
            raise DriverNameTakenError(
                f"a driver of that name is registered already, at {other.endpoint} with version {other.version}, and "
                f"this one's version {version} is not higher",
                driver=name,
                action=f"registering the CSI driver {shorten(name)}",
                hint="it is registered by itself when the other one has left",
            )

    def _find(self, name: str, identities: set[Hashable]) -> DriverInstance | None:
        return next((each for each in self._store.instances(name) if each.identity in identities), None)

    def _begin(self, instance: DriverInstance) -> None:
        with self._lock:
            if self._closed:
                raise StorageDriverUnavailableError("the host is shutting down", driver=instance.name)
            self._under_way.add(instance)

    # --- what the driver says -------------------------------------------------------------------------------

    def _introduce(self, instance: DriverInstance, deadline: float) -> NodeInfo | None:
        self._check_identity(instance, deadline)
        try:
            return self._ask_node_info(instance, deadline)
        except StorageDriverUnsupportedError:
            if instance.origin is DriverOrigin.SOCKET:
                raise
            return None

    def _check_identity(self, instance: DriverInstance, deadline: float) -> None:
        """The driver itself must know the name that it is registered with (CSI-REG-01 improved)."""
        from volumehost_csi_kit import csi, stubs

        name = instance.name
        action = f"registering the CSI driver {name} at {instance.endpoint}"
        try:
            stub = stubs.IdentityStub(instance.channel())
            reply = stub.GetPluginInfo(csi.GetPluginInfoRequest(), timeout=_left(deadline), wait_for_ready=False)
        except StorageDriverError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a call raises is a failure of the call
            if status_code(error) == "UNIMPLEMENTED":
                return  # It says nothing against the name.
            raise rpc_failure(error, driver=name, call="GetPluginInfo", action=action) from None
        if reply.name != name:
            raise StorageDriverError(
                f"the driver that serves there is named {shorten(reply.name)!r}, not {name!r}",
                driver=name,
                call="GetPluginInfo",
                action=action,
                hint="register it under its own name, or mend the registrar's endpoint",
            )

    def _ask_node_info(self, instance: DriverInstance, deadline: float) -> NodeInfo:
        client = NodeClient(instance.name, instance.channel(), self._metrics)
        info = client.get_info(_left(deadline))
        if len(info.node_id.encode()) > LONGEST_NODE_ID:
            raise StorageDriverError(
                f"its node id has {len(info.node_id.encode())} bytes, {LONGEST_NODE_ID} are allowed",
                driver=instance.name,
                call="NodeGetInfo",
                action=f"registering the CSI driver {instance.name}",
            )
        return info

    def _put_back(self, name: str) -> None:
        """Make the cluster know what is in the store now: an older instance, or none (CSI-REG-08, -10, -11, -14)."""
        instance = self._store.get(name)
        try:
            if instance is None or instance.node_info is None:
                self._node.uninstall(name)
            else:
                self._node.install(name, instance.node_info)
        except Exception:
            logger.exception("the node's entry of the CSI driver %s could not be put right", name)


def _left(deadline: float) -> float:
    return max(0.001, deadline - time.monotonic())
