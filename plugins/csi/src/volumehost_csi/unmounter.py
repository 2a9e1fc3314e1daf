"""Taking a filesystem volume away from a pod (CSI-TDN). Needs neither the API nor the CSIDriver object (CSI-TDN-10)."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from volumehost.errors import NoPathMetricsError
from volumehost_csi import vol_data
from volumehost_csi.identify import volume_published_at
from volumehost_csi.names import staging_path, target_path
from volumehost_csi.removal import is_mounted, remove_mount
from volumehost_csi.source import EPHEMERAL

if TYPE_CHECKING:
    from volumehost.volumes import VolumeMetrics
    from volumehost_csi.services import Services

logger = logging.getLogger(__name__)


class CSIUnmounter:
    """Unmounts one volume of one pod; which one it is, is read when it is torn down, so that a retry looks again."""

    def __init__(self, services: Services, volume_name: str, pod_uid: str) -> None:
        self._services = services
        self._name, self._pod_uid = volume_name, pod_uid
        self._path = target_path(services.host, pod_uid, volume_name)

    def get_path(self) -> str:
        """Where the pod sees it."""
        return self._path

    def get_metrics(self) -> VolumeMetrics:
        """Usage and health, as the driver tells.

        :raises NoPathMetricsError: nothing is mounted there.
        """
        from volumehost_csi.stats import measure

        volume = self._volume(self._path)
        if volume is None:
            raise NoPathMetricsError("it is not mounted", action=f"measuring {self._path}", subject=self._name)
        driver, handle, ephemeral = volume
        staged_at = "" if ephemeral else staging_path(self._services.host, driver, handle)
        return measure(self._services, driver=driver, handle=handle, path=self._path, staging_path=staged_at)

    def tear_down(self) -> None:
        """Unpublish at the plugin's own path."""
        self.tear_down_at(self._path)

    def tear_down_at(self, directory: str) -> None:
        """NodeUnpublish, also where nothing seems to be mounted (CSI-TDN-02); then what is left is removed.

        :raises StorageDriverUnavailableError: the driver is not registered.
        :raises StorageDriverError: it failed; nothing on disk was touched (CSI-TDN-03).
        :raises StillMountedError: the target is mounted although the driver said that it is not (CSI-TDN-07, improved).
        :raises RemovalError: something lies in the target, which was kept.
        :raises BrokenRecordError: the record is unusable, and nothing else tells which volume it was.
        """
        volume = self._volume(directory)
        if volume is not None:
            driver, handle, _ = volume
            self._services.client(driver).unpublish_volume(handle, directory)
        remove_mount(directory)

    def _volume(self, target: str) -> tuple[str, str, bool] | None:
        """(driver, handle, whether it is inline); None when it was never published.

        The record is written before the volume is published and goes after it is unpublished, so without one there is
        nothing to undo, unless something is mounted all the same (CSI-PLUG-19, improved).
        """
        try:
            record = vol_data.read(os.path.dirname(target))
        except FileNotFoundError:
            if not is_mounted(self._services.host.get_mounter(), target):
                return None
            return self._identify(target, "its record is missing")
        except vol_data.BrokenRecordError as error:
            return self._identify(target, str(error))
        driver, handle = record.get(vol_data.DRIVER, ""), record.get(vol_data.HANDLE, "")
        if not driver or not handle:
            return self._identify(target, "its record lacks driver or handle")
        return driver, handle, record.get(vol_data.LIFECYCLE_MODE) == EPHEMERAL

    def _identify(self, target: str, problem: str) -> tuple[str, str, bool]:
        logger.warning("%s: %s; looking for another witness", target, problem)
        driver, handle = volume_published_at(self._services, self._pod_uid, self._name, target, problem)
        return driver, handle, False
