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

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from volumehost.metrics.counts import OperationCounts
from volumehost.metrics.families import merged

if TYPE_CHECKING:
    from prometheus_client import Metric

    from volumehost.node.manager import VolumeManager
    from volumehost.node.operation_metrics import OperationMetrics


class NodeMetrics:
    """The metrics of one node. Made before its volume manager, which is told of :attr:`operations`. Safe for threads.

    A scrape never waits for a volume, a driver or the API: what has not answered is left out.
    """

    def __init__(self) -> None:
        self._counts = OperationCounts()
        self._manager: VolumeManager | None = None
        #: For an embedding program that exports with prometheus-client itself.
        self.registry = CollectorRegistry()
        self.registry.register(self)

    @property
    def operations(self) -> OperationMetrics:
        """What to hand to ``VolumeManager(metrics=...)``."""
        return self._counts

    def attach(self, manager: VolumeManager) -> None:
        """Tell of this manager from now on, which has been entered; begin to measure its volumes from time to time."""
        self._manager = manager

    def detach(self) -> None:
        """The manager is about to be left: measure nothing any more. Counters stay readable."""
        self._manager = None

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """Body and content type of a scrape: Prometheus' text format, or OpenMetrics where ``accept`` asks for it.

        :param accept: the request's ``Accept`` header.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def collect(self) -> Iterable[Metric]:
        """Every family once; what the registry asks for."""
        return merged(self._families())

    def _families(self) -> Iterator[Metric]:
        yield from self._counts.collect()
