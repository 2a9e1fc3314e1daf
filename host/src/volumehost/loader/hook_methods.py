"""One typed method per hook, as the rest of the host calls them on a :class:`~volumehost.loader.loaded.LoadedPlugin`.

The methods here are what stands when a plugin does not implement the hook: the stated default of an optional hook,
HookNotImplementedError otherwise. A loaded plugin carries its own implementations in their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from volumehost.api.objects import Pod
    from volumehost.host_services import RecycleEventRecorder
    from volumehost.spec import Spec
    from volumehost.storage_driver import StorageDrivers
    from volumehost.volume_host import VolumeHost
    from volumehost.volumes import (
        Attacher,
        BlockVolumeMapper,
        BlockVolumeUnmapper,
        Deleter,
        Detacher,
        DeviceMounter,
        DeviceUnmounter,
        FoundDeviceMount,
        MetricsCollector,
        Mounter,
        NodeResizeOptions,
        Provisioner,
        ReconstructedVolume,
        SpecTranslator,
        Unmounter,
        VolumeOptions,
    )

# The signatures are those of volumehost.hookspecs, and the meaning is documented there (a test holds them equal).
# ruff: noqa: ARG002, D102


class HookMethods:
    """The hooks of all interfaces, each unimplemented or at its default."""

    def _missing(self, hook: str) -> NoReturn:
        raise NotImplementedError(hook)

    # VolumePlugin

    def init(self, host: VolumeHost | None) -> None:
        return None

    def shutdown(self) -> None:
        return None

    def get_plugin_name(self) -> str:
        self._missing("get_plugin_name")

    def get_volume_name(self, spec: Spec) -> str:
        self._missing("get_volume_name")

    def can_support(self, spec: Spec) -> bool:
        self._missing("can_support")

    def get_volume_sources(self) -> Collection[str] | None:
        return None

    def get_storage_drivers(self) -> StorageDrivers | None:
        return None

    def get_spec_translators(self) -> Mapping[str, SpecTranslator] | None:
        return None

    def get_metrics_collectors(self) -> Sequence[MetricsCollector] | None:
        return None

    def requires_remount(self, spec: Spec) -> bool:
        return False

    def new_mounter(self, spec: Spec, pod: Pod) -> Mounter:
        self._missing("new_mounter")

    def new_unmounter(self, volume_name: str, pod_uid: str) -> Unmounter:
        self._missing("new_unmounter")

    def construct_volume_spec(self, volume_name: str, mount_path: str) -> ReconstructedVolume:
        self._missing("construct_volume_spec")

    def supports_mount_option(self) -> bool:
        return False

    def supports_selinux_context_mount(self, spec: Spec) -> bool:
        return False

    # PersistentVolumePlugin, RecyclableVolumePlugin, DeletableVolumePlugin, ProvisionableVolumePlugin

    def get_access_modes(self) -> Sequence[str]:
        self._missing("get_access_modes")

    def recycle(self, pv_name: str, spec: Spec, event_recorder: RecycleEventRecorder) -> None:
        self._missing("recycle")

    def new_deleter(self, spec: Spec) -> Deleter:
        self._missing("new_deleter")

    def new_provisioner(self, options: VolumeOptions) -> Provisioner:
        self._missing("new_provisioner")

    # DeviceMountableVolumePlugin, AttachableVolumePlugin

    def new_device_mounter(self) -> DeviceMounter:
        self._missing("new_device_mounter")

    def new_device_unmounter(self) -> DeviceUnmounter:
        self._missing("new_device_unmounter")

    def get_device_mount_refs(self, device_mount_path: str) -> Sequence[str]:
        self._missing("get_device_mount_refs")

    def can_device_mount(self, spec: Spec) -> bool:
        self._missing("can_device_mount")

    def find_device_mounts(self, known: Collection[str]) -> Sequence[FoundDeviceMount]:
        return ()

    def new_attacher(self) -> Attacher:
        self._missing("new_attacher")

    def new_detacher(self) -> Detacher:
        self._missing("new_detacher")

    def can_attach(self, spec: Spec) -> bool:
        self._missing("can_attach")

    def verify_exhausted_resource(self, spec: Spec) -> bool:
        self._missing("verify_exhausted_resource")

    # ExpandableVolumePlugin, NodeExpandableVolumePlugin, ResizableEphemeralVolumePlugin

    def requires_fs_resize(self) -> bool:
        self._missing("requires_fs_resize")

    def expand_volume_device(self, spec: Spec, new_size: int, old_size: int) -> int:
        self._missing("expand_volume_device")

    def node_expand(self, resize_options: NodeResizeOptions) -> bool:
        self._missing("node_expand")

    def resize_ephemeral_volume(self, spec: Spec, pod: Pod, new_size: int | None) -> None:
        self._missing("resize_ephemeral_volume")

    # BlockVolumePlugin

    def new_block_volume_mapper(self, spec: Spec, pod: Pod) -> BlockVolumeMapper:
        self._missing("new_block_volume_mapper")

    def new_block_volume_unmapper(self, volume_name: str, pod_uid: str) -> BlockVolumeUnmapper:
        self._missing("new_block_volume_unmapper")

    def construct_block_volume_spec(self, pod_uid: str, volume_name: str, map_path: str) -> Spec:
        self._missing("construct_block_volume_spec")
