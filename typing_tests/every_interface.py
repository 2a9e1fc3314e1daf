"""One class that extends nothing and has every hook: it is each of the eleven interfaces for a type checker too.

Read by mypy, never run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from volumehost import (
    AttachableVolumePlugin,
    Attacher,
    BlockVolumeMapper,
    BlockVolumePlugin,
    BlockVolumeUnmapper,
    DeletableVolumePlugin,
    Deleter,
    Detacher,
    DeviceMountableVolumePlugin,
    DeviceMounter,
    DeviceUnmounter,
    ExpandableVolumePlugin,
    FoundDeviceMount,
    MetricsCollector,
    Mounter,
    NodeExpandableVolumePlugin,
    NodeResizeOptions,
    PersistentVolumePlugin,
    ProvisionableVolumePlugin,
    Provisioner,
    ReconstructedVolume,
    RecyclableVolumePlugin,
    RecycleEventRecorder,
    ResizableEphemeralVolumePlugin,
    Spec,
    SpecTranslator,
    StorageDrivers,
    Unmounter,
    VolumeHost,
    VolumeOptions,
    VolumePlugin,
    hookimpl,
)

if TYPE_CHECKING:
    from volumehost.api.objects import Pod


class EveryPlugin:
    """Says no to everything, in the right types."""

    @hookimpl
    def init(self, host: VolumeHost) -> None: ...
    @hookimpl
    def shutdown(self) -> None: ...
    @hookimpl
    def get_plugin_name(self) -> str:
        return "example.com/every"

    @hookimpl
    def get_volume_name(self, spec: Spec) -> str:
        return spec.name()

    @hookimpl
    def can_support(self, spec: Spec) -> bool:
        return False

    @hookimpl
    def get_storage_drivers(self) -> StorageDrivers | None:
        return None

    @hookimpl
    def get_spec_translators(self) -> Mapping[str, SpecTranslator] | None:
        return None

    @hookimpl
    def get_metrics_collectors(self) -> Sequence[MetricsCollector] | None:
        return None

    @hookimpl
    def get_volume_sources(self) -> Collection[str] | None:
        return ()

    @hookimpl
    def requires_remount(self, spec: Spec) -> bool:
        return False

    @hookimpl
    def supports_mount_option(self) -> bool:
        return False

    @hookimpl
    def supports_selinux_context_mount(self, spec: Spec) -> bool:
        return False

    @hookimpl
    def new_mounter(self, spec: Spec, pod: Pod) -> Mounter:
        raise NotImplementedError

    @hookimpl
    def new_unmounter(self, volume_name: str, pod_uid: str) -> Unmounter:
        raise NotImplementedError

    @hookimpl
    def construct_volume_spec(self, volume_name: str, mount_path: str) -> ReconstructedVolume:
        raise NotImplementedError

    @hookimpl
    def get_access_modes(self) -> Sequence[str]:
        return ("ReadWriteOnce",)

    @hookimpl
    def recycle(self, pv_name: str, spec: Spec, event_recorder: RecycleEventRecorder) -> None:
        event_recorder("Normal", f"recycled {pv_name}")

    @hookimpl
    def new_deleter(self, spec: Spec) -> Deleter:
        raise NotImplementedError

    @hookimpl
    def new_provisioner(self, options: VolumeOptions) -> Provisioner:
        raise NotImplementedError

    @hookimpl
    def new_device_mounter(self) -> DeviceMounter:
        raise NotImplementedError

    @hookimpl
    def new_device_unmounter(self) -> DeviceUnmounter:
        raise NotImplementedError

    @hookimpl
    def get_device_mount_refs(self, device_mount_path: str) -> Sequence[str]:
        return ()

    @hookimpl
    def can_device_mount(self, spec: Spec) -> bool:
        return False

    @hookimpl
    def find_device_mounts(self, known: Collection[str]) -> Sequence[FoundDeviceMount]:
        return ()

    @hookimpl
    def new_attacher(self) -> Attacher:
        raise NotImplementedError

    @hookimpl
    def new_detacher(self) -> Detacher:
        raise NotImplementedError

    @hookimpl
    def can_attach(self, spec: Spec) -> bool:
        return False

    @hookimpl
    def verify_exhausted_resource(self, spec: Spec) -> bool:
        return False

    @hookimpl
    def requires_fs_resize(self) -> bool:
        return False

    @hookimpl
    def expand_volume_device(self, spec: Spec, new_size: int, old_size: int) -> int:
        return old_size

    @hookimpl
    def node_expand(self, resize_options: NodeResizeOptions) -> bool:
        return resize_options.new_size > resize_options.old_size

    @hookimpl
    def resize_ephemeral_volume(self, spec: Spec, pod: Pod, new_size: int | None) -> None: ...
    @hookimpl
    def new_block_volume_mapper(self, spec: Spec, pod: Pod) -> BlockVolumeMapper:
        raise NotImplementedError

    @hookimpl
    def new_block_volume_unmapper(self, volume_name: str, pod_uid: str) -> BlockVolumeUnmapper:
        raise NotImplementedError

    @hookimpl
    def construct_block_volume_spec(self, pod_uid: str, volume_name: str, map_path: str) -> Spec:
        raise NotImplementedError


every = EveryPlugin()
base: VolumePlugin = every
persistent: PersistentVolumePlugin = every
recyclable: RecyclableVolumePlugin = every
deletable: DeletableVolumePlugin = every
provisionable: ProvisionableVolumePlugin = every
device_mountable: DeviceMountableVolumePlugin = every
attachable: AttachableVolumePlugin = every
expandable: ExpandableVolumePlugin = every
node_expandable: NodeExpandableVolumePlugin = every
resizable: ResizableEphemeralVolumePlugin = every
block: BlockVolumePlugin = every
