"""The steps of registering and deregistering one plugin through its socket (CSI-RAPI-05 to -17)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from volumehost.storage_driver import DriverOrigin
from volumehost_csi.registration.caches import DesiredSocket, PathCache, RegisteredPlugin
from volumehost_csi.registration.protocol import (
    NotificationError,
    PluginInfo,
    RegistrationError,
    RegistrationSocket,
)

logger = logging.getLogger(__name__)

#: The one type that is registered here; ``DevicePlugin`` and ``DRAPlugin`` have nothing to do with volumes.
CSI_PLUGIN = "CSIPlugin"

_ORIGIN = DriverOrigin.SOCKET


class PluginHandler(Protocol):
    """Registers plugins of one type (CSI-RAPI-15). ``identity`` tells one registration from the next of that name."""

    def validate(
        self,
        name: str,
        endpoint: str,
        versions: Sequence[str],
        *,
        origin: DriverOrigin,
        identity: Hashable,
        replaces: Hashable,
    ) -> object:
        """Refuse what cannot be registered, by raising; changes nothing."""
        ...

    def register(
        self,
        name: str,
        endpoint: str,
        versions: Sequence[str],
        timeout: float | None = None,
        *,
        origin: DriverOrigin,
        identity: Hashable,
        replaces: Hashable,
    ) -> object:
        """Register it, in place of the registration ``replaces``; when it raises, it has cleaned up after itself."""
        ...

    def deregister(self, name: str, endpoint: str, *, identity: Hashable) -> object:
        """Undo the registration with this identity; fine when there is none. Does not raise."""
        ...

    def close(self) -> None:
        """Register nothing more, and end what is under way."""
        ...


class Operations:
    """Registers plugins and keeps the cache of registered ones true. One call for each path at a time."""

    def __init__(
        self, registered: PathCache[RegisteredPlugin], handler_of: Callable[[str], PluginHandler | None]
    ) -> None:
        self._registered = registered
        self._handler_of = handler_of
        self._lock = threading.Lock()
        self._open: set[RegistrationSocket] = set()
        self._closed = False

    def register(
        self, socket: DesiredSocket, previous: RegisteredPlugin | None, told: Callable[[PluginInfo], None]
    ) -> None:
        """Register the plugin behind the socket; ``previous`` came from another socket at its path.

        The previous one stays in use until this one can be, and leaves in any case: its socket is gone.

        :param told: is told what the plugin says of itself.
        :raises RegistrationError: it did not come about; says what the plugin was told.
        """
        plugin = RegistrationSocket(socket.path)
        with self._lock:
            if self._closed:
                return
            self._open.add(plugin)
        try:
            with plugin:
                plugin.connect()
                info = plugin.get_info()
                told(info)
                self._register(plugin, info, socket, previous)
        finally:
            with self._lock:
                self._open.discard(plugin)
            if previous is not None:
                self.deregister(previous)

    def deregister(self, plugin: RegisteredPlugin) -> None:
        """Undo a registration; the plugin is not told (CSI-RAPI-14)."""
        if self._registered.get(plugin.path) is plugin:
            self._registered.remove(plugin.path)
        handler = self._handler_of(plugin.type)
        if handler is None:
            logger.error("there is no handler any more for plugins of type %s: %s stays", plugin.type, plugin.name)
            return
        handler.deregister(plugin.name, plugin.endpoint, identity=plugin.socket)

    def close(self) -> None:
        """Begin nothing more, and end what is under way without telling plugins that they were refused."""
        with self._lock:
            self._closed = True
            under_way = list(self._open)
        for plugin in under_way:
            plugin.close()

    def _register(
        self,
        plugin: RegistrationSocket,
        info: PluginInfo,
        socket: DesiredSocket,
        previous: RegisteredPlugin | None,
    ) -> None:
        endpoint = info.endpoint or socket.path  # CSI-RAPI-08
        replaces = previous.socket if previous is not None else None
        entry = RegisteredPlugin(socket.path, socket, info.type, info.name, endpoint)
        try:
            handler = self._handler_for(info, socket)
            handler.validate(info.name, endpoint, info.versions, origin=_ORIGIN, identity=socket, replaces=replaces)
            # Before the registration, so that a socket that leaves meanwhile is deregistered (CSI-RAPI-09).
            self._registered.add(entry)
            handler.register(info.name, endpoint, info.versions, origin=_ORIGIN, identity=socket, replaces=replaces)
        except Exception as error:
            if self._registered.get(socket.path) is entry:
                self._registered.remove(socket.path)
            raise self._refused(plugin, error) from error
        try:
            plugin.notify(registered=True)
        except NotificationError:
            if not self._closed:  # otherwise it is this host that ends, not the plugin (CSI-RAPI-12)
                self._registered.remove(socket.path)
                handler.deregister(info.name, endpoint, identity=socket)
            raise

    def _handler_for(self, info: PluginInfo, socket: DesiredSocket) -> PluginHandler:
        handler = self._handler_of(info.type)
        if handler is None:
            raise RegistrationError(
                f"this host registers plugins of type {CSI_PLUGIN} only, not {info.type[:64]!r}",
                action=f"registering the plugin at {socket.path}",
                subject=socket.path,
            )
        return handler

    def _refused(self, plugin: RegistrationSocket, error: Exception) -> RegistrationError:
        """Tell the plugin why; the error says the same, and apart from it whether it could be told (CSI-RAPI-13)."""
        reason = str(error) or type(error).__name__
        refusal = RegistrationError(reason, subject=plugin.path)
        if self._closed:
            refusal.notification = "the host is shutting down"
            return refusal
        try:
            plugin.notify(registered=False, reason=reason)
        except NotificationError as undelivered:
            refusal.notification = undelivered.reason
        return refusal
