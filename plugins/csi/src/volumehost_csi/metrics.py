"""What is measured of CSI calls, added up in this process at next to no cost (CSI-MET-01 to -05).

prometheus-client is imported only when somebody exports: register :meth:`CSIMetrics.collector` there.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from volumehost_csi.plugin import PLUGIN_NAME

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily

#: Upper bounds in seconds.
BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0)

_GO_NAMES: Final = {"OK": "OK", "CANCELLED": "Canceled", "": "unknown-non-grpc"}


class Histogram:
    """Durations by labels. Safe for threads."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str]) -> None:
        self.name = name
        self.documentation = documentation
        self.labels = tuple(labels)
        self._lock = threading.Lock()
        self._series: dict[tuple[str, ...], list[float]] = {}

    def observe(self, labels: tuple[str, ...], seconds: float) -> None:
        """Count one duration."""
        bucket = bisect_left(BUCKETS, seconds)
        with self._lock:
            series = self._series.get(labels)
            if series is None:
                series = self._series[labels] = [0.0] * (len(BUCKETS) + 2)
            series[bucket] += 1
            series[-1] += seconds

    def count(self, *labels: str) -> int:
        """How many durations have these labels."""
        with self._lock:
            return int(sum(self._series.get(labels, [0.0])[:-1]))

    def family(self) -> HistogramMetricFamily:
        """The present state for prometheus-client."""
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(self.name, self.documentation, labels=self.labels)
        with self._lock:
            series = {labels: list(values) for labels, values in self._series.items()}
        for labels, values in series.items():
            below, buckets = 0.0, []
            for bound, number in zip((*map(str, BUCKETS), "+Inf"), values, strict=False):
                below += number
                buckets.append((bound, below))
            family.add_metric(labels, buckets, values[-1])
        return family


class CSIMetrics:
    """The histograms of the plugin; one object serves all its drivers."""

    def __init__(self) -> None:
        self.operations = Histogram(
            "csi_operations_seconds",
            "Container Storage Interface operation duration with gRPC error code status total",
            ("driver_name", "method_name", "grpc_status_code", "migrated"),
        )
        self.volume_stats = Histogram(
            "kubelet_volume_metric_collection_duration_seconds",
            "Duration in seconds to calculate volume stats",
            ("metric_source",),
        )
        self.storage_operations = Histogram(
            "storage_operation_duration_seconds",
            "Storage operation duration",
            ("volume_plugin", "operation_name", "status", "migrated"),
        )
        self.volume_operations = Histogram(
            "volume_operation_total_seconds", "Storage operation end to end duration in seconds",
            ("plugin_name", "operation_name"),
        )  # fmt: skip
        #: (registration socket, state) for each value 1 of ``plugin_manager_total_plugins`` (CSI-PM-14).
        self.sockets: Callable[[], Iterable[tuple[str, str]]] = lambda: ()

    def observe_call(self, driver: str, method: str, code: str, seconds: float, *, migrated: bool) -> None:
        """Count one RPC.

        :param method: full name, ``/csi.v1.Node/NodePublishVolume``.
        :param code: the gRPC code's name in upper case, "" for an error without one.
        """
        self.operations.observe((driver, method, go_code(code), "true" if migrated else "false"), seconds)

    def observe_operation(self, driver: str, operation: str, seconds: float, *, failed: bool, migrated: bool) -> None:
        """Count an operation of the plugin's own, ``volume_apply_access_control`` (CSI-MET-05)."""
        plugin = f"{PLUGIN_NAME}:{driver}"
        status = "fail-unknown" if failed else "success"
        self.storage_operations.observe((plugin, operation, status, "true" if migrated else "false"), seconds)
        if not failed:
            self.volume_operations.observe((plugin, operation), seconds)

    def collector(self) -> Collector:
        """What a registry of prometheus-client takes."""
        return Collector(self)


class Collector:
    """Gives histograms and the registration sockets to prometheus-client whenever it collects."""

    def __init__(self, metrics: CSIMetrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[HistogramMetricFamily | GaugeMetricFamily]:
        """All of them, as they are now."""
        from prometheus_client.core import GaugeMetricFamily

        metrics = self._metrics
        for histogram in (
            metrics.operations, metrics.volume_stats, metrics.storage_operations, metrics.volume_operations
        ):  # fmt: skip
            yield histogram.family()
        plugins = GaugeMetricFamily(
            "plugin_manager_total_plugins", "Number of plugins in Plugin Manager", labels=("socket_path", "state")
        )
        for labels in metrics.sockets():
            plugins.add_metric(labels, 1)
        yield plugins


def go_code(code: str) -> str:
    """A gRPC code as Go spells it: ``DEADLINE_EXCEEDED`` is ``DeadlineExceeded`` (CSI-MET-02)."""
    known = _GO_NAMES.get(code)
    return known if known is not None else "".join(word.capitalize() for word in code.split("_"))
