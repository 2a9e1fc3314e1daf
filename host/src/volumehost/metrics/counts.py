"""What is counted while it happens: operations of the node and of the controllers (METRIC-01 to -03, -05, -08, -09).

It exists before the manager does, which is made with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from prometheus_client import Counter, Histogram

from volumehost.metrics.catalogue import BUCKETS, CATALOGUE
from volumehost.metrics.families import family

if TYPE_CHECKING:
    from prometheus_client import Metric

    from volumehost.node.execution.operation_metrics import OperationLabels

#: Values of the label ``status`` (METRIC-01).
SUCCESS, FAILURE = "success", "fail-unknown"

_FORCED_DETACHES: Final = "attach_detach_controller_attachdetach_controller_forced_detaches"


class OperationCounts:
    """Implements ``OperationMetrics`` of the node and ``ControlMetrics`` of the controllers. Safe for threads."""

    def __init__(self) -> None:
        self._storage = _histogram("storage_operation_duration_seconds")
        self._total = _histogram("volume_operation_total_seconds")
        self._errors = _counter("volume_operation_errors_total")
        self._classes = _counter("retroactive_storageclass_total")
        self._class_errors = _counter("retroactive_storageclass_errors_total")
        self._cleaned = _counter("force_cleaned_failed_volume_operations_total")
        self._clean_errors = _counter("force_cleaned_failed_volume_operation_errors_total")
        self._forced = Counter(_FORCED_DETACHES, "", CATALOGUE[_FORCED_DETACHES].labels, registry=None)

    # --- the node -------------------------------------------------------------------------------------------------

    def observe(self, operation: str, seconds: float, error: BaseException | None, labels: OperationLabels) -> None:
        """Count one run (METRIC-01)."""
        self._observe(operation, seconds, error, labels.plugin, migrated=labels.migrated)
        if labels.unknown_directory:
            (self._cleaned if error is None else self._clean_errors).inc()

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
        counters = (self._errors, self._classes, self._class_errors, self._cleaned, self._clean_errors)
        for each in (self._storage, self._total, *counters):
            yield from each.collect()
        yield _without_total("volume_operation_total_errors", self._errors)
        yield _without_total(_FORCED_DETACHES, self._forced)

    def _observe(
        self, operation: str, seconds: float, error: BaseException | None, plugin: str, *, migrated: bool
    ) -> None:
        status = SUCCESS if error is None else FAILURE
        self._storage.labels(plugin, operation, status, "true" if migrated else "false").observe(seconds)


def _histogram(name: str) -> Histogram:
    described = CATALOGUE[name]
    return Histogram(name, described.text, described.labels, buckets=BUCKETS, registry=None)


def _counter(name: str) -> Counter:
    described = CATALOGUE[name]
    return Counter(name, described.text, described.labels, registry=None)


def _without_total(name: str, counter: Counter) -> Metric:
    """A counter under a name that does not end in ``_total``, as every counter's must: so it is told without a type."""
    labels = CATALOGUE[name].labels
    (found,) = counter.collect()
    samples = [sample for sample in found.samples if sample.name.endswith("_total")]
    return family(name, {tuple(sample.labels[label] for label in labels): sample.value for sample in samples})
