"""All metrics of a controller daemon in one text, by the names that Kubernetes' controllers have for them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

from volumehost.control.attach_detach.counted import plugin_label
from volumehost.loader.guard import describe
from volumehost.metrics.claim_state import claim_families
from volumehost.metrics.counts import OperationCounts
from volumehost.metrics.families import family, merged
from volumehost.metrics.node_state import ACTUAL, DESIRED, Counts
from volumehost.metrics.plugin_families import PluginFamilies
from volumehost.metrics.work_state import build_families
from volumehost.mount.deadline import DeadlineRunner

if TYPE_CHECKING:
    from prometheus_client import Metric

    from volumehost.api.client import ApiClient
    from volumehost.control.attach_detach.world import World
    from volumehost.control.machinery.counting import ControlMetrics
    from volumehost.loader.manager import VolumePluginManager

logger = logging.getLogger(__name__)

#: How long the API has for telling what a scrape wants to know, in seconds.
ANSWER_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class ControllerView:
    """What there is to tell of a controller daemon now; what does not run is None.

    :param lease: name of the lease that elects it, "" where there is no election.
    :param failures: by controller, how many objects it failed to get on with.
    """

    lease: str = ""
    leading: bool = False
    world: World | None = None
    api: ApiClient | None = None
    plugins: VolumePluginManager | None = None
    failures: Mapping[str, int] = field(default_factory=dict)


class ControllerMetrics:
    """Made before the controllers, which are told of :attr:`operations`. Safe for threads."""

    def __init__(self) -> None:
        self._counts = OperationCounts()
        self._process = ProcessCollector(registry=None)
        self._plugins = PluginFamilies()
        self._runner = DeadlineRunner()

    @property
    def operations(self) -> ControlMetrics:
        """What the controllers count with."""
        return self._counts

    def text(self, view: ControllerView, accept: str = "") -> tuple[bytes, str]:
        """Body and content type of a scrape: Prometheus' text format, or OpenMetrics where ``accept`` asks for it."""
        encode, content_type = choose_encoder(accept)
        registry = CollectorRegistry()
        registry.register(_Collected(lambda: merged(self._families(view))))
        return encode(registry), content_type

    def _families(self, view: ControllerView) -> Iterator[Metric]:
        yield from build_families()
        yield from self._process.collect()
        yield from self._counts.collect()
        if view.lease:
            yield family("leader_election_master_status", {(view.lease,): float(view.leading)})
        yield family("volumehost_controller_failing_objects", {(name,): n for name, n in view.failures.items()})
        if view.world is not None:
            yield from _attachments(view.world)
        api, plugins = view.api, view.plugins
        if plugins is not None:
            yield from self._plugins.collect(plugins)[0]
        if api is not None and plugins is not None:
            yield from self._in_time(lambda: claim_families(api, plugins))

    def _in_time(self, make: Callable[[], list[Metric]]) -> list[Metric]:
        """What ``make`` returns; nothing when the API does not tell in time."""
        try:
            return self._runner.run(make, timeout=ANSWER_SECONDS, what="claims")
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one part, the others are told
            logger.debug("claims and volumes are left out of the metrics: %s", describe(error))
            return []


class _Collected:
    def __init__(self, make: Callable[[], Iterable[Metric]]) -> None:
        self._make = make

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: families are made when they are asked for."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """The families."""
        return self._make()


def _attachments(world: World) -> Iterator[Metric]:
    """METRIC-08."""
    totals: Counts = Counter()
    in_use: Counts = Counter()
    for pair in world.wishes.pairs():
        totals[plugin_label(pair.volume), DESIRED] += 1
        in_use[pair.node, plugin_label(pair.volume)] += 1
    for pair in world.attachments.pairs():
        totals[plugin_label(pair.volume), ACTUAL] += 1
    yield family("attachdetach_controller_total_volumes", totals)
    yield family("storage_count_attachable_volumes_in_use", in_use)
