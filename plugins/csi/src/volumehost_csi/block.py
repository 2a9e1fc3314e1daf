"""Raw block volumes: staging the device and publishing it for a pod (CSI-BLK-01, -06 to -08, -15 to -19)."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from volumehost.errors import MountError, VolumeHostError, is_operation_finished_error
from volumehost_csi import vol_data
from volumehost_csi.block_cleanup import remove_block_volume
from volumehost_csi.client import STAGE_UNSTAGE_VOLUME
from volumehost_csi.context import publish_additions, publish_context, secret_values
from volumehost_csi.mounter import DIRECTORY_MODE, record_not_written
from volumehost_csi.names import BlockPaths, attachment_name
from volumehost_csi.plugin import PLUGIN_NAME
from volumehost_csi.services import before_the_call
from volumehost_csi.source import PERSISTENT, capability, persistent_source

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.spec import Spec
    from volumehost.volumes import VolumeMetrics
    from volumehost_csi.services import Services

logger = logging.getLogger(__name__)


class BlockVolume:
    """What the mapper and the unmapper share: the paths of one block volume of one pod."""

    def __init__(self, services: Services, volume_name: str, pod_uid: str) -> None:
        self._services = services
        self._name, self._pod_uid = volume_name, pod_uid
        self._paths = BlockPaths(services.host, volume_name)

    def get_global_map_path(self, spec: Spec) -> str:
        """The directory that has one device file for each pod (CSI-PATH-06)."""
        del spec
        return self._paths.global_map_dir

    def get_pod_device_map_path(self) -> tuple[str, str]:
        """The pod's directory of devices, and the name of its link (CSI-PATH-12)."""
        return self._services.host.get_pod_volume_device_dir(self._pod_uid, PLUGIN_NAME), self._name

    def get_staging_path(self) -> str:
        """Where it is staged (CSI-PATH-08)."""
        return self._paths.staging_dir

    def supports_metrics(self) -> bool:
        """The driver is asked whether it measures the volume when it is to."""
        return True


class CSIBlockMapper(BlockVolume):
    """Maps one block volume for one pod.

    The record is written right before the first call that it is for (CSI-BLK-01, improved): one of a volume that never
    came about would tell a restarted host of a device that may be staged.

    :raises SpecError: the spec has no persistent CSI source.
    :raises UnsafePathError: its name is reserved (CSI-PATH-11, improved).
    """

    def __init__(self, services: Services, spec: Spec, pod: Pod) -> None:
        source = persistent_source(spec)
        super().__init__(services, spec.name(), pod.metadata.uid)
        self._spec, self._pod, self._source = spec, pod, source

    def _write_record(self) -> None:
        """What a teardown needs; where it cannot be written, what was made for it is gone again (CSI-BLK-02, improved).

        :raises OperationError: it cannot be written.
        """
        from volumehost.sdk import make_directories

        driver, handle, node_name = self._source.driver, self._source.volume_handle, self._services.node_name
        record = {
            vol_data.SPEC_NAME: self._name,
            vol_data.HANDLE: handle,
            vol_data.DRIVER: driver,
            vol_data.NODE_NAME: node_name,
            vol_data.ATTACHMENT: attachment_name(handle, driver, node_name),
        }
        try:
            make_directories(self._paths.data_dir, DIRECTORY_MODE)
            vol_data.write(self._paths.data_dir, record)
        except OSError as error:
            for directory in (self._paths.data_dir, self._paths.volume_dir):
                try:
                    os.rmdir(directory)
                except OSError:  # an older record, or another pod's device, is in it
                    break
            raise record_not_written(self._paths.data_dir, error) from error

    @property
    def metric_source(self) -> str:
        """Who measures it."""
        return self._source.driver

    def get_metrics(self) -> VolumeMetrics:
        """Size and health, as the driver tells of the device in the global map directory (CSI-BLK-19)."""
        from volumehost_csi.stats import measure

        return measure(
            self._services,
            driver=self._source.driver,
            handle=self._source.volume_handle,
            path=f"{self._paths.global_map_dir}/{self._pod_uid}",
            staging_path=self._paths.staging_dir,
        )

    def set_up_device(self) -> str:
        """Stage the device; returns the staging path, "" where the driver does not stage (CSI-BLK-06, -07).

        :raises TransientOperationError: something that it needs is missing; nothing was started.
        :raises UncertainProgressError: the driver may be at it.
        :raises VolumeHostError: it is certainly not staged.
        """
        services, source, spec = self._services, self._source, self._spec
        with before_the_call():
            client = services.client(source.driver)
            treatment = services.driver_objects.treatment(source.driver)
            attached_as = publish_context(services, treatment, source.driver, source.volume_handle)
            if not client.has(STAGE_UNSTAGE_VOLUME):
                return ""
            secrets = secret_values(services.host, source.node_stage_secret_ref)
            self._write_record()
            self._make_directory(self._paths.staging_dir)
        try:
            client.stage_volume(
                source.volume_handle,
                self._paths.staging_dir,
                capability(spec, client.capabilities()),
                publish_context=attached_as,
                volume_context=source.volume_attributes,
                secrets=secrets,
                migrated=spec.migrated,
            )
        except VolumeHostError as error:
            if is_operation_finished_error(error):
                try:
                    remove_block_volume(self._paths)
                except VolumeHostError as problem:
                    logger.warning("cleaning up after a staging that failed: %s", problem)
            raise
        return self._paths.staging_dir

    def map_pod_device(self) -> str:
        """Publish the device for the pod; returns its path (CSI-BLK-08).

        :raises TransientOperationError: something that it needs is missing; nothing was started.
        :raises UncertainProgressError: the driver may be at it.
        :raises VolumeHostError: it is certainly not published.
        """
        services, source, spec = self._services, self._source, self._spec
        with before_the_call():
            client = services.client(source.driver)
            treatment = services.driver_objects.treatment(source.driver)
            treatment.check_lifecycle(PERSISTENT, source.driver)
            attached_as = publish_context(services, treatment, source.driver, source.volume_handle)
            context, more_secrets = publish_additions(services.host, treatment, self._pod, ephemeral=False)
            secrets = secret_values(services.host, source.node_publish_secret_ref)
            # The path is sent only where there is a staging directory (CSI-BLK-15, improved).
            staged_at = self._paths.staging_dir if client.has(STAGE_UNSTAGE_VOLUME) else ""
            target = self._paths.publish_path(self._pod_uid)
            self._write_record()
            self._make_directory(self._paths.publish_dir)
        client.publish_volume(
            source.volume_handle,
            target,
            capability(spec, client.capabilities()),
            read_only=spec.read_only,
            staging_path=staged_at,
            publish_context=attached_as,
            volume_context={**source.volume_attributes, **context},
            secrets={**secrets, **more_secrets},
            migrated=spec.migrated,
        )
        return target

    def _make_directory(self, path: str) -> None:
        from volumehost.sdk import make_directories

        try:
            make_directories(path, DIRECTORY_MODE)
        except OSError as error:
            raise MountError(
                error.strerror or str(error), action=f"making the directory {path}", subject=path, errno=error.errno
            ) from error
