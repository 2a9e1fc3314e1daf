"""Mapping a raw block volume into a pod: MAP-01 to -12, with the error states of OPERR (CSI-BLK-04, -09, -21, -22)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from volumehost.errors import CapabilityMissingError, SpecError, UncertainProgressError, VolumeHostError
from volumehost.hookspecs import BlockVolumePlugin
from volumehost.mount.block_path import BlockPathHandler
from volumehost.node.operations.common import MAP_VOLUME
from volumehost.node.operations.device_mount import begin_device, device_done, device_failed
from volumehost.node.operations.own_places import check_place_of_device
from volumehost.node.operations.set_up_operation import SetUpOperation, is_mount_point
from volumehost.node.state.states import DeviceState, MountState

if TYPE_CHECKING:
    from volumehost.node.operations.common import Steps
    from volumehost.volumes import BlockVolumeMapper, CustomBlockVolumeMapper


class MapOperation(SetUpOperation):
    """One run of "map this volume for this pod"."""

    name = MAP_VOLUME
    prefix = "MapVolume"
    event_reason = "FailedMapVolume"

    def run(self, steps: Steps) -> None:
        """Check, set the device up, map it for the pod, bind, link and lock it, grow it, mark it as mapped."""
        if not self._begin(steps):
            return
        steps.enter("check")
        self._check("SetUpDevice", steps)
        steps.make_intent_durable(required=True)  # making a mapper may write the plugin's own record (CSI-BLK-01)
        mapper = self._attempt("NewBlockVolumeMapper initialization failed", self._new_mapper)
        global_path = self._attempt("GetGlobalMapPath failed", lambda: self._global_path(mapper))
        attached_path = self._wait_for_attach(steps)
        self._set_up_device(steps, mapper, attached_path, global_path)
        mapped_path = self._map_pod_device(steps, mapper, global_path)
        try:
            self._map(steps, mapper, mapped_path or attached_path, global_path)
        except BaseException as error:
            # It is mapped already, so it has to be unmapped one day (CSI-BLK-22).
            self._set_up_failed(UncertainProgressError(str(error)), mapper=mapper)
            self._services.actual.mark_uncertain(self._use.volume, self._use.pod_uid)
            raise self._failure("MapBlockVolume failed", error) from error

    def _new_mapper(self) -> BlockVolumeMapper:
        plugin = self._use.plugin
        if not plugin.supports(BlockVolumePlugin):
            raise CapabilityMissingError(
                f"the volume plugin {plugin.name} has no raw block volumes",
                subject=plugin.name,
                hint="use volumeMode Filesystem",
            )
        return plugin.new_block_volume_mapper(self._use.spec, self._use.pod)

    def _global_path(self, mapper: BlockVolumeMapper) -> str:
        path = mapper.get_global_map_path(self._use.spec)
        check_place_of_device(self._services.host.layout, path)
        return path

    def _set_up_device(self, steps: Steps, mapper: BlockVolumeMapper, device_path: str, global_path: str) -> None:
        """MAP-04, -05: once per device."""
        services, use = self._services, self._use
        volume = services.actual.get_volume(use.volume)
        if volume is not None and volume.device_state is DeviceState.MOUNTED:
            return
        steps.enter("set-up-device")
        begin_device(services, use, device_path, global_path)
        if _is_custom(mapper):
            try:
                mapper.set_up_device()
            except BaseException as error:
                device_failed(services, use, device_path, global_path, error)
                raise self._failure("SetUpDevice failed", error) from error
        steps.enter("mark-device-mounted")
        device_done(services, use, device_path, global_path)

    def _map_pod_device(self, steps: Steps, mapper: BlockVolumeMapper, global_path: str) -> str:
        """MAP-06: the device path that the plugin gives the pod, "" for the attacher's.

        Where nothing is there, whoever serves the volume only counts it as published since before a restart or an
        unmount behind our back: that is undone, and done anew (BR-58).
        """
        if not _is_custom(mapper):
            return ""
        steps.enter("map-pod-device")
        try:
            path = mapper.map_pod_device()
            if self._is_nothing(path):
                self._undo_mapping(steps, mapper, global_path)
                steps.enter("map-pod-device")
                path = mapper.map_pod_device()
        except BaseException as error:
            self._set_up_failed(error, mapper=mapper)
            raise self._failure("MapPodDevice failed", error) from error
        return path

    def _is_nothing(self, path: str) -> bool:
        """Whether it is certain that the path is neither a device nor anything mounted."""
        try:
            is_device = self._services.host.get_host_util().path_is_device(path)
        except FileNotFoundError:
            return bool(path)
        except (OSError, VolumeHostError):
            return False
        return not is_device and is_mount_point(self._services, path) is False

    def _undo_mapping(self, steps: Steps, mapper: BlockVolumeMapper, global_path: str) -> None:
        use = self._use
        steps.enter("undo-lost-mount")
        unmapper = use.plugin.new_block_volume_unmapper(use.inner_name, use.pod_uid)
        directory, link = mapper.get_pod_device_map_path()
        handler = BlockPathHandler(self._services.host.get_mounter())
        handler.unmap_block_volume(global_path, directory, link, use.pod_uid)
        if hasattr(unmapper, "unmap_pod_device"):
            unmapper.unmap_pod_device()

    def _map(self, steps: Steps, mapper: BlockVolumeMapper, device_path: str, global_path: str) -> None:
        """MAP-07 to -11."""
        services, use = self._services, self._use
        if not device_path:
            raise SpecError("device path of the volume is empty", subject=use.inner_name)
        device = services.host.get_host_util().eval_host_symlinks(device_path)
        services.actual.set_device(use.volume, DeviceState.MOUNTED, device_path=device, device_mount_path=global_path)
        steps.enter("map")
        directory, link = mapper.get_pod_device_map_path()
        BlockPathHandler(services.host.get_mounter()).map_block_volume(
            device, global_path, directory, link, use.pod_uid
        )
        if not self._refreshes:
            self._tell(global_path, directory)
        expansion = self._expansion()
        if expansion is not None:
            from volumehost.node.operations.expansion import Places

            steps.enter("expand")
            expansion.during_set_up(Places(device, "", mapper.get_staging_path() if _is_custom(mapper) else ""))
        steps.enter("mark-mounted")
        bind = f"{global_path}/{use.pod_uid}"
        mount = self._record(
            MountState.MOUNTED,
            mapper=mapper,
            path=f"{directory}/{link}",
            is_mount=is_mount_point(services, bind),
            mount_point=bind,
        )
        services.note({"v": use.volume, "dpath": device})
        self._put_mounted(mount, {"mount": bind})

    def _tell(self, global_path: str, directory: str) -> None:
        """MAP-10."""
        recorder, name = self._services.recorder(), self._use.inner_name
        if recorder is not None:
            for which, path in (("globalMapPath", global_path), ("volumeMapPath", directory)):
                message = f'MapVolume.MapPodDevice succeeded for volume "{name}" {which} "{path}"'
                recorder.event(self._use.pod, "Normal", "SuccessfulMountVolume", message)


def _is_custom(mapper: BlockVolumeMapper) -> TypeGuard[CustomBlockVolumeMapper]:
    return hasattr(mapper, "set_up_device")
