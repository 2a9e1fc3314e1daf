"""Histograms and counters of operations under the kubelet's names; what a volume manager and its controllers report to.

They exist before the manager does, since it is made with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from prometheus_client import Histogram

if TYPE_CHECKING:
    from prometheus_client import Metric

    from volumehost.node.operation_metrics import OperationLabels

#: Upper bounds in seconds (METRIC-01, CSI-MET-01).
BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0)

#: Values of the label ``status`` (METRIC-01).
SUCCESS, FAILURE = "success", "fail-unknown"


class OperationHistograms:
    """Implements ``OperationMetrics`` of the node (METRIC-01 to -03). Safe for threads."""

    def __init__(self) -> None:
        self._storage = Histogram(
            "storage_operation_duration_seconds",
            "Storage operation duration",
            ("volume_plugin", "operation_name", "status", "migrated"),
            buckets=BUCKETS,
            registry=None,
        )
        self._total = Histogram(
            "volume_operation_total_seconds",
            "Storage operation end to end duration in seconds",
            ("plugin_name", "operation_name"),
            buckets=BUCKETS,
            registry=None,
        )

    def observe(self, operation: str, seconds: float, error: BaseException | None, labels: OperationLabels) -> None:
        """Count one run."""
        status = SUCCESS if error is None else FAILURE
        self._storage.labels(labels.plugin, operation, status, _word(labels.migrated)).observe(seconds)

    def mounted(self, seconds: float, labels: OperationLabels) -> None:
        """Count one volume that became ready (MOUNTOP-12)."""
        self._total.labels(labels.plugin, "overall_volume_mount").observe(seconds)

    def collect(self) -> Iterable[Metric]:
        """The families, as they are now."""
        yield from self._storage.collect()
        yield from self._total.collect()


def _word(value: bool) -> str:
    return "true" if value else "false"
