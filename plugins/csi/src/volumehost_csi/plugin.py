"""The plugin ``kubernetes.io/csi``: one plugin that fronts every CSI driver (CSI-NAME-01, CSI-PLUG).

Importing this module loads nothing but the contract, and initialising the plugin nothing at all: grpc, the bindings
and the drivers come with the first CSI volume.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final

from volumehost import hookimpl
from volumehost.errors import NotAvailableOnHostError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from volumehost.api.objects import CSIDriver, Pod
    from volumehost.spec import Spec
    from volumehost.volume_host import VolumeHost
    from volumehost.volumes import (
        Attacher,
        CustomBlockVolumeMapper,
        CustomBlockVolumeUnmapper,
        Detacher,
        DeviceMounter,
        DeviceUnmounter,
        FoundDeviceMount,
        MetricsCollector,
        Mounter,
        NodeResizeOptions,
        ReconstructedVolume,
        SpecTranslator,
        Unmounter,
    )
    from volumehost_csi.drivers import Drivers
    from volumehost_csi.drivers.controller_drivers import ControllerDrivers
    from volumehost_csi.metrics import CSIMetrics
    from volumehost_csi.migration import Migration, Translator
    from volumehost_csi.services import Services

PLUGIN_NAME: Final = "kubernetes.io/csi"


class CSIPlugin:
    """Fronts CSI drivers.

    :param csi_drivers: CSIDriver objects to go by on a host without an API (CSI-SOLO-05).
    :param translators: name of a plugin that was built into Kubernetes (``kubernetes.io/aws-ebs``) to what turns its
        volumes into CSI volumes (CSI-MIG-01); the names are published in CSINode. None publishes nothing about that.
    :raises SpecError: no CSI driver has taken over one of these names.
    """

    def __init__(
        self, csi_drivers: Iterable[CSIDriver] = (), translators: Mapping[str, Translator] | None = None
    ) -> None:
        self._csi_drivers = tuple(csi_drivers)
        self._migration: Migration | None = None
        if translators is not None:
            from volumehost_csi.migration import Migration

            self._migration = Migration(translators)
        self._host: VolumeHost | None = None
        self._made: Services | None = None
        self._metrics: CSIMetrics | None = None
        self._lock = threading.Lock()

    # --- the plugin -----------------------------------------------------------------------------------------

    @hookimpl
    def init(self, host: VolumeHost) -> None:
        """Keep the host, of either role or both (CSI-PLUG-01 to -03); nothing else is done before it is needed."""
        self._host = host

    @hookimpl
    def shutdown(self) -> None:
        """Close channels and end what nobody else needs; mounts and what they need alive stay."""
        if self._made is not None:
            self._made.close()

    @hookimpl
    def get_plugin_name(self) -> str:
        """``kubernetes.io/csi``."""
        return PLUGIN_NAME

    @hookimpl
    def get_volume_sources(self) -> Collection[str]:
        """csi, of a pod's volume or of a PersistentVolume."""
        return ("csi",)

    @hookimpl
    def get_spec_translators(self) -> Mapping[str, SpecTranslator] | None:
        """The built-in kinds for which there is a translator (CSI-MIG-01)."""
        return self._migration.translators_by_source() if self._migration is not None else None

    @hookimpl
    def can_support(self, spec: Spec) -> bool:
        """Whether there is a CSI source; whether its driver is registered does not matter (CSI-PLUG-06)."""
        volume, persistent = spec.volume, spec.persistent_volume
        return (persistent is not None and persistent.spec.csi is not None) or (
            volume is not None and volume.csi is not None
        )

    @hookimpl
    def get_volume_name(self, spec: Spec) -> str:
        """``<driver>^<handle>`` (CSI-NAME-03).

        :raises SpecError: the spec has no persistent CSI source; inline volumes are keyed by their pod (CSI-EPH-06).
        """
        from volumehost_csi.names import volume_name
        from volumehost_csi.source import persistent_source

        source = persistent_source(spec)
        return volume_name(source.driver, source.volume_handle)

    @hookimpl
    def requires_remount(self, spec: Spec) -> bool:
        """``requiresRepublish`` of the CSIDriver object; False where it cannot be read (CSI-PLUG-07)."""
        from volumehost.errors import VolumeHostError
        from volumehost_csi.source import driver_name

        try:
            return self._services.driver_objects.treatment(driver_name(spec)).requires_republish
        except VolumeHostError:
            return False

    @hookimpl
    def supports_mount_option(self) -> bool:
        """Always: options are handed to the driver as they are (CSI-PLUG-09)."""
        return True

    @hookimpl
    def supports_selinux_context_mount(self, spec: Spec) -> bool:
        """``seLinuxMount`` of the CSIDriver object (CSI-PLUG-11)."""
        from volumehost_csi.source import driver_name

        return self._services.driver_objects.treatment(driver_name(spec)).selinux_mount

    @hookimpl
    def get_storage_drivers(self) -> Drivers | ControllerDrivers:
        """The drivers, for the controllers and the command line; those of a controller's host have no node."""
        services = self._services
        return services.drivers if services.is_node else services.controller_drivers

    @hookimpl
    def get_metrics_collectors(self) -> Sequence[MetricsCollector]:
        """What is counted of the calls of all drivers, and the registration sockets."""
        return (self.metrics.collector(),)

    @property
    def metrics(self) -> CSIMetrics:
        """What is counted of the calls of all drivers; give its ``collector()`` to prometheus-client to export it.

        It is there before the plugin has a host.
        """
        if self._metrics is None:
            from volumehost_csi.metrics import CSIMetrics

            with self._lock:
                if self._metrics is None:
                    self._metrics = CSIMetrics()
        return self._metrics

    # --- filesystem volumes ---------------------------------------------------------------------------------

    @hookimpl
    def new_mounter(self, spec: Spec, pod: Pod) -> Mounter:
        """Publishes a volume; neither driver nor CSIDriver object need be there yet (CSI-PLUG-18)."""
        from volumehost_csi.mounter import CSIMounter

        self._services.require_node("mounting a CSI volume")
        return CSIMounter(self._services, spec, pod)

    @hookimpl
    def new_unmounter(self, volume_name: str, pod_uid: str) -> Unmounter:
        """Unpublishes it, from its record or other witnesses (CSI-PLUG-19, improved)."""
        from volumehost_csi.unmounter import CSIUnmounter

        self._services.require_node("unmounting a CSI volume")
        return CSIUnmounter(self._services, volume_name, pod_uid)

    @hookimpl
    def construct_volume_spec(self, volume_name: str, mount_path: str) -> ReconstructedVolume:
        """A minimal spec from the record (CSI-PLUG-30)."""
        from volumehost_csi.reconstruct import filesystem_volume

        return filesystem_volume(self._services, volume_name, mount_path)

    # --- devices --------------------------------------------------------------------------------------------

    @hookimpl
    def can_device_mount(self, spec: Spec) -> bool:
        """True for a persistent volume, whether or not its driver stages (CSI-PLUG-15)."""
        from volumehost_csi.source import PERSISTENT, lifecycle_mode

        return lifecycle_mode(spec) == PERSISTENT

    @hookimpl
    def new_device_mounter(self) -> DeviceMounter:
        """Stages volumes."""
        from volumehost_csi.device import CSIDeviceMounter

        return CSIDeviceMounter(self._services)

    @hookimpl
    def new_device_unmounter(self) -> DeviceUnmounter:
        """Unstages them."""
        from volumehost_csi.device import CSIDeviceUnmounter

        return CSIDeviceUnmounter(self._services)

    @hookimpl
    def get_device_mount_refs(self, device_mount_path: str) -> Sequence[str]:
        """Other mount points of what is mounted there (CSI-PLUG-17)."""
        return self._any_host().get_mounter().get_mount_refs(device_mount_path)

    @hookimpl
    def find_device_mounts(self, known: Collection[str]) -> Sequence[FoundDeviceMount]:
        """Devices that are staged or may be, by their records (BR-55).

        Asked at every start: a host that has had no CSI volume loads nothing for it.
        """
        host = self._any_host()
        if _is_absent(host.get_plugin_dir(PLUGIN_NAME)) and _is_absent(host.get_volume_device_plugin_dir(PLUGIN_NAME)):
            return ()
        from volumehost_csi.reconstruct import device_mounts

        return device_mounts(self._services, known)

    # --- attaching ------------------------------------------------------------------------------------------

    @hookimpl
    def can_attach(self, spec: Spec) -> bool:
        """Not an inline volume, nor one whose CSIDriver object says ``attachRequired: false`` (CSI-PLUG-13, -14)."""
        from volumehost_csi.source import EPHEMERAL, driver_name, lifecycle_mode

        if lifecycle_mode(spec) == EPHEMERAL:
            return False
        return self._services.driver_objects.treatment(driver_name(spec)).attach_required

    @hookimpl
    def new_attacher(self) -> Attacher:
        """Attaches through VolumeAttachment objects."""
        from volumehost_csi.attacher import CSIAttacher

        return CSIAttacher(self._services)

    @hookimpl
    def new_detacher(self) -> Detacher:
        """Detaches."""
        from volumehost_csi.attacher import CSIAttacher

        return CSIAttacher(self._services)

    @hookimpl
    def verify_exhausted_resource(self, spec: Spec) -> bool:
        """Whether the node is at the driver's limit of volumes (CSI-PLUG-24)."""
        from volumehost_csi.exhaustion import attach_limit_exceeded

        return attach_limit_exceeded(self._services, spec)

    # --- expansion ------------------------------------------------------------------------------------------

    @hookimpl
    def requires_fs_resize(self) -> bool:
        """Always (CSI-PLUG-10)."""
        return True

    @hookimpl
    def node_expand(self, resize_options: NodeResizeOptions) -> bool:
        """Let the driver grow what is mounted here."""
        from volumehost_csi.expansion import node_expand

        return node_expand(self._services, resize_options)

    # --- block volumes --------------------------------------------------------------------------------------

    @hookimpl
    def new_block_volume_mapper(self, spec: Spec, pod: Pod) -> CustomBlockVolumeMapper:
        """Stages and publishes a device; writes its record now (CSI-BLK-01)."""
        from volumehost_csi.block import CSIBlockMapper

        return CSIBlockMapper(self._services, spec, pod)

    @hookimpl
    def new_block_volume_unmapper(self, volume_name: str, pod_uid: str) -> CustomBlockVolumeUnmapper:
        """Takes it away, from its record or other witnesses."""
        from volumehost_csi.block_unmapper import CSIBlockUnmapper

        return CSIBlockUnmapper(self._services, volume_name, pod_uid)

    @hookimpl
    def construct_block_volume_spec(self, volume_name: str) -> Spec:
        """A minimal spec from the record (CSI-PLUG-31)."""
        from volumehost_csi.reconstruct import block_volume

        return block_volume(self._services, volume_name)

    # --- what they share ------------------------------------------------------------------------------------

    @property
    def _services(self) -> Services:
        made = self._made
        if made is None:
            from volumehost_csi.services import Services

            metrics = self.metrics
            with self._lock:
                if self._made is None:
                    self._made = Services(self._any_host(), self._csi_drivers, self._migration, metrics)
                made = self._made
        return made

    def _any_host(self) -> VolumeHost:
        if self._host is None:
            raise NotAvailableOnHostError("the plugin was not initialised with a host", subject=PLUGIN_NAME)
        return self._host


def _is_absent(path: str) -> bool:
    try:
        os.lstat(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False
