"""volumehost: Kubernetes volumes as a pip-installable Python host.

The names in ``__all__`` are the public contract. They load when they are first used: importing this package costs
next to nothing, and never loads kubernetes, grpc, msgspec or PyYAML.
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # importing typing for it would double the cost of importing this package
if TYPE_CHECKING:
    from typing import Any

    from volumehost import errors
    from volumehost._version import __version__
    from volumehost.hookspecs import (
        AttachableVolumePlugin,
        BlockVolumePlugin,
        DeletableVolumePlugin,
        DeviceMountableVolumePlugin,
        ExpandableVolumePlugin,
        NodeExpandableVolumePlugin,
        PersistentVolumePlugin,
        ProvisionableVolumePlugin,
        RecyclableVolumePlugin,
        ResizableEphemeralVolumePlugin,
        VolumePlugin,
        hookimpl,
    )
    from volumehost.host_services import (
        EventRecorder,
        HostUtils,
        InformerFactory,
        InstalledEntryPoint,
        Lister,
        MountInterface,
        MountPoint,
        RecycleEventRecorder,
        Recycler,
        Subpath,
        Subpather,
    )
    from volumehost.node.manager import VolumeManager
    from volumehost.spec import Spec, VolumeConfig
    from volumehost.storage_driver import (
        Capacity,
        CreatedVolume,
        CreateVolumeRequest,
        DriverCapabilities,
        DriverOrigin,
        DriverSnapshot,
        DriverState,
        DriverStatus,
        ExpandedVolume,
        ListedVolume,
        StorageDriver,
        StorageDrivers,
        VolumeCapability,
    )
    from volumehost.volume_host import (
        AttachDetachVolumeHost,
        CSIDriverVolumeHost,
        KubeletVolumeHost,
        VolumeHost,
    )
    from volumehost.volumes import (
        Attacher,
        Attributes,
        BlockVolume,
        BlockVolumeMapper,
        BlockVolumeUnmapper,
        CustomBlockVolumeMapper,
        CustomBlockVolumeUnmapper,
        DeferredAttacher,
        Deleter,
        Detacher,
        DeviceMounter,
        DeviceMounterArgs,
        DeviceUnmounter,
        FoundDeviceMount,
        MetricsCollector,
        MetricsProvider,
        Mounter,
        MounterArgs,
        NodeResizeOptions,
        Provisioner,
        ReconstructedVolume,
        SpecTranslator,
        Unmounter,
        Volume,
        VolumeMetrics,
        VolumeOptions,
    )

_HOOKSPECS = (
    "AttachableVolumePlugin",
    "BlockVolumePlugin",
    "DeletableVolumePlugin",
    "DeviceMountableVolumePlugin",
    "ExpandableVolumePlugin",
    "NodeExpandableVolumePlugin",
    "PersistentVolumePlugin",
    "ProvisionableVolumePlugin",
    "RecyclableVolumePlugin",
    "ResizableEphemeralVolumePlugin",
    "VolumePlugin",
    "hookimpl",
)
_VOLUMES = (
    "Attacher",
    "Attributes",
    "BlockVolume",
    "BlockVolumeMapper",
    "BlockVolumeUnmapper",
    "CustomBlockVolumeMapper",
    "CustomBlockVolumeUnmapper",
    "DeferredAttacher",
    "Deleter",
    "Detacher",
    "DeviceMounter",
    "DeviceMounterArgs",
    "DeviceUnmounter",
    "FoundDeviceMount",
    "MetricsCollector",
    "MetricsProvider",
    "Mounter",
    "MounterArgs",
    "NodeResizeOptions",
    "Provisioner",
    "ReconstructedVolume",
    "SpecTranslator",
    "Unmounter",
    "Volume",
    "VolumeMetrics",
    "VolumeOptions",
)
_SERVICES = (
    "EventRecorder",
    "HostUtils",
    "InformerFactory",
    "InstalledEntryPoint",
    "Lister",
    "MountInterface",
    "MountPoint",
    "RecycleEventRecorder",
    "Recycler",
    "Subpath",
    "Subpather",
)
_DRIVERS = (
    "Capacity",
    "CreateVolumeRequest",
    "CreatedVolume",
    "DriverCapabilities",
    "DriverOrigin",
    "DriverSnapshot",
    "DriverState",
    "DriverStatus",
    "ExpandedVolume",
    "ListedVolume",
    "StorageDriver",
    "StorageDrivers",
    "VolumeCapability",
)
_HOSTS = ("AttachDetachVolumeHost", "CSIDriverVolumeHost", "KubeletVolumeHost", "VolumeHost")

_HOME = {
    **dict.fromkeys(_HOOKSPECS, "volumehost.hookspecs"),
    **dict.fromkeys(_VOLUMES, "volumehost.volumes"),
    **dict.fromkeys(_SERVICES, "volumehost.host_services"),
    **dict.fromkeys(_DRIVERS, "volumehost.storage_driver"),
    **dict.fromkeys(_HOSTS, "volumehost.volume_host"),
    **dict.fromkeys(("Spec", "VolumeConfig"), "volumehost.spec"),
    "VolumeManager": "volumehost.node.manager",
    "__version__": "volumehost._version",
}

__all__ = [  # the names are strings; ruff cannot see through the unpacking
    "AttachDetachVolumeHost",
    "AttachableVolumePlugin",
    "Attacher",
    "Attributes",
    "BlockVolume",
    "BlockVolumeMapper",
    "BlockVolumePlugin",
    "BlockVolumeUnmapper",
    "CSIDriverVolumeHost",
    "Capacity",
    "CreateVolumeRequest",
    "CreatedVolume",
    "CustomBlockVolumeMapper",
    "CustomBlockVolumeUnmapper",
    "DeferredAttacher",
    "DeletableVolumePlugin",
    "Deleter",
    "Detacher",
    "DeviceMountableVolumePlugin",
    "DeviceMounter",
    "DeviceMounterArgs",
    "DeviceUnmounter",
    "DriverCapabilities",
    "DriverOrigin",
    "DriverSnapshot",
    "DriverState",
    "DriverStatus",
    "EventRecorder",
    "ExpandableVolumePlugin",
    "ExpandedVolume",
    "FoundDeviceMount",
    "HostUtils",
    "InformerFactory",
    "InstalledEntryPoint",
    "KubeletVolumeHost",
    "ListedVolume",
    "Lister",
    "MetricsCollector",
    "MetricsProvider",
    "MountInterface",
    "MountPoint",
    "Mounter",
    "MounterArgs",
    "NodeExpandableVolumePlugin",
    "NodeResizeOptions",
    "PersistentVolumePlugin",
    "ProvisionableVolumePlugin",
    "Provisioner",
    "ReconstructedVolume",
    "RecyclableVolumePlugin",
    "RecycleEventRecorder",
    "Recycler",
    "ResizableEphemeralVolumePlugin",
    "Spec",
    "SpecTranslator",
    "StorageDriver",
    "StorageDrivers",
    "Subpath",
    "Subpather",
    "Unmounter",
    "Volume",
    "VolumeCapability",
    "VolumeConfig",
    "VolumeHost",
    "VolumeManager",
    "VolumeMetrics",
    "VolumeOptions",
    "VolumePlugin",
    "__version__",
    "errors",
    "hookimpl",
]


def __getattr__(name: str) -> Any:
    """Load a public name's module at its first use (PEP 562)."""
    if name == "errors":
        return import_module("volumehost.errors")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
