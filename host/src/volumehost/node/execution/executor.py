"""Starts operations: one at a time for each key, with backoff, each on a worker, its intent recorded first."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from volumehost.errors import RootDirectoryError
from volumehost.node.execution.backoff import absent_driver
from volumehost.node.execution.hanging import SlowNotes
from volumehost.node.execution.lanes import Task, lane_of
from volumehost.node.execution.pending import OperationKey, PendingOperation, PendingOperations
from volumehost.node.execution.timers import Timers
from volumehost.node.execution.workers import WorkerPool
from volumehost.node.operations.common import Failure, Operation, Services, Steps, intent_refused, was_stopped

if TYPE_CHECKING:
    from volumehost.errors import TransientOperationError
    from volumehost.node.execution.operation_metrics import OperationLabels, OperationMetrics
    from volumehost.node.journal.records import Fields

logger = logging.getLogger(__name__)

#: How often running operations are looked at, in seconds, and how soon when some wait for a worker.
WATCH_SECONDS = 1.0
HURRY_SECONDS = 0.05

_NUMBER = re.compile(r"\d+")


class _Begun(NamedTuple):
    """An operation that was started and not handed over yet."""

    operation: Operation
    entry: PendingOperation
    intent: Sequence[Fields]


class Executor:
    """Runs operations. Only one thread at a time starts them: the one that reconciles.

    ``on_finished`` is called on the worker with volume, pod and the seconds until a retry may start. The reconciler
    sets it.
    """

    def __init__(
        self,
        services: Services,
        pending: PendingOperations,
        pool: WorkerPool,
        timers: Timers,
        metrics: OperationMetrics | None = None,
    ) -> None:
        self.on_finished: Callable[[str, str, float], None] = _nobody_waits
        self._services = services
        self._pending = pending
        self._pool = pool
        self._timers = timers
        self._metrics = metrics
        self._watching = False
        self._hurries = False
        self._slow = SlowNotes(services, pending)
        self._begun: list[_Begun] = []
        #: The workers that are about to end their operation, and start what follows from that.
        self._ending: set[int] = set()

    def start(self, operation: Operation) -> None:
        """Enter the operation as running; it is handed to a worker by the next :meth:`go`.

        :raises AlreadyRunningError: something runs on the same volume (NPO-11).
        :raises BackoffError: it failed a moment ago (BACKOFF-02).
        """
        intent = operation.intent()
        lane = lane_of(operation, self._services.actual)
        entry = self._pending.start(operation.key, operation.name, operation.pod_uid, lane)
        self._begun.append(_Begun(operation, entry, intent))

    def go(self) -> None:
        """Record the intents of what was started since the last call, and hand it to workers; returns at once.

        The intents are appended to the journal together, so that the operations share one sync.
        """
        if not self._begun:
            return
        begun, self._begun = self._begun, []
        ticket, refusal = 0, None
        try:
            ticket = self._services.journal.write(*(record for each in begun for record in each.intent))
        except RootDirectoryError as error:
            refusal = error
        lanes: dict[str, list[Task]] = {}
        for each in begun:
            lanes.setdefault(each.entry.lane, []).append(self._task(each, ticket, refusal))
        if threading.get_ident() in self._ending:
            self._pool.nearly_done()
        try:
            for lane, tasks in lanes.items():
                self._pool.submit(lane, *tasks)
        except RuntimeError:  # the manager ends
            for each in begun:
                self._pending.cancel(each.entry)
        if not self._watching:
            self._watching = True
            self._timers.call_later(HURRY_SECONDS, self._watch)
        elif not self._hurries:
            self._hurries = True
            self._timers.call_later(HURRY_SECONDS, self._hurry)

    def _task(self, begun: _Begun, ticket: int, refusal: RootDirectoryError | None) -> Callable[[], None]:
        refused = None
        if refusal is not None:
            refused = intent_refused(refusal, begun.operation.key.volume)
            refused.__cause__ = refusal
        return partial(self._run, begun.operation, begun.entry, ticket, refused)

    def is_busy(self, volume: str, pod_uid: str = "") -> bool:
        """Whether any operation on the volume runs, or on the volume of this pod."""
        return self._pending.has_any(volume) and self._pending.is_pending(OperationKey(volume, pod_uid))

    def forget_failures(self, obsolete: Callable[[BaseException], bool], volume: str | None = None) -> list[str]:
        """What failed for a reason that is gone may start at once; returns the volumes concerned."""
        return self._pending.reset_where(obsolete, volume)

    def _hurry(self) -> None:
        self._hurries = False
        self._pool.hurry()

    def _watch(self) -> None:
        """While operations run: hurry when some wait (BR-52), and note where slow ones are."""
        running = self._pending.running()
        self._slow.take(running)
        waits = self._pool.hurry()
        self._pending.collect()
        self._watching = bool(running)
        if running:
            self._timers.call_later(HURRY_SECONDS if waits else WATCH_SECONDS, self._watch)

    def _run(
        self, operation: Operation, entry: PendingOperation, ticket: int, refused: TransientOperationError | None
    ) -> None:
        started, metrics = self._services.clock(), self._metrics
        count = None if metrics is None else lambda *part: self._count_part(metrics, operation, *part)
        steps = Steps(self._services, entry, ticket, refused, count)
        entry.thread = threading.current_thread()
        failure: BaseException | None = None
        # Before it runs: afterwards the volume may be forgotten.
        labels = self._labels_of(operation) if self._metrics is not None else None
        try:
            operation.run(steps)
        except BaseException as error:  # noqa: BLE001 - on a worker every one is a plugin's own (NPO-17, BR-18)
            failure = error
        if failure is None and logger.isEnabledFor(logging.INFO):
            again = f", after {entry.backoff.attempts} failures" if entry.backoff.attempts else ""
            logger.info("operation %s succeeded%s: %s", operation.name, again, _words_of(operation))
        if failure is not None:
            if absent_driver(failure) is not None:
                self._watch_drivers()
            self._tell(operation, entry, failure)
        counts = failure is not None and not was_stopped(failure)
        retry_in = self._pending.finish(entry, failure if counts else None)
        if self._metrics is not None and labels is not None:
            self._count(self._metrics, operation, labels, started, failure)
        me = threading.get_ident()
        self._ending.add(me)
        try:
            self.on_finished(operation.key.volume, operation.pod_uid, retry_in)
        finally:
            self._ending.discard(me)

    def _watch_drivers(self) -> None:
        """From the first driver that is missing on it is heard when one registers (BR-27)."""
        try:
            self._services.control.watch_drivers()
        except Exception:
            logger.exception("storage drivers cannot be watched; what waits for one looks again every few seconds")

    def _labels_of(self, operation: Operation) -> OperationLabels:
        from volumehost.node.execution.operation_metrics import labels_of

        return labels_of(operation, self._services.actual)

    def _count(
        self,
        metrics: OperationMetrics,
        operation: Operation,
        labels: OperationLabels,
        started: float,
        failure: BaseException | None,
    ) -> None:
        now = self._services.clock()
        try:
            metrics.observe(operation.name, now - started, failure, labels)
            if failure is None and operation.requested_at is not None:
                metrics.mounted(now - operation.requested_at, labels)
        except Exception:
            logger.exception("the metrics of %s were not taken", operation.name)

    def _count_part(
        self, metrics: OperationMetrics, operation: Operation, name: str, seconds: float, error: BaseException | None
    ) -> None:
        try:
            metrics.observe(name, seconds, error, self._labels_of(operation))
        except Exception:
            logger.exception("the metrics of %s were not taken", name)

    def _tell(self, operation: Operation, entry: PendingOperation, failure: BaseException) -> None:
        # Its first failure, and another one, are warnings; the same again is told by status and counted events (BR-53).
        log = logger.debug if _same_words(entry.backoff.error, failure) else logger.warning
        attempts = entry.backoff.attempts_after(failure)
        count = f"attempt {attempts}" if attempts else "to be tried again soon"
        if was_stopped(failure):
            logger.info("operation %s was ended on the way: %s", operation.name, failure)
        else:
            log("operation %s failed, %s: %s", operation.name, count, failure)
        logger.debug("operation %s on %s", operation.name, operation.key, exc_info=failure)
        retry_at = self._services.wall_clock() + entry.backoff.delay_after(failure)
        entry.failed_step = entry.step
        try:
            operation.failed(Failure(failure, attempts, retry_at, operation.name, entry.step))
        except Exception:
            logger.exception("the failure of %s on %s could not be recorded", operation.name, operation.key)


def _words_of(operation: Operation) -> str:
    """On what it worked, in words: a log of the agent is read by people."""
    pod = f", pod {operation.pod_uid}" if operation.pod_uid else ""
    return f"volume {operation.key.volume}{pod}"


def _same_words(one: BaseException | None, other: BaseException) -> bool:
    """Whether two errors say the same, numbers aside: an age, say."""
    return one is not None and _NUMBER.sub("", str(one)) == _NUMBER.sub("", str(other))


def _nobody_waits(volume: str, pod_uid: str, retry_in: float) -> None:
    del volume, pod_uid, retry_in
