"""The calls that the kit answers for a driver whose objects do not: who it is, what it can do, whether it is ready."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from volumehost_csi_kit import csi


class Described(Protocol):
    """What the answers are made of."""

    name: str
    version: str
    node_id: str
    manifest: dict[str, str]

    @property
    def expansion(self) -> Sequence[str]:
        """``ONLINE``, ``OFFLINE`` or both."""
        ...

    def plugin_capabilities(self) -> list[str]:
        """Services and constraints."""
        ...

    def capabilities(self, service: str) -> Sequence[str]:
        """The capabilities of a service."""
        ...

    def is_ready(self) -> bool:
        """Whether the driver is ready; raises when it is broken."""
        ...


class OwnAnswers:
    """One method for each of these calls, as an author would write it."""

    def __init__(self, driver: Described) -> None:
        self._driver = driver

    def get_plugin_info(self, _request: object, _context: object) -> csi.GetPluginInfoResponse:
        """Name, version and manifest."""
        driver = self._driver
        return csi.GetPluginInfoResponse(name=driver.name, vendor_version=driver.version, manifest=driver.manifest)

    def get_plugin_capabilities(self, _request: object, _context: object) -> csi.GetPluginCapabilitiesResponse:
        """The services that there are, and how volumes are expanded."""
        service, expansion = csi.PluginCapability.Service, csi.PluginCapability.VolumeExpansion
        found = [
            csi.PluginCapability(service=service(type=service.Type.Value(name)))
            for name in self._driver.plugin_capabilities()
        ]
        found += [
            csi.PluginCapability(volume_expansion=expansion(type=expansion.Type.Value(name)))
            for name in self._driver.expansion
        ]
        return csi.GetPluginCapabilitiesResponse(capabilities=found)

    def probe(self, _request: object, _context: object) -> csi.ProbeResponse:
        """Ready, or still starting."""
        return csi.ProbeResponse(ready=csi.BoolValue(value=self._driver.is_ready()))

    def node_get_info(self, _request: object, _context: object) -> csi.NodeGetInfoResponse:
        """The id that the driver was given; the orchestrator decides how many volumes fit."""
        return csi.NodeGetInfoResponse(node_id=self._driver.node_id)

    def node_get_capabilities(self, _request: object, _context: object) -> csi.NodeGetCapabilitiesResponse:
        """What the node service can do."""
        rpc, one = csi.NodeServiceCapability.RPC, csi.NodeServiceCapability
        names = self._driver.capabilities("Node")
        return csi.NodeGetCapabilitiesResponse(capabilities=[one(rpc=rpc(type=rpc.Type.Value(name))) for name in names])

    def controller_get_capabilities(self, _request: object, _context: object) -> csi.ControllerGetCapabilitiesResponse:
        """What the controller can do."""
        rpc, one = csi.ControllerServiceCapability.RPC, csi.ControllerServiceCapability
        names = self._driver.capabilities("Controller")
        return csi.ControllerGetCapabilitiesResponse(
            capabilities=[one(rpc=rpc(type=rpc.Type.Value(name))) for name in names]
        )

    def group_controller_get_capabilities(
        self, _request: object, _context: object
    ) -> csi.GroupControllerGetCapabilitiesResponse:
        """What the group controller can do."""
        rpc, one = csi.GroupControllerServiceCapability.RPC, csi.GroupControllerServiceCapability
        names = self._driver.capabilities("GroupController")
        return csi.GroupControllerGetCapabilitiesResponse(
            capabilities=[one(rpc=rpc(type=rpc.Type.Value(name))) for name in names]
        )
