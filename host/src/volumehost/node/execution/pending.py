"""Which operations run or were refused a moment ago, by volume, pod and node (NPO rules); the executor asks here.

An empty pod or node in a key means "any", so an operation on a whole volume excludes those of its pods.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import msgspec

from volumehost.errors import AlreadyRunningError, BackoffError
from volumehost.node.execution.backoff import MAXIMUM_DELAY, Backoff


class OperationKey(NamedTuple):
    """What an operation works on (NPO-01). An empty volume matches nothing: such an operation always runs."""

    volume: str
    pod: str = ""
    node: str = ""

    def matches(self, other: OperationKey) -> bool:
        """Same volume, and pods and nodes equal or one of them empty (NPO-02)."""
        return (
            bool(self.volume)
            and self.volume == other.volume
            and (not self.pod or not other.pod or self.pod == other.pod)
            and (not self.node or not other.node or self.node == other.node)
        )

    def __str__(self) -> str:
        return f"{{volumeName={self.volume} podName={self.pod} nodeName={self.node}}}"


class PendingOperation(msgspec.Struct, eq=False):
    """One operation that runs, or ran and failed; ``step`` is where it is (the operation writes it).

    ``pod_uid``: the pod that it works for, also where the key excludes those of other pods; "" for none. ``lane``: what
    it shares workers with, which is the storage driver or the plugin. ``thread``: the worker that is at it, None while
    it waits for one. ``progress``: how far a long step is, "" when nothing tells. ``stopping``: it is to
    end where it can.
    """

    key: OperationKey
    name: str
    started_at: float
    pod_uid: str = ""
    lane: str = ""
    running: bool = True
    step: str = ""
    thread: threading.Thread | None = None
    progress: str = ""
    stopping: bool = False
    backoff: Backoff = msgspec.field(default_factory=Backoff)
    #: The step at which the last run failed.
    failed_step: str = ""


class PendingOperations:
    """The table of running and failed operations. Safe for threads; never waits."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[str, list[PendingOperation]] = {}
        #: How many operations run for each pod that has any.
        self._running: dict[str, int] = {}

    def start(self, key: OperationKey, name: str, pod_uid: str = "", lane: str = "") -> PendingOperation:
        """Enter the operation as running (NPO-10 to -14).

        :param pod_uid: the pod that it works for.
        :param lane: what it shares workers with.
        :raises AlreadyRunningError: an operation that matches the key runs.
        :raises BackoffError: the same operation failed a moment ago.
        """
        now = self._clock()
        if not key.volume:
            return PendingOperation(key, name, now, pod_uid, lane)
        with self._lock:
            entries = self._entries.setdefault(key.volume, [])
            entry = _lookup(entries, key) if entries else None
            if entry is None:
                entry = PendingOperation(key, name, now, pod_uid, lane)
                entries.append(entry)
                self._count(pod_uid, 1)
                return entry
            if entry.running:
                raise AlreadyRunningError(
                    "An operation with that name is already executing.",
                    action=f"Failed to create operation with name {key}",
                    subject=key.volume,
                )
            if entry.name != name:
                entry.backoff.reset()
            elif entry.backoff.blocks(now):
                raise _refusal(entry, key, now)
            entry.key, entry.name, entry.started_at, entry.pod_uid = key, name, now, pod_uid
            entry.lane, entry.running, entry.step, entry.progress, entry.stopping = lane, True, "", "", False
            self._count(pod_uid, 1)
            return entry

    def finish(self, entry: PendingOperation, error: BaseException | None) -> float:
        """Take the operation's end: remove the entry on success, else count the failure (NPO-16).

        Returns the seconds until a retry may start, 0 on success.
        """
        now = self._clock()
        if not entry.key.volume:
            return 0.0
        with self._lock:
            self._end(entry)
            entry.step = entry.progress = ""
            if error is not None:
                entry.backoff.failed(error, now)
                return entry.backoff.delay
            self._remove(entry)
            return 0.0

    def cancel(self, entry: PendingOperation) -> None:
        """The operation could not be handed to a worker after all: forget that it started."""
        with self._lock:
            self._end(entry)
            if not entry.backoff.attempts:
                self._remove(entry)

    def has_any(self, volume: str) -> bool:
        """Whether any operation on the volume runs or has failed; nearly always the answer to all other questions."""
        return volume in self._entries

    def is_pending(self, key: OperationKey) -> bool:
        """Whether any operation that matches runs (NPO-18)."""
        with self._lock:
            return any(entry.running and entry.key.matches(key) for entry in self._entries.get(key.volume, ()))

    def runs(self, volume: str, names: Collection[str]) -> bool:
        """Whether an operation with one of the names runs on the volume, for whatever pod."""
        with self._lock:
            return any(entry.running and entry.name in names for entry in self._entries.get(volume, ()))

    def works_for(self, pod_uid: str) -> bool:
        """Whether any operation for the pod runs, whatever its key."""
        return pod_uid in self._running

    def is_safe_to_retry(self, key: OperationKey, name: str) -> bool:
        """Whether :meth:`start` would let the operation run now (NPO-18)."""
        with self._lock:
            entry = _lookup(self._entries.get(key.volume, ()), key)
            if entry is None:
                return True
            return not entry.running and not (entry.name == name and entry.backoff.blocks(self._clock()))

    def find(self, key: OperationKey) -> PendingOperation | None:
        """The entry that matches, for status: a running one first."""
        with self._lock:
            return _lookup(self._entries.get(key.volume, ()), key)

    def reset(self, key: OperationKey) -> None:
        """Forget the failures of what matches: its spec changed (BR-53). Running operations are not touched."""
        with self._lock:
            for entry in [found for found in self._entries.get(key.volume, ()) if found.key.matches(key)]:
                if not entry.running:
                    self._remove(entry)

    def reset_where(self, obsolete: Callable[[BaseException], bool], volume: str | None = None) -> list[str]:
        """Forget failures whose reason is gone, of one volume or of all; returns the volumes concerned."""
        found = []
        with self._lock:
            names = list(self._entries) if volume is None else [volume]
            for name in names:
                for entry in list(self._entries.get(name, ())):
                    if not entry.running and entry.backoff.error is not None and obsolete(entry.backoff.error):
                        self._remove(entry)
                        found.append(name)
        return found

    def running(self) -> list[PendingOperation]:
        """All that run now."""
        with self._lock:
            return [entry for entries in self._entries.values() for entry in entries if entry.running]

    def failed(self) -> list[PendingOperation]:
        """All whose last run failed and that are to be tried again."""
        with self._lock:
            return [entry for entries in self._entries.values() for entry in entries if not entry.running]

    def stop_running(self) -> None:
        """Have those end that can end on the way."""
        for entry in self.running():
            entry.stopping = True

    def collect(self) -> None:
        """Drop failures whose backoff expired long ago (NPO-16, improved)."""
        now = self._clock()
        with self._lock:
            for entries in list(self._entries.values()):
                for entry in list(entries):
                    if not entry.running and now - entry.backoff.failed_at > entry.backoff.delay + 4 * MAXIMUM_DELAY:
                        self._remove(entry)

    def _end(self, entry: PendingOperation) -> None:
        if entry.running and entry.key.volume:
            self._count(entry.pod_uid, -1)
        entry.running = False
        entry.thread = None

    def _count(self, pod_uid: str, change: int) -> None:
        number = self._running.get(pod_uid, 0) + change
        if number:
            self._running[pod_uid] = number
        else:
            del self._running[pod_uid]

    def _remove(self, entry: PendingOperation) -> None:
        entries = self._entries.get(entry.key.volume)
        if entries is None:
            return
        if len(entries) > 1:
            entries[:] = [other for other in entries if other is not entry]
        elif entries[0] is entry:
            del self._entries[entry.key.volume]


def _lookup(entries: list[PendingOperation] | tuple[()], key: OperationKey) -> PendingOperation | None:
    """A running match, else one with the equal key, else the first match (NPO-03)."""
    matches = [entry for entry in entries if entry.key.matches(key)]
    return _first(entry for entry in matches if entry.running) or (
        _first(entry for entry in matches if entry.key == key) or (matches[0] if matches else None)
    )


def _first(entries: Iterator[PendingOperation]) -> PendingOperation | None:
    return next(entries, None)


def _refusal(entry: PendingOperation, key: OperationKey, now: float) -> BackoffError:
    retry_in = entry.backoff.retry_in(now)
    return BackoffError(
        f"An operation with that name failed {now - entry.backoff.failed_at:.1f}s ago. No retries permitted for "
        f'{retry_in:.1f}s ({entry.backoff.delay:g}s). Last error: "{entry.backoff.error}".',
        retry_in=retry_in,
        action=f'Failed to create operation with name "{key}"',
        subject=key.volume,
    )
