"""DriverStore: the CSI drivers that are registered now, by name, each with its channel (CSI-STORE-01 to -07).

The registration handler puts drivers in and takes them out; whoever calls a driver gets it from here at each
operation, so that a driver that has moved is found where it is.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING

from volumehost.errors import StorageDriverUnavailableError

if TYPE_CHECKING:
    import grpc

    from volumehost.storage_driver import DriverOrigin
    from volumehost_csi.client import NodeInfo
    from volumehost_csi.registration.versions import Version

logger = logging.getLogger(__name__)

#: How long the channel of a driver that left is kept for calls that are still on their way, in seconds: no call of a
#: node takes longer (CSI-CLI-05). Closing it at once would break off what an old process is just finishing.
LINGER_SECONDS = 120.0

#: How many such channels are kept at most.
_LINGERING = 8


class DriverInstance:
    """One registration of a driver. A driver that registers again is another instance: caches keyed by it stay true.

    ``identity`` tells this registration from others of the same name: that of its socket, or of the command.
    ``node_info`` is None for a driver without a node service.
    """

    def __init__(
        self,
        name: str,
        endpoint: str,
        *,
        version: Version,
        origin: DriverOrigin,
        identity: Hashable,
        node_info: NodeInfo | None = None,
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self.version = version
        self.origin = origin
        self.identity = identity
        self.node_info = node_info
        self._lock = threading.Lock()
        self._channel: grpc.Channel | None = None
        self._retired = False

    def __repr__(self) -> str:
        return f"<DriverInstance {self.name} at {self.endpoint}>"

    @property
    def node_id(self) -> str:
        """This node as the driver calls it, "" where it has no node service."""
        return self.node_info.node_id if self.node_info is not None else ""

    def channel(self) -> grpc.Channel:
        """The one channel to this driver, opened at the first use; it connects again by itself (CSI-CLI-02).

        Never close it, and keep it no longer than the instance.

        :raises StorageDriverUnavailableError: the driver has left; look it up again by name.
        """
        with self._lock:
            if self._retired:
                raise StorageDriverUnavailableError(
                    f"the driver {self.name} is no longer registered at {self.endpoint}", driver=self.name
                )
            if self._channel is None:
                from volumehost_csi_kit import endpoints

                self._channel = endpoints.dial(self.endpoint)
            return self._channel

    def retire(self) -> grpc.Channel | None:
        """Hand out the channel no more; returns it, if it was ever opened, for the caller to close."""
        with self._lock:
            self._retired = True
            channel, self._channel = self._channel, None
            return channel

    def close(self) -> None:
        """Hand out the channel no more and close it: calls on it end with CANCELLED."""
        channel = self.retire()
        if channel is not None:
            channel.close()


class DriverStore:
    """Name to the instances registered under it, oldest first; the newest is the one in use. Safe for threads.

    Names are compared as they are, case included (CSI-NAME-13).

    :param clock: monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._instances: dict[str, tuple[DriverInstance, ...]] = {}
        self._subscribers: list[Callable[[str], None]] = []
        self._lingering: list[tuple[float, grpc.Channel]] = []

    def get(self, name: str) -> DriverInstance | None:
        """The instance in use, None when no driver of that name is registered."""
        instances = self._instances.get(name)
        return instances[-1] if instances else None

    def instances(self, name: str) -> tuple[DriverInstance, ...]:
        """Every instance of that name, oldest first; empty when there is none."""
        return self._instances.get(name, ())

    def names(self) -> list[str]:
        """Names of all registered drivers, sorted."""
        with self._lock:
            return sorted(self._instances)

    def __iter__(self) -> Iterator[DriverInstance]:
        """The instances in use, by name."""
        with self._lock:
            newest = [instances[-1] for _, instances in sorted(self._instances.items())]
        return iter(newest)

    def add(self, instance: DriverInstance, *, replaces: DriverInstance | None = None) -> None:
        """Put an instance in use, and take out the one that it replaces in the same step (CSI-STORE-02, -04)."""
        with self._lock:
            kept = [one for one in self.instances(instance.name) if one is not replaces and one is not instance]
            self._instances[instance.name] = (*kept, instance)
            if replaces is not None and replaces.name == instance.name:
                self._let_go(replaces)
        self._tell(instance.name)

    def remove(self, instance: DriverInstance) -> DriverInstance | None:
        """Take an instance out; returns the one that is in use now, None when there is none left (CSI-STORE-07).

        It is fine when it is not there.
        """
        with self._lock:
            present = self.instances(instance.name)
            kept = tuple(one for one in present if one is not instance)
            if kept:
                self._instances[instance.name] = kept
            else:
                self._instances.pop(instance.name, None)
            self._let_go(instance)
        if len(kept) != len(present):
            self._tell(instance.name)
        return kept[-1] if kept else None

    def set_node_info(self, instance: DriverInstance, node_info: NodeInfo) -> None:
        """Keep what the driver says of this node now (CSI-REG-16)."""
        changed = instance.node_info != node_info
        instance.node_info = node_info
        if changed and self.get(instance.name) is instance:
            self._tell(instance.name)

    def subscribe(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call ``callback(name)`` after each change of that name, in the thread of the change; it must not block.

        Returns a function that ends the subscription.
        """
        with self._lock:
            self._subscribers = [*self._subscribers, callback]

        def unsubscribe() -> None:
            with self._lock:
                self._subscribers = [one for one in self._subscribers if one is not callback]

        return unsubscribe

    def close(self) -> None:
        """Forget every driver and close every channel; nobody is told."""
        with self._lock:
            instances = [one for several in self._instances.values() for one in several]
            self._instances.clear()
            self._subscribers = []
            lingering, self._lingering = self._lingering, []
        for instance in instances:
            instance.close()
        for _, channel in lingering:
            channel.close()

    def _let_go(self, instance: DriverInstance) -> None:
        """Keep its channel for the calls that are on their way, and close those that have been kept long enough."""
        now = self._clock()
        channel = instance.retire()
        if channel is not None:
            self._lingering.append((now + LINGER_SECONDS, channel))
        while self._lingering and (len(self._lingering) > _LINGERING or self._lingering[0][0] <= now):
            self._lingering.pop(0)[1].close()

    def _tell(self, name: str) -> None:
        for callback in self._subscribers:
            try:
                callback(name)
            except Exception:
                logger.exception("a subscriber failed on the change of driver %s", name)
