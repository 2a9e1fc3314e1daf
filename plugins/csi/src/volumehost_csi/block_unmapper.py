"""Taking a raw block volume away from a pod and from the node (CSI-BLK-03, -11 to -14)."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from volumehost.errors import MountError, NoPathMetricsError, StillMountedError, VolumeHostError
from volumehost_csi import vol_data
from volumehost_csi.block import BlockVolume
from volumehost_csi.block_cleanup import remove_block_volume
from volumehost_csi.device import unstage
from volumehost_csi.identify import block_volume_named
from volumehost_csi.removal import remove_target

if TYPE_CHECKING:
    from volumehost.volumes import VolumeMetrics

logger = logging.getLogger(__name__)


class CSIBlockUnmapper(BlockVolume):
    """Unmaps one block volume; which one it is, is read when it is done, so that a retry looks again.

    :param pod_uid: "" for the device-level teardown.
    """

    def get_metrics(self) -> VolumeMetrics:
        """Size and health, as the driver tells.

        :raises NoPathMetricsError: there is no record of it.
        """
        from volumehost_csi.stats import measure

        volume = self._volume(self._paths.publish_path(self._pod_uid))
        if volume is None:
            raise NoPathMetricsError("it is not mapped", action="measuring a block volume", subject=self._name)
        return measure(
            self._services,
            driver=volume[0],
            handle=volume[1],
            path=f"{self._paths.global_map_dir}/{self._pod_uid}",
            staging_path=self._paths.staging_dir,
        )

    def unmap_pod_device(self) -> None:
        """NodeUnpublish, also where nothing seems to be published (CSI-BLK-11); an empty leftover goes (BR-35).

        :raises StorageDriverUnavailableError: the driver is not registered.
        :raises StorageDriverError: it failed.
        :raises StillMountedError: the device is there although the driver said that it is not.
        :raises BrokenRecordError: the record is unusable, and nothing else tells which volume it was.
        """
        target = self._paths.publish_path(self._pod_uid)
        volume = self._volume(target)
        if volume is not None:
            driver, handle = volume
            self._services.client(driver).unpublish_volume(handle, target)
        remove_target(target)

    def tear_down_device(self, map_path: str, device_path: str) -> None:
        """NodeUnstage where it was staged, then every directory of the volume goes (CSI-BLK-12 to -14).

        :raises StorageDriverUnavailableError: the driver is not registered.
        :raises StorageDriverError: it failed; nothing on disk was touched.
        :raises StillMountedError: it is mounted although the driver said that it unstaged it.
        :raises BrokenRecordError: the record is unusable, and nothing else tells which volume it was.
        """
        del map_path, device_path
        volume = self._volume(self._paths.staging_dir)
        if volume is not None:
            driver, handle = volume
            client = self._services.client(driver)
            if _exists(self._paths.staging_dir):
                # The directory is made only for drivers that stage, so it is the record of that (CSI-DEV-17).
                unstage(client, handle, self._paths.staging_dir, recorded=True)
                self._remove_staging()
        try:
            remove_block_volume(self._paths)
        except VolumeHostError as error:
            logger.warning("the directories of block volume %s are left: %s", self._name, error)

    def _remove_staging(self) -> None:
        from volumehost.sdk import remove_all_one_filesystem

        try:
            remove_all_one_filesystem(self._paths.staging_dir)
        except StillMountedError as error:
            raise StillMountedError(
                "something is still mounted there, although the CSI driver said that it unstaged it",
                action=f"removing {self._paths.staging_dir}",
                subject=error.subject,
                hint="see what mounted it, and unmount it by hand",
                errno=error.errno,
            ) from error

    def _volume(self, path: str) -> tuple[str, str] | None:
        """(driver, handle); None when nothing was ever at ``path``: the record is written before everything else."""
        try:
            record = vol_data.read(self._paths.data_dir)
            problem = "its record lacks driver or handle"
        except FileNotFoundError:
            if not _exists(path):
                return None
            record, problem = {}, "its record is missing"
        except vol_data.BrokenRecordError as error:
            record, problem = {}, str(error)
        driver, handle = record.get(vol_data.DRIVER, ""), record.get(vol_data.HANDLE, "")
        if driver and handle:
            return driver, handle
        return block_volume_named(self._services, self._name, path, problem)


def _exists(path: str) -> bool:
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise MountError(
            error.strerror or str(error), action=f"looking at {path}", subject=path, errno=error.errno
        ) from error
    return True
