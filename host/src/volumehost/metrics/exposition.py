"""All metrics of one node in one text, for whoever serves ``/metrics``; the one entry to this room.

::

    metrics = NodeMetrics()
    with VolumeManager(root_dir, metrics=metrics.operations) as manager:
        metrics.attach(manager)
        body, content_type = metrics.text(request.headers.get("Accept", ""))
        ...
        metrics.detach()
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

from volumehost.loader.guard import describe
from volumehost.metrics.claim_state import claim_families
from volumehost.metrics.counts import OperationCounts
from volumehost.metrics.families import family, merged
from volumehost.metrics.node_state import node_families
from volumehost.metrics.plugin_families import PluginFamilies
from volumehost.metrics.volume_stats import VolumeStats
from volumehost.metrics.work_state import build_families, driver_families, record_families, work_families
from volumehost.mount.deadline import DeadlineRunner

if TYPE_CHECKING:
    from prometheus_client import Metric

    from volumehost.node.execution.operation_metrics import OperationMetrics
    from volumehost.node.manager import VolumeManager

logger = logging.getLogger(__name__)

#: How long drivers and the API have for telling what a scrape wants to know, in seconds.
ANSWER_SECONDS: Final = 2.0


class NodeMetrics:
    """The metrics of one node. Made before its volume manager, which is told of :attr:`operations`. Safe for threads.

    A scrape waits for no volume, and for a plugin, a driver or the API hardly at all: what has not answered is left
    out, and counted in ``volumehost_scrape_errors_total``.
    """

    def __init__(self) -> None:
        self._counts = OperationCounts()
        self._process = ProcessCollector(registry=None)
        self._plugins = PluginFamilies()
        self._runner = DeadlineRunner()
        self._lock = threading.Lock()
        self._errors: Counter[tuple[str, ...]] = Counter()
        self._manager: VolumeManager | None = None
        self._stats: VolumeStats | None = None
        #: For an embedding program that exports with prometheus-client itself.
        self.registry = CollectorRegistry()
        self.registry.register(self)

    @property
    def operations(self) -> OperationMetrics:
        """What to hand to ``VolumeManager(metrics=...)``."""
        return self._counts

    def attach(self, manager: VolumeManager) -> None:
        """Tell of this manager from now on, which has been entered; begin to measure its volumes from time to time."""
        self._stats = VolumeStats(manager.parts)
        self._stats.begin()
        self._manager = manager

    def detach(self) -> None:
        """The manager is about to be left: measure nothing any more. Counters stay readable."""
        stats, self._manager, self._stats = self._stats, None, None
        if stats is not None:
            stats.stop()

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """Body and content type of a scrape: Prometheus' text format, or OpenMetrics where ``accept`` asks for it.

        :param accept: the request's ``Accept`` header.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def collect(self) -> Iterable[Metric]:
        """Every family once; what the registry asks for."""
        return merged(self._families())

    # --- the parts ------------------------------------------------------------------------------------------------

    def _families(self) -> Iterator[Metric]:
        yield from build_families()
        yield from self._process.collect()
        yield from self._counts.collect()
        manager, stats = self._manager, self._stats
        if stats is not None:
            yield from self._part("volume stats", stats.collect)
        if manager is not None:
            yield from self._part("volumes", lambda: node_families(manager))
            yield from self._part("operations", lambda: work_families(manager))
            yield from self._part("records", lambda: record_families(manager))
            yield from self._part("drivers", lambda: self._in_time("drivers", lambda: _driver_families(manager)))
            yield from self._part("claims", lambda: self._in_time("claims", lambda: _claim_families(manager)))
            yield from self._part("plugins", lambda: self._of_plugins(manager))
        with self._lock:
            errors = dict(self._errors)
        yield family("volumehost_scrape_errors_total", errors)

    def _part(self, part: str, make: Callable[[], Iterable[Metric]]) -> list[Metric]:
        """The families of one part; none of them when it fails, which concerns no other."""
        try:
            return list(make())
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one part, the others are told
            log = logger.warning if self._count(part) == 1 else logger.debug
            log("the part %r of the metrics is left out: %s", part, describe(error))
            return []

    def _count(self, part: str) -> int:
        with self._lock:
            self._errors[part,] += 1
            return self._errors[part,]

    def _in_time(self, part: str, make: Callable[[], list[Metric]]) -> list[Metric]:
        """What ``make`` returns, unless it has to wait; it is not asked again before it has answered.

        :raises TimeoutError: it has to.
        """
        if any(what == part and age > ANSWER_SECONDS for what, age in self._runner.in_progress()):
            raise TimeoutError("an earlier scrape has no answer yet")
        return self._runner.run(make, timeout=ANSWER_SECONDS, what=part)

    def _of_plugins(self, manager: VolumeManager) -> list[Metric]:
        found, failed = self._plugins.collect(manager.plugins)
        for plugin in failed:
            self._count(f"plugin {plugin}")
        return found


def _driver_families(manager: VolumeManager) -> list[Metric]:
    return driver_families(manager.drivers.statuses())


def _claim_families(manager: VolumeManager) -> list[Metric]:
    """Only where this process is the control plane: elsewhere somebody else tells them."""
    if not manager.parts.services.control.enabled:
        return []
    return claim_families(manager.api, manager.plugins)
