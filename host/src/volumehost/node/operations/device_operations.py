"""Taking a device off the node when no pod uses it any more: UNMDEV-01 to -07, and what UNMAPDEV shares with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import FailedPreconditionError, SpecError, VolumeHostError
from volumehost.hookspecs import DeviceMountableVolumePlugin
from volumehost.node.execution.pending import OperationKey
from volumehost.node.journal.format import MOUNTED, UNCERTAIN, UNMOUNTED, UNMOUNTING
from volumehost.node.operations.common import NO_FAILURE, Failure, OperationFailedError, Services, Steps, plugin_user
from volumehost.node.operations.own_places import check_place_of_device
from volumehost.node.state.states import Attachability, DeviceState
from volumehost.spec import BLOCK_MODE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.node.journal.records import Fields
    from volumehost.node.state.records import AttachedVolume

#: References of the device mount below here are global mounts themselves, not a pod's use of them (UTIL-19).
_PLUGINS_PART = "/plugins/kubernetes.io/"


class DeviceTeardown:
    """What unmounting and unmapping a device have in common; excludes everything else on the volume."""

    name: str
    pod_uid = ""
    requested_at: float | None = None

    def __init__(self, services: Services, volume: AttachedVolume) -> None:
        self._services = services
        self._volume = volume
        self.key = OperationKey(volume.name)
        self.plugin_name, self.spec = volume.plugin_name, volume.spec

    def intent(self) -> Sequence[Fields]:
        """Once the unmount was sent, the device is not mounted until a new mount succeeds (BR-32)."""
        return ({"v": self._volume.name, "dev": UNMOUNTING, "at": round(self._services.wall_clock(), 3)},)

    def failed(self, failure: Failure) -> None:
        """No event (UNMDEV-06); status and log tell."""
        volume = self._services.actual.get_volume(self._volume.name)
        state = volume.device_state if volume is not None else DeviceState.UNCERTAIN
        word = MOUNTED if state is DeviceState.MOUNTED else UNCERTAIN
        self._services.note({"v": self._volume.name, "dev": word, **failure.fields()})

    def _find(self, interface: type, prefix: str) -> LoadedPlugin:
        name = self._volume.plugin_name
        try:
            plugin = self._services.plugins.find_plugin_by_name(name)
        except VolumeHostError as error:
            raise self._failure(prefix, error) from error
        if not plugin.supports(interface):
            missing = SpecError(f"{name} does not implement {interface.__name__}", subject=name)
            raise self._failure(prefix, missing)
        return plugin

    def _check_place(self, path: str) -> None:
        try:
            check_place_of_device(self._services.host.layout, path)
        except (OSError, VolumeHostError) as error:
            raise self._failure(f"{self._words} failed", error) from error

    def _finish(self, steps: Steps, plugin: LoadedPlugin) -> None:
        """Check that nobody holds the device open (UNMDEV-05), then forget its mount."""
        volume, services = self._volume, self._services
        steps.enter("check-opened")
        self._check_opened()
        steps.enter("mark-unmounted")
        services.actual.set_device(volume.name, DeviceState.NOT_MOUNTED)
        services.note({"v": volume.name, "dev": UNMOUNTED, "dmpath": "", **NO_FAILURE})
        if volume.attachability is not Attachability.TRUE:
            plugin.release(plugin_user(volume.name, ""))

    def _check_opened(self) -> None:
        device = self._volume.device_path
        host_util = self._services.host.get_host_util()
        try:
            opened = bool(device) and host_util.path_is_device(device) and host_util.device_opened(device)
        except FileNotFoundError:
            opened = False
        except (OSError, VolumeHostError) as error:
            if "does not exist" not in str(error):
                raise self._failure(f"{self._words}.DeviceOpened failed", error) from error
            opened = False
        if opened:
            busy = FailedPreconditionError("the device is in use when it was no longer expected to be in use")
            raise self._failure(f"{self._words} failed", busy)

    @property
    def _words(self) -> str:
        return "UnmapDevice" if self._volume.mode == BLOCK_MODE else "UnmountDevice"

    def _failure(self, prefix: str, cause: BaseException) -> OperationFailedError:
        volume, spec = self._volume, self._volume.spec
        name = spec.name() if spec is not None else "nil"
        details = f'(UniqueName: "{volume.name}") on node "{self._services.host.get_node_name()}"'
        return OperationFailedError(prefix, name, details, cause)


class UnmountDeviceOperation(DeviceTeardown):
    """One run of "unmount this device"."""

    name = "unmount_device"

    def run(self, steps: Steps) -> None:
        """Check that nobody uses it, unmount, check that nobody holds it open, forget the mount."""
        volume, services = self._volume, self._services
        steps.enter("plugin")
        plugin = self._find(DeviceMountableVolumePlugin, "UnmountDevice.FindDeviceMountablePluginByName failed")
        path = self._mount_path(plugin)
        self._check_place(path)
        steps.enter("check-references")
        self._check_references(plugin, path)
        steps.make_intent_durable(required=False)
        steps.enter("unmount-device")
        services.actual.mark_device_unmounting(volume.name, path)
        try:
            plugin.new_device_unmounter().unmount_device(path)
        except BaseException as error:
            raise self._failure("UnmountDevice failed", error) from error
        self._finish(steps, plugin)

    def _mount_path(self, plugin: LoadedPlugin) -> str:
        """The plugin's answer; the recorded path where the plugin no longer can tell (UNMDEV-02)."""
        volume, spec = self._volume, self._volume.spec
        if spec is None and volume.device_mount_path:
            return volume.device_mount_path
        try:
            if spec is None:
                raise SpecError("neither spec nor device mount path are known", subject=volume.name)
            return plugin.new_device_mounter().get_device_mount_path(spec)
        except BaseException as error:
            gone = isinstance(error, FileNotFoundError) or "does not exist" in str(error)
            if gone and volume.device_mount_path:
                return volume.device_mount_path
            raise self._failure("GetDeviceMountPath failed", error) from error

    def _check_references(self, plugin: LoadedPlugin, path: str) -> None:
        try:
            references = plugin.get_device_mount_refs(path)
        except BaseException as error:
            raise self._failure("GetDeviceMountRefs check failed", error) from error
        elsewhere = mounts_elsewhere(path, list(references))
        if elsewhere:
            busy = FailedPreconditionError(
                f'the device mount path "{path}" is still mounted by other references {elsewhere}', subject=path
            )
            raise self._failure("GetDeviceMountRefs check failed", busy)


def mounts_elsewhere(path: str, references: list[str]) -> list[str]:
    """References that are not global mounts of the same volume: in practice those below a pod (UTIL-19)."""
    start = path.find(_PLUGINS_PART)
    part = path[start:] if start >= 0 else path
    return [reference for reference in references if part not in reference]
