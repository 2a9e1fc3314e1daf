"""What is counted while it happens, under the kubelet's names: operations of the node and of the controllers.

It exists before the manager does, which is made with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from prometheus_client import Counter, Histogram

from volumehost.metrics.families import untyped

if TYPE_CHECKING:
    from prometheus_client import Metric

    from volumehost.node.operation_metrics import OperationLabels

#: Upper bounds in seconds (METRIC-01, CSI-MET-01).
BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0)

#: Values of the label ``status`` (METRIC-01).
SUCCESS, FAILURE = "success", "fail-unknown"

#: The kubelet counts failures under two names that end alike, one of which no counter may have here (METRIC-09).
_OLD_ERRORS_NAME = "volume_operation_total_errors"
_FORCED_DETACHES_NAME = "attach_detach_controller_attachdetach_controller_forced_detaches"


class OperationCounts:
    """Implements ``OperationMetrics`` of the node and ``ControlMetrics`` of the controllers. Safe for threads."""

    def __init__(self) -> None:
        self._storage = _histogram(
            "storage_operation_duration_seconds",
            "Storage operation duration",
            ("volume_plugin", "operation_name", "status", "migrated"),
        )
        self._total = _histogram(
            "volume_operation_total_seconds",
            "Storage operation end to end duration in seconds",
            ("plugin_name", "operation_name"),
        )
        self._errors = _counter(
            "volume_operation_errors_total", "Total volume operation errors", ("plugin_name", "operation_name")
        )
        self._forced = _counter(
            f"{_FORCED_DETACHES_NAME}_total",
            "Number of times the A/D Controller performed a forced detach",
            ("reason",),
        )
        self._classes = _counter(
            "retroactive_storageclass_total",
            "Total number of retroactive StorageClass assignments to persistent volume claim",
        )
        self._class_errors = _counter(
            "retroactive_storageclass_errors_total",
            "Total number of failed retroactive StorageClass assignments to persistent volume claim",
        )

    # --- the node -------------------------------------------------------------------------------------------------

    def observe(self, operation: str, seconds: float, error: BaseException | None, labels: OperationLabels) -> None:
        """Count one run (METRIC-01)."""
        self._observe(operation, seconds, error, labels.plugin, migrated=labels.migrated)

    def mounted(self, seconds: float, labels: OperationLabels) -> None:
        """Count one volume that became ready (MOUNTOP-12)."""
        self._total.labels(labels.plugin, "overall_volume_mount").observe(seconds)

    # --- the controllers ------------------------------------------------------------------------------------------

    def controlled(
        self, operation: str, seconds: float, error: BaseException | None, plugin: str, *, migrated: bool
    ) -> None:
        """Count one attempt."""
        self._observe(operation, seconds, error, plugin, migrated=migrated)

    def completed(self, operation: str, seconds: float, plugin: str) -> None:
        """Count one volume that was provisioned or deleted (METRIC-03)."""
        self._total.labels(plugin, operation).observe(seconds)

    def attempt_failed(self, operation: str, plugin: str) -> None:
        """Count one failed attempt at that (METRIC-09)."""
        self._errors.labels(plugin, operation).inc()

    def forced_detach(self, reason: str) -> None:
        """Count one (METRIC-08)."""
        self._forced.labels(reason).inc()

    def class_assigned(self, error: BaseException | None) -> None:
        """Count one assignment (METRIC-09)."""
        (self._classes if error is None else self._class_errors).inc()

    # --- telling --------------------------------------------------------------------------------------------------

    def collect(self) -> Iterable[Metric]:
        """The families, as they are now."""
        for each in (self._storage, self._total, self._errors, self._classes, self._class_errors):
            yield from each.collect()
        yield _renamed(self._errors, _OLD_ERRORS_NAME, ("plugin_name", "operation_name"))
        yield _renamed(self._forced, _FORCED_DETACHES_NAME, ("reason",))

    def _observe(
        self, operation: str, seconds: float, error: BaseException | None, plugin: str, *, migrated: bool
    ) -> None:
        status = SUCCESS if error is None else FAILURE
        self._storage.labels(plugin, operation, status, "true" if migrated else "false").observe(seconds)


def _histogram(name: str, documentation: str, labels: Sequence[str]) -> Histogram:
    return Histogram(name, documentation, labels, buckets=BUCKETS, registry=None)


def _counter(name: str, documentation: str, labels: Sequence[str] = ()) -> Counter:
    return Counter(name, documentation, labels, registry=None)


def _renamed(counter: Counter, name: str, labels: Sequence[str]) -> Metric:
    """A counter under a name without ``_total``: it has no type then, since a counter's name must end so."""
    (family,) = counter.collect()
    values = {
        tuple(sample.labels[label] for label in labels): sample.value
        for sample in family.samples
        if sample.name.endswith("_total")
    }
    return untyped(name, family.documentation, labels, values)
