"""The steps of one registration by themselves; the rest is tested through the manager."""

from __future__ import annotations

from volumehost_csi.registration.caches import DesiredSocket, PathCache, RegisteredPlugin
from volumehost_csi.registration.operations import Operations
from volumehost_csi.registration.scan import Marks


def test_without_a_handler_a_deregistration_is_told_and_the_plugin_is_forgotten(caplog) -> None:
    """CSI-RAPI-14."""
    socket = DesiredSocket("/r/a.sock", Marks(1, 2, 3), 1)
    plugin = RegisteredPlugin(socket.path, socket, "DevicePlugin", "a.example.com", "/run/a.sock")
    registered: PathCache[RegisteredPlugin] = PathCache()
    registered.add(plugin)
    Operations(registered, {}.get).deregister(plugin)
    assert registered.get(socket.path) is None
    assert "no handler any more for plugins of type DevicePlugin: a.example.com stays" in caplog.text
