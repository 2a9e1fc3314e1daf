"""What a driver can do: asked once for each registration (CSI-CLI-06 improved)."""

from __future__ import annotations

import threading
from typing import Any

from volumehost.errors import StorageDriverUnsupportedError
from volumehost.storage_driver import DriverCapabilities
from volumehost_csi.client import NodeClient
from volumehost_csi.drivers.calls import Call, Caller
from volumehost_csi.drivers.messages import enum_names


class CapabilityCache:
    """The capabilities of one registration. Safe for threads; a failed question is asked again."""

    def __init__(self, caller: Caller, node: NodeClient) -> None:
        self._caller = caller
        self._node = node
        self._lock = threading.Lock()
        self._known: DriverCapabilities | None = None
        self._version = ""

    @property
    def known(self) -> DriverCapabilities | None:
        """What was asked already."""
        return self._known

    @property
    def vendor_version(self) -> str:
        """The version that the driver tells of itself, "" before it was asked."""
        return self._version

    def get(self) -> DriverCapabilities:
        """Ask, if nobody did.

        :raises StorageDriverError: the driver does not tell.
        """
        known = self._known
        if known is None:
            with self._lock:
                known = self._known
                if known is None:
                    known = self._known = self._ask()
        return known

    def _ask(self) -> DriverCapabilities:
        from volumehost_csi_kit import csi, stubs

        caller, proto = self._caller, csi
        action = f"asking the CSI driver {caller.driver} what it can do"
        identity = stubs.IdentityStub(caller.instance.channel())
        info = caller(Call("GetPluginInfo", action), "Identity", identity.GetPluginInfo, proto.GetPluginInfoRequest())
        self._version = str(info.vendor_version)
        reply = caller(
            Call("GetPluginCapabilities", action),
            "Identity",
            identity.GetPluginCapabilities,
            proto.GetPluginCapabilitiesRequest(),
        )
        kinds: Any = proto.PluginCapability
        plugin = enum_names(
            (each.service.type for each in reply.capabilities if each.HasField("service")), kinds.Service.Type
        )
        expansion = enum_names(
            (each.volume_expansion.type for each in reply.capabilities if each.HasField("volume_expansion")),
            kinds.VolumeExpansion.Type,
        )
        return DriverCapabilities(
            plugin=plugin - {"UNKNOWN"},
            expansion=expansion - {"UNKNOWN"},
            controller=self._ask_controller(action) if "CONTROLLER_SERVICE" in plugin else frozenset(),
            node=self._ask_node(),
        )

    def _ask_controller(self, action: str) -> frozenset[str]:
        from volumehost_csi_kit import csi, stubs

        stub = stubs.ControllerStub(self._caller.instance.channel())
        call = Call("ControllerGetCapabilities", action, capability="CONTROLLER_SERVICE")
        request = csi.ControllerGetCapabilitiesRequest()
        reply = self._caller(call, "Controller", stub.ControllerGetCapabilities, request)
        types: Any = csi.ControllerServiceCapability.RPC.Type
        return enum_names((each.rpc.type for each in reply.capabilities if each.HasField("rpc")), types) - {"UNKNOWN"}

    def _ask_node(self) -> frozenset[str]:
        """Those of the node service; a controller of its own has none."""
        try:
            return self._node.capabilities() - {"UNKNOWN"}
        except StorageDriverUnsupportedError:
            if self._caller.instance.node_info is not None:
                raise
            return frozenset()
