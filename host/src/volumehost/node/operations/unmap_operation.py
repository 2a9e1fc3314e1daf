"""Taking a raw block volume away from a pod, and from the node with its last pod: UNMAP-01, UNMAPDEV-01 to -03."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeGuard

from volumehost.errors import CapabilityMissingError, FailedPreconditionError, SpecError
from volumehost.hookspecs import BlockVolumePlugin
from volumehost.mount.block_path import BlockPathHandler
from volumehost.node.operations.device_operations import DeviceTeardown
from volumehost.node.operations.own_places import check_place_in_pod
from volumehost.node.operations.unmount_operation import PodTeardown

if TYPE_CHECKING:
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.node.operations.common import Steps
    from volumehost.volumes import BlockVolumeUnmapper, CustomBlockVolumeUnmapper


class UnmapOperation(PodTeardown):
    """One run of "take this block volume from this pod"."""

    name = "unmap_volume"

    def run(self, steps: Steps) -> None:
        """Unlock, unlink and unbind, unpublish, forget."""
        mount, services = self._mount, self._services
        plugin = self._begin(steps, "UnmapVolume")
        unmapper = self._attempt(
            "UnmapVolume.NewUnmapper failed", lambda: _unmapper(plugin, mount.inner_name, mount.pod_uid)
        )
        global_path = self._attempt("UnmapVolume.GetGlobalMapPath failed", lambda: self._global_path(unmapper))
        self._attempt("UnmapVolume.UnmapBlockVolume failed", self._check_place)
        steps.make_intent_durable(required=False)
        steps.enter("unmap")
        services.actual.mark_uncertain(mount.volume, mount.pod_uid)
        handler = BlockPathHandler(services.host.get_mounter())
        directory, link = unmapper.get_pod_device_map_path()
        self._attempt(
            "UnmapVolume.UnmapBlockVolume failed",
            lambda: handler.unmap_block_volume(global_path, directory, link, mount.pod_uid),
        )
        if _is_custom(unmapper):
            steps.enter("unmap-pod-device")
            self._attempt("UnmapVolume.UnmapPodDevice failed", unmapper.unmap_pod_device)
        self._finish(steps, plugin)

    def _check_place(self) -> None:
        mount, layout = self._mount, self._services.host.layout
        check_place_in_pod(layout, mount.pod_uid, mount.plugin_name, mount.inner_name, block=True)

    def _global_path(self, unmapper: BlockVolumeUnmapper) -> str:
        """Told by the plugin, or else as it was recorded when the device was set up."""
        volume = self._services.actual.get_volume(self._mount.volume)
        spec = self._mount.spec or (volume.spec if volume is not None else None)
        if spec is not None:
            return unmapper.get_global_map_path(spec)
        if volume is not None and volume.device_mount_path:
            return volume.device_mount_path
        raise SpecError("neither spec nor global map path are known", subject=self._mount.volume)


class UnmapDeviceOperation(DeviceTeardown):
    """One run of "take this block device from the node"."""

    name = "unmap_device"

    def run(self, steps: Steps) -> None:
        """Check that no pod has it, tear it down, remove the map path, check that nobody holds it open."""
        volume = self._volume
        steps.enter("plugin")
        plugin = self._find(BlockVolumePlugin, "UnmapDevice.FindMapperPluginByName failed")
        path = volume.device_mount_path
        spec = volume.spec
        name = spec.name() if spec is not None else os.path.basename(os.path.dirname(path))
        self._check_place(path)
        steps.enter("check-references")
        handler = BlockPathHandler(self._services.host.get_mounter())
        self._check_unused(handler, path)
        steps.make_intent_durable(required=False)
        steps.enter("tear-down-device")
        self._services.actual.mark_device_unmounting(volume.name, path)
        try:
            unmapper = _unmapper(plugin, name, "")
            if _is_custom(unmapper):
                unmapper.tear_down_device(path, volume.device_path)
            if path:
                handler.remove_map_path(path)
        except BaseException as error:
            raise self._failure("UnmapDevice.TearDownDevice failed", error) from error
        self._finish(steps, plugin)

    def _check_unused(self, handler: BlockPathHandler, path: str) -> None:
        """UNMAPDEV-01."""
        names = _names(path)
        references = [f"{path}/{name}" for name in names if handler.is_device_bind_mount_exist(f"{path}/{name}")]
        if references:
            busy = FailedPreconditionError(
                f'the device "{path}" is still referenced from other Pods {references}', subject=path
            )
            raise self._failure("UnmapDevice failed", busy)


def _unmapper(plugin: LoadedPlugin, volume_name: str, pod_uid: str) -> BlockVolumeUnmapper:
    if not plugin.supports(BlockVolumePlugin):
        raise CapabilityMissingError(f"the volume plugin {plugin.name} has no raw block volumes", subject=plugin.name)
    return plugin.new_block_volume_unmapper(volume_name, pod_uid)


def _is_custom(unmapper: BlockVolumeUnmapper) -> TypeGuard[CustomBlockVolumeUnmapper]:
    return hasattr(unmapper, "tear_down_device")


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory)) if directory else []
    except FileNotFoundError:
        return []
