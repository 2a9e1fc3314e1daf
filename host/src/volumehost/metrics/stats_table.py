"""What is known of the usage and health of each volume of each pod, and how that is told (METRIC-06)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from volumehost.metrics.families import family

if TYPE_CHECKING:
    from prometheus_client import Metric

    from volumehost.volumes import VolumeMetrics

#: A measurement that takes longer than this has no answer for now, in seconds.
DEADLINE_SECONDS: Final = 10.0
#: What was measured longer ago than this is not told any more, in seconds.
STALE_SECONDS: Final = 600.0

#: (unique volume name, pod uid)
Key = tuple[str, str]

_VALUES: Final = (
    ("kubelet_volume_stats_capacity_bytes", "capacity"),
    ("kubelet_volume_stats_available_bytes", "available"),
    ("kubelet_volume_stats_used_bytes", "used"),
    ("kubelet_volume_stats_inodes", "inodes"),
    ("kubelet_volume_stats_inodes_free", "inodes_free"),
    ("kubelet_volume_stats_inodes_used", "inodes_used"),
)


@dataclass(slots=True)
class Entry:
    """One volume of one pod; times are of the clock of the table.

    ``plugin`` is its name for metrics, ``claim`` namespace and name of the claim that it belongs to, if any.
    ``waiting`` for a worker to measure it; ``begun_at`` is None while none is at it. ``fault``: why the last
    measurement failed.
    """

    plugin: str
    claim: tuple[str, str] | None
    waiting: bool = False
    begun_at: float | None = None
    measured_at: float = 0.0
    metrics: VolumeMetrics | None = None
    fault: str = ""
    told_hanging: bool = False

    def hangs(self, now: float) -> bool:
        """Whether it has been measured for too long without an answer."""
        return self.begun_at is not None and now - self.begun_at > DEADLINE_SECONDS


class StatsTable:
    """The volumes that are measured. Safe for threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._pods: dict[str, dict[str, Entry]] = {}
        self._errors: Counter[tuple[str, ...]] = Counter()

    def put(self, key: Key, plugin: str, claim: tuple[str, str] | None) -> Entry | None:
        """The entry of a volume that is to be measured now; None while it has not answered yet."""
        volume, pod_uid = key
        with self._lock:
            entry = self._pods.setdefault(pod_uid, {}).setdefault(volume, Entry(plugin, claim))
            if entry.waiting or entry.begun_at is not None:
                return None
            entry.waiting = True
            return entry

    def begin(self, entry: Entry) -> None:
        """A worker asks it now."""
        with self._lock:
            entry.waiting, entry.begun_at = False, self._clock()

    def end(self, entry: Entry, metrics: VolumeMetrics | None, fault: str) -> tuple[bool, bool]:
        """It has answered: whether a fault is news, and whether it was told before that it hangs."""
        with self._lock:
            entry.begun_at, entry.metrics, entry.measured_at = None, metrics, self._clock()
            is_news, entry.fault = bool(fault) and fault != entry.fault, fault
            was_told, entry.told_hanging = entry.told_hanging, False
            if fault:
                self._errors[entry.plugin,] += 1
            return is_news, was_told

    def keep(self, pod_uid: str, volumes: frozenset[str]) -> None:
        """Forget the other volumes of the pod."""
        with self._lock:
            kept = {name: entry for name, entry in self._pods.pop(pod_uid, {}).items() if name in volumes}
            if kept:
                self._pods[pod_uid] = kept

    def newly_hanging(self) -> list[Key]:
        """What has not answered for too long and was not told yet."""
        now = self._clock()
        with self._lock:
            news = []
            for pod_uid, entries in self._pods.items():
                for volume, entry in entries.items():
                    if entry.hangs(now) and not entry.told_hanging:
                        entry.told_hanging = True
                        news.append((volume, pod_uid))
            return news

    def entries(self) -> list[Entry]:
        """All of them; for tests, and for those who tell."""
        with self._lock:
            return [entry for entries in self._pods.values() for entry in entries.values()]

    def collect(self) -> Iterator[Metric]:
        """The families, as they are now. Of a claim that several pods use the youngest values are told, once."""
        now = self._clock()
        with self._lock:
            errors = Counter(self._errors)
        entries = sorted(self.entries(), key=lambda entry: entry.measured_at)
        values: dict[tuple[str, ...], VolumeMetrics] = {
            entry.claim: entry.metrics
            for entry in entries
            if entry.claim is not None
            and entry.metrics is not None
            and now - entry.measured_at <= STALE_SECONDS
            and not entry.hangs(now)
        }
        for name, attribute in _VALUES:
            yield family(name, {claim: getattr(metrics, attribute) or 0 for claim, metrics in values.items()})
        health = {claim: metrics.abnormal for claim, metrics in values.items()}
        yield family(
            "kubelet_volume_stats_health_status_abnormal",
            {claim: float(abnormal) for claim, abnormal in health.items() if abnormal is not None},
        )
        hanging: Counter[tuple[str, ...]] = Counter((entry.plugin,) for entry in entries if entry.hangs(now))
        yield family("volumehost_volume_stats_unanswered", hanging)
        yield family("volumehost_volume_stats_errors_total", errors)
