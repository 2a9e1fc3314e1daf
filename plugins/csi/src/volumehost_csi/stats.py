"""What a driver tells of a volume's usage and health, as the host's VolumeMetrics (CSI-CLI-18, -19, CSI-MET-06)."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from volumehost.errors import (
    FsInfoMetricsError,
    NoPathMetricsError,
    NotSupportedMetricsError,
    StorageDriverError,
    StorageDriverUnavailableError,
)
from volumehost.volumes import VolumeMetrics
from volumehost_csi.client import GET_VOLUME_STATS, STAGE_UNSTAGE_VOLUME

if TYPE_CHECKING:
    from volumehost_csi.services import Services

logger = logging.getLogger(__name__)

_BYTES, _INODES = 1, 2


def volume_metrics(started: float, usage: Iterable[Any], condition: Any, driver: str) -> VolumeMetrics:
    """The reply's figures; what it does not report, or reports below zero, is unknown.

    :param started: seconds since the epoch, taken before the call.
    :param usage: ``csi.VolumeUsage`` messages.
    :param condition: the ``csi.VolumeCondition``, None where the driver tells none.
    """
    figures: dict[str, Any] = {}
    for entry in usage:
        if entry.unit == _BYTES:
            names = ("available", "capacity", "used")
        elif entry.unit == _INODES:
            names = ("inodes_free", "inodes", "inodes_used")
        else:
            logger.warning("the CSI driver %s reports usage in an unknown unit: %d", driver, entry.unit)
            continue
        for name, value in zip(names, (entry.available, entry.total, entry.used), strict=True):
            figures[name] = value if value >= 0 else None
    if condition is None:
        return VolumeMetrics(started, **figures)
    return VolumeMetrics(started, **figures, abnormal=condition.abnormal, message=condition.message)


def measure(services: Services, *, driver: str, handle: str, path: str, staging_path: str = "") -> VolumeMetrics:
    """Ask the driver about a volume.

    :raises StorageDriverUnavailableError: it is not registered (CSI-ERR-12).
    :raises NotSupportedMetricsError: it does not measure volumes.
    :raises NoPathMetricsError: it does not know the volume there.
    :raises FsInfoMetricsError: the call failed for another reason; the driver's error is the cause.
    """
    started = time.perf_counter()
    try:
        client = services.drivers.node_client(driver)
        if not client.has(GET_VOLUME_STATS):
            raise NotSupportedMetricsError(
                f"the CSI driver {driver} does not measure volumes", action=f"measuring {path}", subject=driver
            )
        staged_at = staging_path if client.has(STAGE_UNSTAGE_VOLUME) else ""
        return client.get_volume_stats(handle, path, staging_path=staged_at)
    except StorageDriverUnavailableError:
        raise
    except StorageDriverError as error:
        kind = NoPathMetricsError if error.code == "NOT_FOUND" else FsInfoMetricsError
        raise kind(error.reason, action=error.action, subject=driver, hint=error.hint) from error
    finally:
        services.metrics.volume_stats.observe((driver,), time.perf_counter() - started)
