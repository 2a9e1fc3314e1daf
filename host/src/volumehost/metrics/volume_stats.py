"""Measures the volumes of pods from time to time, off everybody's path (METRIC-06, CONST-10).

A volume that does not answer, since its filesystem or its driver hangs (BR-52), holds a thread of a small pool of its
own and nothing else: the others of its driver have three more, and those of other drivers have theirs.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client import Histogram

from volumehost.errors import MetricsError, NotSupportedMetricsError
from volumehost.loader.guard import describe
from volumehost.metrics.catalogue import BUCKETS, CATALOGUE
from volumehost.metrics.stats_table import DEADLINE_SECONDS, Entry, StatsTable
from volumehost.node.execution.operation_metrics import full_plugin_name
from volumehost.node.execution.pending import OperationKey
from volumehost.node.execution.workers import WorkerPool
from volumehost.node.state.states import MountState

if TYPE_CHECKING:
    from prometheus_client import Metric

    from volumehost.node.assembly import NodeParts
    from volumehost.node.state.desired import VolumeUse
    from volumehost.node.state.records import MountedVolume
    from volumehost.volumes import MetricsProvider, VolumeMetrics

logger = logging.getLogger(__name__)

#: Seconds between two measurements of a pod's volumes, and the part of that which chance adds at most (CONST-10).
PERIOD_SECONDS: Final = 60.0
JITTER: Final = 1.0
#: Of so many new pods at most the volumes are measured at once.
AT_ONCE: Final = 20
#: So many volumes are measured at most at each look, so that a node with very many spends little on it: they are then
#: measured more rarely.
MOST_AT_A_LOOK: Final = 250
#: How often it is looked whether a pod is due, in seconds.
LOOK_SECONDS: Final = 5.0

_DURATION: Final = "kubelet_volume_metric_collection_duration_seconds"


class VolumeStats:
    """Measures for one manager at work.

    :param chance: between 0 and 1; spreads the pods over time.
    """

    def __init__(self, parts: NodeParts, *, chance: Callable[[], float] = random.random) -> None:
        self._parts = parts
        self._clock = parts.services.clock
        self._chance = chance
        self._table = StatsTable(self._clock)
        self._pool = WorkerPool(self._clock, size=2, share=4, limit=32, stuck_after=1.0)
        #: When each pod is measured next.
        self._due: dict[str, float] = {}
        described = CATALOGUE[_DURATION]
        self._durations = Histogram(_DURATION, described.text, described.labels, buckets=BUCKETS, registry=None)
        self._stopped = False

    def begin(self) -> None:
        """Measure from now on."""
        self._parts.later(0, self._look_again)

    def stop(self) -> None:
        """Begin no measurement any more; waits for none."""
        self._stopped = True
        self._pool.stop(0)

    def collect(self) -> Iterator[Metric]:
        """The families, as they are now; no volume is looked at for that."""
        yield from self._table.collect()
        yield from self._durations.collect()

    def _look_again(self) -> None:
        if self._stopped:
            return
        try:
            self.look()
        finally:
            self._parts.later(LOOK_SECONDS, self._look_again)

    def look(self) -> None:
        """Have the volumes of those pods measured whose turn it is, and forget pods that are gone. Waits for nothing.

        A pod that is new is measured at once; many that come together, as after a restart, are spread over a minute.
        """
        now = self._clock()
        pods = {record.uid: record.processed for record in self._parts.populator.records()}
        new = pods.keys() - self._due.keys()
        if len(new) > AT_ONCE:
            self._due |= {uid: now + PERIOD_SECONDS * self._chance() for uid in new}
        for uid in self._due.keys() - pods.keys():
            del self._due[uid]
            self._table.keep(uid, frozenset())
        left = MOST_AT_A_LOOK
        for uid in sorted(
            (uid for uid in pods if self._due.get(uid, now) <= now), key=lambda uid: self._due.get(uid, 0.0)
        ):
            if left <= 0:
                break  # the others have waited longest at the next look
            arranged = self._measure_pod(uid)
            left -= arranged
            if arranged or (pods[uid] and not self._of_interest(uid)):
                self._due[uid] = now + PERIOD_SECONDS * (1 + JITTER * self._chance())
        for volume, uid in self._table.newly_hanging():
            logger.warning(
                "volume %s of pod %s is measured and has not answered for more than %g s", volume, uid, DEADLINE_SECONDS
            )
        self._hurry()

    def _hurry(self) -> None:
        """While some wait for a worker, others may join in."""
        if self._pool.hurry():
            self._parts.later(0.1, self._hurry)

    # --- one pod --------------------------------------------------------------------------------------------------

    def _measure_pod(self, uid: str) -> int:
        """Arrange it; of how many volumes: those that are mounted, and at rest."""
        uses = self._of_interest(uid)
        self._table.keep(uid, frozenset(use.volume for use in uses))
        number = 0
        for use in uses:
            mount = self._parts.services.actual.get_mount(use.volume, uid)
            at_rest = not self._parts.pending.is_pending(OperationKey(use.volume, uid))
            if mount is not None and mount.state is MountState.MOUNTED and at_rest:
                number += 1
                self._arrange(use, mount)
        return number

    def _of_interest(self, uid: str) -> list[VolumeUse]:
        return [use for use in self._parts.services.desired.uses_of_pod(uid) if _is_of_interest(use)]

    def _arrange(self, use: VolumeUse, mount: MountedVolume) -> None:
        plugin = full_plugin_name(use.plugin.name, use.spec)
        entry = self._table.put((use.volume, use.pod_uid), plugin, _claim_of(use))
        if entry is not None and not self._stopped:
            self._pool.submit(plugin, lambda: self._measure(use, mount, entry))

    def _measure(self, use: VolumeUse, mount: MountedVolume, entry: Entry) -> None:
        """On a worker, which may never come back."""
        self._table.begin(entry)
        metrics, fault = None, ""
        try:
            metrics = self._ask(use, mount)
        except NotSupportedMetricsError:
            logger.debug("volume %s of pod %s has no metrics", use.inner_name, use.pod_uid)
        except BaseException as error:  # noqa: BLE001 - on a worker every one is a plugin's own (BR-18)
            fault = describe(error)
        is_news, was_told = self._table.end(entry, metrics, fault)
        if is_news:
            logger.warning("volume %s of pod %s cannot be measured: %s", use.inner_name, use.pod_uid, fault)
        elif was_told:
            logger.info("volume %s of pod %s has answered", use.inner_name, use.pod_uid)
        if metrics is not None and metrics.abnormal:
            self._tell_abnormal(use, metrics.message)

    def _ask(self, use: VolumeUse, mount: MountedVolume) -> VolumeMetrics:
        """:raises MetricsError: it cannot be measured."""
        if mount.is_block:
            block = mount.mapper or use.plugin.new_block_volume_unmapper(mount.inner_name, mount.pod_uid)
            if not block.supports_metrics():
                raise NotSupportedMetricsError("its plugin does not measure block volumes")
            return self._timed(block)
        # Of what an earlier manager mounted its plugin knows by the records that it keeps.
        if mount.found:
            return self._timed(use.plugin.new_unmounter(mount.inner_name, mount.pod_uid))
        return self._timed(use.plugin.new_mounter(use.spec, use.pod))

    def _timed(self, provider: MetricsProvider) -> VolumeMetrics:
        """METRICS-09; who measures outside of this process counts that itself, and tells no source."""
        started, source = time.perf_counter(), ""
        try:
            metrics = provider.get_metrics()
        except MetricsError as error:
            source = error.partial.source if error.partial is not None else ""
            raise
        else:
            source = metrics.source
            return metrics
        finally:
            if source:
                self._durations.labels(source).observe(time.perf_counter() - started)

    def _tell_abnormal(self, use: VolumeUse, message: str) -> None:
        recorder = self._parts.services.recorder()
        if recorder is not None:
            text = f"Volume {use.outer_names[0]}: {message or 'its driver says that it is not as it should be'}"
            recorder.event(use.pod, "Warning", "VolumeConditionAbnormal", text)


def _is_of_interest(use: VolumeUse) -> bool:
    """Whether it belongs to a claim; or it has a limit of which only measuring tells that it is exceeded."""
    volume = use.spec.volume
    return _claim_of(use) is not None or (
        volume is not None and volume.empty_dir is not None and bool(volume.empty_dir.size_limit)
    )


def _claim_of(use: VolumeUse) -> tuple[str, str] | None:
    volume = use.spec.persistent_volume
    reference = volume.spec.claim_ref if volume is not None else None
    return (reference.namespace, reference.name) if reference is not None else None
