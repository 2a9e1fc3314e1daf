"""How much an emptyDir holds, and whether that is more than its limit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from volumehost_emptydir.size import MEMORY

if TYPE_CHECKING:
    from volumehost.volumes import VolumeMetrics
    from volumehost_emptydir.place import VolumePlace


def measure(place: VolumePlace, medium: str, limit: int) -> VolumeMetrics:
    """Measure the volume; ``limit`` is in bytes, 0 for none.

    A volume in memory is a filesystem of its own, so the filesystem's figures are the volume's, unlinked files that
    are still open included. Elsewhere the content is added up. On disk nothing holds a pod to its limit: like the
    kubelet, the metrics say that it is exceeded, and whoever runs the pod evicts it.
    """
    from volumehost.sdk import DuMetrics, StatFsMetrics

    if medium == MEMORY:
        return StatFsMetrics(place.data_dir).get_metrics()
    metrics = DuMetrics(place.data_dir).get_metrics()
    if limit > 0 and metrics.used is not None and metrics.used > limit:
        message = f'Usage of EmptyDir volume "{place.name}" exceeds the limit: {metrics.used} of {limit} bytes'
        return replace(metrics, abnormal=True, message=message)
    return metrics
