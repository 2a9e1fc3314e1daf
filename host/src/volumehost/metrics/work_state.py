"""What a manager is busy with and what it keeps, looked up at each scrape: what the kubelet has no names for."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from volumehost._version import __version__
from volumehost.metrics.families import family, single
from volumehost.node.state.states import MountState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import Metric

    from volumehost.node.assembly import NodeParts
    from volumehost.node.manager import VolumeManager
    from volumehost.node.populating.populator import PodRecord
    from volumehost.storage_driver import DriverStatus

#: An operation that has run for so many seconds is called stuck: status then tells where it hangs.
STUCK_SECONDS: Final = 10.0


def build_families() -> Iterator[Metric]:
    """Which program this is."""
    yield family("volumehost_build_info", {(__version__, platform.python_version()): 1})


def work_families(manager: VolumeManager) -> Iterator[Metric]:
    """Operations and workers."""
    parts = manager.parts
    now = parts.services.clock()
    running: Counter[tuple[str, ...]] = Counter()
    stuck: Counter[tuple[str, ...]] = Counter()
    oldest: dict[tuple[str, ...], float] = {}
    waiting = 0
    for entry in parts.pending.running():
        age = now - entry.started_at
        oldest[entry.name,] = max(age, oldest.get((entry.name,), 0.0))
        if entry.thread is None:
            waiting += 1
            continue
        running[entry.name,] += 1
        if age > STUCK_SECONDS:
            stuck[entry.name, entry.step] += 1
    yield family("volumehost_operations_running", running)
    yield family("volumehost_operations_oldest_seconds", oldest)
    yield family("volumehost_operations_stuck", stuck)
    yield single("volumehost_operations_waiting", waiting)
    yield family("volumehost_operations_to_retry", Counter((entry.name,) for entry in parts.pending.failed()))
    yield single("volumehost_worker_threads", parts.pool.threads)
    yield single("volumehost_worker_threads_limit", parts.pool.limit)


def record_families(manager: VolumeManager) -> Iterator[Metric]:
    """Pods, the journal, the store."""
    parts = manager.parts
    yield family("volumehost_pods", _pods(parts))
    yield single("volumehost_journal_bytes", parts.services.journal.size)
    path, errors = getattr(manager.api, "path", None), getattr(manager.api, "errors", None)
    if isinstance(path, str):
        yield single("volumehost_store_bytes", _size(path) + _size(f"{path}-wal"))
    if isinstance(errors, int):
        yield single("volumehost_store_errors_total", errors)


def driver_families(statuses: Iterable[DriverStatus]) -> list[Metric]:
    """Storage drivers: whether they answer, and how often they were started again."""
    known = list(statuses)
    up: dict[tuple[str, ...], float]
    up = {(each.name,): float(each.state in {"ready", "slow"}) for each in known if each.state != "stopped"}
    return [
        family("volumehost_driver_state", {(each.name, str(each.state)): 1 for each in known}),
        family("volumehost_driver_up", up),
        family("volumehost_driver_restarts_total", {(each.name,): each.restarts for each in known}),
    ]


def _pods(parts: NodeParts) -> Counter[tuple[str, ...]]:
    states: Counter[tuple[str, ...]] = Counter()
    told = parts.populator.records()
    for record in told:
        word = "mounted" if _is_mounted(parts, record) else parts.status.of_pod(record.pod).state
        states[word,] += 1
    known = {record.uid for record in told}
    states["unmounting",] += sum(
        parts.populator.has_ended(uid) for uid in parts.services.actual.pods() if uid not in known
    )
    return +states


def _is_mounted(parts: NodeParts, record: PodRecord) -> bool:
    """What most pods are; found out without the status of each volume."""
    uid = record.pod.metadata.uid
    mounts = parts.services.actual.mounts_of_pod(uid)
    return (
        record.processed
        and all(mount.state is MountState.MOUNTED for mount in mounts)
        and len(mounts) == len(parts.services.desired.volumes_of_pod(uid))
    )


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
