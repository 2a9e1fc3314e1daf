"""Growing one volume, whoever does it: a storage driver's controller service, its node service alone, or a plugin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from volumehost.control.attaching.attach_source import csi_source
from volumehost.control.machinery.counting import csi_label
from volumehost.control.messages import without_secrets
from volumehost.control.provisioning.capabilities import attached_capability
from volumehost.control.secrets import read_secret
from volumehost.errors import (
    PluginCallError,
    StorageDriverError,
    StorageDriverUnsupportedError,
    VolumeHostError,
)
from volumehost.loader.guard import describe, shown
from volumehost.spec import BLOCK_MODE, Spec

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolume
    from volumehost.control.machinery.gate import Gate
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.storage_driver import StorageDriver

EXPAND = "EXPAND_VOLUME"


@dataclass(frozen=True, slots=True)
class Grown:
    """The size in bytes that the volume has, and whether a node has to do something about it."""

    size: int
    needs_node: bool


class Grower(Protocol):
    """Grows volumes of one kind."""

    #: Only nodes do anything: there is no call of the control plane.
    by_node_alone: bool
    #: A volume that a node uses cannot be grown.
    offline_only: bool
    #: What is called, for those who wait.
    call: str
    #: Who does it, by the name for metrics (UTIL-14).
    plugin: str

    def grow(self, volume: PersistentVolume, size: int, former: int) -> Grown:
        """Grow it to at least ``size`` bytes; success when it has that size already."""
        ...


class DriverGrower:
    """Through a storage driver."""

    def __init__(self, api: ApiClient, driver: StorageDriver) -> None:
        self._api = api
        self._driver = driver
        capabilities = driver.capabilities()
        controls = capabilities.controls(EXPAND)
        self.by_node_alone = not controls and EXPAND in capabilities.node
        self.offline_only = "OFFLINE" in capabilities.expansion and "ONLINE" not in capabilities.expansion
        self.call = "" if self.by_node_alone else "ControllerExpandVolume"
        self.plugin = csi_label(driver.name)
        self._possible = controls or self.by_node_alone

    def grow(self, volume: PersistentVolume, size: int, former: int) -> Grown:  # noqa: ARG002 - the protocol's
        """See Grower.

        :raises StorageDriverUnsupportedError: neither service of the driver expands.
        """
        driver = self._driver
        if not self._possible:
            raise StorageDriverUnsupportedError(
                f"driver {driver.name} cannot expand volumes",
                driver=driver.name,
                action=f"expanding volume {volume.metadata.name}",
                hint="take the request back; a larger volume has to be made anew, and its data copied",
            )
        if self.by_node_alone:
            return Grown(size, needs_node=True)
        source = csi_source(volume, driver.name)
        secrets = read_secret(self._api, source.controller_expand_secret_ref)
        capability = attached_capability(volume, driver.capabilities())
        with without_secrets(secrets):
            expanded = driver.expand_volume(source.volume_handle, size, capability, secrets)
        if expanded.capacity_bytes < size:
            raise StorageDriverError(
                f"it answered that the volume has {expanded.capacity_bytes} bytes now, when {size} were asked for",
                driver=driver.name,
                call="ControllerExpandVolume",
                action=f"expanding volume {source.volume_handle}",
                hint="the driver must grow the volume or fail",
            )
        return Grown(expanded.capacity_bytes, expanded.node_expansion_required)


class PluginGrower:
    """Through a volume plugin."""

    by_node_alone = False
    offline_only = False
    call = "expand_volume_device"

    def __init__(self, plugin: LoadedPlugin, gate: Gate) -> None:
        self._plugin = plugin
        self._gate = gate
        self.plugin = plugin.name

    def grow(self, volume: PersistentVolume, size: int, former: int) -> Grown:
        """See Grower. A raw block volume has no filesystem that had to grow (EXPC-04).

        :raises PluginCallError: the plugin raised what says nothing, or answered no size or a smaller one.
        """
        spec, name = Spec.from_persistent_volume(volume, read_only=False), self._plugin.name
        action = f"expanding volume {volume.metadata.name}"
        try:
            with self._gate.entered(name):
                grown: object = self._plugin.expand_volume_device(spec, size, former)
        except VolumeHostError:
            raise
        except Exception as error:
            raise PluginCallError(describe(error), plugin=name, action=action) from error
        if not isinstance(grown, int) or grown < size:
            reason = f"it answered {shown(grown)}, when {size} bytes were asked for"
            raise PluginCallError(reason, plugin=name, action=action)
        return Grown(grown, needs_node=self._plugin.requires_fs_resize() and spec.volume_mode() != BLOCK_MODE)
