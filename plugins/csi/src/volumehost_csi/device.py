"""Staging a volume once per node: the device mounter and its reverse (CSI-DEV)."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from volumehost.errors import (
    MountError,
    SpecError,
    StorageDriverUnsupportedError,
    VolumeHostError,
    is_operation_finished_error,
)
from volumehost_csi import vol_data
from volumehost_csi.client import STAGE_UNSTAGE_VOLUME, VOLUME_MOUNT_GROUP
from volumehost_csi.context import publish_context, secret_values
from volumehost_csi.mounter import DIRECTORY_MODE, record_not_written, selinux_option
from volumehost_csi.names import staging_path
from volumehost_csi.removal import clean_up, is_mounted, remove_mount
from volumehost_csi.services import before_the_call
from volumehost_csi.source import capability, persistent_source

if TYPE_CHECKING:
    from volumehost.spec import Spec
    from volumehost.volumes import DeviceMounterArgs
    from volumehost_csi.client import NodeClient
    from volumehost_csi.services import Services

logger = logging.getLogger(__name__)

_YES = "true"


class CSIDeviceMounter:
    """Stages volumes. Serves any driver: the client is found anew for each call (CSI-PLUG-21, improved)."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def get_device_mount_path(self, spec: Spec) -> str:
        """The global mount (CSI-PATH-03).

        :raises SpecError: the spec has no persistent CSI source, no driver or no handle (CSI-DEV-01).
        """
        source = persistent_source(spec)
        if not source.volume_handle:
            raise SpecError("its volume handle is empty", action="reading a CSI volume", subject=spec.name())
        return staging_path(self._services.host, source.driver, source.volume_handle)

    def mount_device(self, spec: Spec, device_path: str, device_mount_path: str, args: DeviceMounterArgs) -> None:
        """Stage the volume at the path; does nothing where the driver does not stage (CSI-DEV-02, -03 improved).

        :param device_path: ignored: for CSI it is the attachment's name (CSI-DEV-09).
        :raises TransientOperationError: something that it needs is missing; nothing was started.
        :raises UncertainProgressError: the driver may be at it.
        :raises VolumeHostError: it is certainly not staged.
        """
        del device_path
        services = self._services
        if not device_mount_path:
            raise SpecError("the device mount path is empty", action="staging a CSI volume", subject=spec.name())
        source = persistent_source(spec)
        assert spec.persistent_volume is not None
        driver, handle = source.driver, source.volume_handle
        with before_the_call():
            client = services.client(driver)
            stages = client.has(STAGE_UNSTAGE_VOLUME)
            treatment = services.driver_objects.treatment(driver)
            # Asked for even if the driver does not stage: a volume that is not attached must not go on (CSI-DEV-02).
            attached_as = publish_context(services, treatment, driver, handle)
            if not stages:
                return
            secrets = secret_values(services.host, source.node_stage_secret_ref)
            mount_flags = list(spec.persistent_volume.spec.mount_options)
            label = args.selinux_label if treatment.selinux_mount else ""
            if label:
                mount_flags.append(selinux_option(label))
            group = args.fs_group if client.has(VOLUME_MOUNT_GROUP) else None
            was_recorded = self._prepare(device_mount_path, driver, handle, label)
        try:
            client.stage_volume(
                handle,
                device_mount_path,
                capability(spec, client.capabilities(), mount_flags=mount_flags, group=group),
                publish_context=attached_as,
                volume_context=source.volume_attributes,
                secrets=secrets,
                migrated=spec.migrated,
            )
        except VolumeHostError as error:
            is_staged_otherwise = was_recorded and getattr(error, "code", "") == "ALREADY_EXISTS"
            if is_operation_finished_error(error) and not is_staged_otherwise:
                clean_up(device_mount_path)
            raise

    def _prepare(self, path: str, driver: str, handle: str, label: str) -> bool:
        """The staging directory, which is ours to make (CSI-PATH-16, -17), and the record before the call.

        :returns: whether there was a record already.
        """
        from volumehost.sdk import make_directories

        record = {vol_data.HANDLE: handle, vol_data.DRIVER: driver, vol_data.STAGED: _YES}
        if label:
            record[vol_data.SELINUX_CONTEXT] = label
        directory = os.path.dirname(path)
        try:
            is_new = make_directories(directory, DIRECTORY_MODE)
            if not make_directories(path, DIRECTORY_MODE) and os.path.islink(path):
                raise FileExistsError(f"{path} is a link")
        except OSError as error:
            raise MountError(
                f"it cannot be a directory: {error.strerror or error}",
                action=f"making the staging directory {path}",
                subject=path,
                errno=error.errno,
            ) from error
        was_recorded = not is_new and os.path.exists(f"{directory}/{vol_data.FILE_NAME}")
        try:
            vol_data.write(directory, record, is_new=is_new)
        except OSError as error:
            if not os.path.exists(f"{directory}/{vol_data.FILE_NAME}"):  # that of an earlier attempt is still needed
                clean_up(path)
            raise record_not_written(directory, error) from error
        return was_recorded


class CSIDeviceUnmounter:
    """Unstages volumes, from what is on disk alone (CSI-DEV-12 to -14)."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def unmount_device(self, device_mount_path: str) -> None:
        """Unstage and remove the staging directory with its record.

        :raises StorageDriverUnavailableError: the driver is not registered.
        :raises StorageDriverError: it failed; what is on disk stays, and the call is repeated.
        :raises BrokenRecordError: the record is unusable, and nothing else tells which volume it was.
        :raises StillMountedError: it is mounted although the driver said that it unstaged it.
        """
        volume = self._volume(device_mount_path)
        if volume is not None:
            driver, handle, staged = volume
            client = self._services.client(driver)
            unstage(client, handle, device_mount_path, recorded=staged)
        remove_mount(device_mount_path)

    def _volume(self, path: str) -> tuple[str, str, bool] | None:
        """(driver, handle, whether the record says that it is staged); None when nothing was ever staged there."""
        from volumehost_csi.identify import volume_staged_at

        directory = os.path.dirname(path)
        try:
            record = vol_data.read(directory)
        except FileNotFoundError:
            if not is_mounted(self._services.host.get_mounter(), path):
                return None
            driver, handle = volume_staged_at(self._services, path, "its record is missing")
            return driver, handle, True
        except vol_data.BrokenRecordError as error:
            driver, handle = volume_staged_at(self._services, path, str(error))
            return driver, handle, True
        driver, handle = record.get(vol_data.DRIVER, ""), record.get(vol_data.HANDLE, "")
        if not driver or not handle:
            driver, handle = volume_staged_at(self._services, path, "its record lacks driver or handle")
        return driver, handle, record.get(vol_data.STAGED) == _YES


def unstage(client: NodeClient, handle: str, path: str, *, recorded: bool) -> None:
    """NodeUnstage where the driver stages, and where it did when the volume was staged (CSI-DEV-17).

    :raises StorageDriverError: it failed.
    """
    stages = client.has(STAGE_UNSTAGE_VOLUME)
    if not stages and not recorded:
        return
    try:
        client.unstage_volume(handle, path)
    except StorageDriverUnsupportedError:
        if stages:
            raise
        # A driver that has forgotten how: whether something is mounted still, the removal finds out.
        logger.warning("the CSI driver %s staged %s once and cannot unstage it any more", client.driver, path)
