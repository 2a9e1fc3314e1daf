"""The control plane of a machine without a cluster: runs the controllers over one API, in threads of this process.

The volume manager and the command line call it. Nothing runs before :meth:`ControlPlane.start`; a host whose pods use
no claims never starts it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from volumehost.control.machinery.progress import Steps, failure_lines
from volumehost.errors import StorageDriverError, WaitTimeoutError, error_chain
from volumehost.mount.deadline import in_seconds

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import KubeObject
    from volumehost.control.machinery.changes import ChangeFeed
    from volumehost.control.machinery.controller import Controller, Key
    from volumehost.control.machinery.counting import ControlMetrics
    from volumehost.control.machinery.own_writes import OwnWrites
    from volumehost.control.machinery.queue import Record, WorkQueue
    from volumehost.control.machinery.workers import Workers
    from volumehost.errors import ApiError
    from volumehost.loader.manager import VolumePluginManager

#: How long a key waits after its first failure, in seconds (CSI-EXA-10).
FIRST_DELAY = 1.0
#: Retries are spread by up to this part of their delay (BR-53).
JITTER = 0.1
#: How many keys are worked on at once, those aside that wait for their driver.
WORKERS = 8
#: How often a wait asks its predicate although the plane saw nothing, in seconds: it may depend on something else.
_ASK_SECONDS = 0.5


class ControlPlane:
    """Runs controllers. Safe for threads.

    :param api: what the controllers work on.
    :param prepare: called by :meth:`start`, once; returns the controllers, which work on :attr:`api`. What it imports
        is not paid for before.
    :param steps: where the controllers report what they are at.
    :param first_delay: how long a key waits after its first failure, in seconds; twice as long after each further one.
    :param ended: called by :meth:`stop` with the seconds that are left of its grace.
    """

    def __init__(
        self,
        api: ApiClient,
        prepare: Callable[[ControlPlane], Sequence[Controller]],
        steps: Steps,
        *,
        ended: Callable[[float], object] = lambda _grace: None,
        clock: Callable[[], float] = time.monotonic,
        workers: int = WORKERS,
        first_delay: float = FIRST_DELAY,
    ) -> None:
        self._api = api
        self._writes: OwnWrites | None = None
        self._prepare = prepare
        self._ended = ended
        self._clock = clock
        self._limit = workers
        self._first_delay = first_delay
        self._steps = steps
        self._lock = threading.Lock()
        self._progress = threading.Condition()
        self._count = 0
        self._stopping = False
        self._queue: WorkQueue | None = None
        self._workers: Workers | None = None
        self._feed: ChangeFeed | None = None
        self._controllers: Sequence[Controller] = ()

    @classmethod
    def for_node(
        cls,
        api: ApiClient,
        plugins: VolumePluginManager,
        node_name: str,
        *,
        external_drivers: bool = False,
        volume_in_use: Callable[[str], bool] = lambda _name: False,
        metrics: ControlMetrics | None = None,
    ) -> ControlPlane:
        """The plane with every controller of this package, for one node that is the whole cluster; cheap.

        :param external_drivers: drivers that this host does not have are served by others, as in a cluster.
        :param volume_in_use: whether the node still has the volume of that unique name staged or mounted (BR-46).
        :param metrics: counts what the controllers do.
        """
        from volumehost.control.assembly import plane_for_node

        return plane_for_node(
            api,
            plugins,
            node_name,
            external_drivers=external_drivers,
            volume_in_use=volume_in_use,
            metrics=metrics,
        )

    # --- life -------------------------------------------------------------------------------------------------------

    @property
    def api(self) -> ApiClient:
        """What controllers are to work on from :meth:`start` on: an attempt's own writes are told from others'."""
        return self._writes.client if self._writes is not None else self._api

    @property
    def started(self) -> bool:
        """Whether :meth:`start` was called and :meth:`stop` was not."""
        return self._feed is not None and not self._stopping

    def start(self) -> None:
        """Begin to watch and to work; may be called again, and then costs nothing. Does nothing after :meth:`stop`.

        First creates the objects that drivers of this host bring with them, so that their storage classes are there
        when it returns.
        """
        if self.started:
            return
        with self._lock:
            if self._stopping or self._feed is not None:
                return
            from volumehost.control.machinery.changes import ChangeFeed
            from volumehost.control.machinery.own_writes import OwnWrites
            from volumehost.control.machinery.queue import WorkQueue
            from volumehost.control.machinery.workers import Workers

            self._writes = OwnWrites(self._api)
            self._controllers = self._prepare(self)
            self._queue = WorkQueue(self._clock, self._first_delay, jitter=_jitter)
            self._workers = Workers(self._queue, self._writes, self._seen, clock=self._clock, limit=self._limit)
            feed = ChangeFeed(self._api, self._controllers, self._queue)
            feed.changed = self._seen
            feed.start()
            self._feed = feed
            self._hire()

    def stop(self, grace: float) -> bool:
        """Begin nothing more, and wait at most ``grace`` seconds for what runs; whether all of it has ended.

        What is interrupted goes on from the state that the API has when the next plane starts.
        """
        deadline = self._clock() + grace
        with self._lock:
            self._stopping = True
            queue, feed = self._queue, self._feed
        if queue is None or feed is None:
            return True
        feed.stop()
        if self._workers is not None:
            self._workers.stop()
        queue.stop()
        self._seen()
        drained = queue.wait_drained(max(0.0, deadline - self._clock()))
        self._ended(max(0.0, deadline - self._clock()))
        return drained

    def driver_changed(self, name: str) -> None:
        """A driver came, left or changed: look at once at whatever waits for it. Does not block."""
        queue = self._queue
        if queue is None:
            return
        from volumehost.api.objects import CSIDriver
        from volumehost.control.machinery.controller import Key
        from volumehost.control.machinery.queue import Item

        for controller in self._controllers:
            if controller.kind is CSIDriver:
                queue.add(Item(controller, Key(name)))
        self.driver_freed(name)

    def try_now(self, obj: KubeObject) -> None:
        """Look at the object at once, whatever failed before; those failures no longer count (BR-53)."""
        queue = self._queue
        if queue is None:
            return
        from volumehost.control.machinery.controller import Key
        from volumehost.control.machinery.queue import Item

        for controller in self._controllers:
            if controller.kind is type(obj):
                queue.add(Item(controller, Key.of(obj)), fresh=True)
        self._hire()

    def look_at(self, controller: Controller, keys: Iterable[Key]) -> None:
        """Have a controller of this plane look at these keys. Does not block."""
        queue = self._queue
        if queue is None:
            return
        from volumehost.control.machinery.queue import Item

        for key in keys:
            queue.add(Item(controller, key))
        self._hire()

    def problems(self) -> dict[type[KubeObject], ApiError]:
        """The kinds of which changes cannot be heard now, and why."""
        return self._feed.problems() if self._feed is not None else {}

    def driver_freed(self, name: str) -> None:
        """A driver has come back from a call: look at once at whatever it was not asked for meanwhile. Never blocks."""
        queue = self._queue
        if queue is not None:
            queue.wake(lambda error: _is_about(error, name))
            self._hire()

    # --- questions --------------------------------------------------------------------------------------------------

    def settled(self) -> bool:
        """Whether everything written before this call was looked at, and nothing runs or is due now.

        What failed and waits for its next attempt does not count.
        """
        queue, feed = self._queue, self._feed
        if queue is None or feed is None:
            return False
        # Twice: what ended in between may have written something, and that may have brought up something.
        added = queue.added
        return feed.caught_up() and queue.idle() and feed.caught_up() and queue.added == added

    def wait_until(self, predicate: Callable[[], bool], timeout: float, what: str) -> None:
        """Wait until the predicate holds; it is asked after everything that the plane saw or did.

        :param timeout: seconds.
        :param what: what is waited for, for the error.
        :raises WaitTimeoutError: it does not hold in time; ``details`` tells what every object that failed is at.
        """
        deadline = self._clock() + timeout
        while True:
            count = self._count
            if predicate():
                return
            left = deadline - self._clock()
            if left <= 0:
                raise WaitTimeoutError(
                    f"not so after {in_seconds(timeout)}", action=f"waiting for {what}", details=self._all_failures()
                )
            with self._progress:
                self._progress.wait_for(lambda count=count: self._count != count, min(left, _ASK_SECONDS))  # type: ignore[misc]

    def wait_for_progress(self, count: int, timeout: float) -> int:
        """Wait at most ``timeout`` seconds until something was seen or done since ``count``, an earlier answer.

        :returns: the count to go on from.
        """
        with self._progress:
            self._progress.wait_for(lambda: self._count != count, timeout)
            return self._count

    def explain(self, obj: KubeObject) -> list[str]:
        """What is being done for the object or keeps it, one line each.

        That is the step that is under way, where its worker is when that takes long, or controller, error, number of
        attempts and the seconds until the next; empty when there is nothing to tell.
        """
        from volumehost.control.machinery.controller import Key
        from volumehost.control.machinery.queue import Item

        lines = self._steps.lines(obj)
        queue, workers = self._queue, self._workers
        if queue is None or workers is None:
            return lines
        for controller in self._controllers:
            if controller.kind is type(obj):
                item = Item(controller, Key.of(obj))
                lines += workers.where(item)
                record = queue.record(item)
                if record is not None and record.error is not None:
                    lines += failure_lines(controller.name, record, self._clock())
        return lines

    def step(self, obj: KubeObject) -> str:
        """The step that is under way for the object, or what it waits for; "" when there is nothing to tell."""
        return next(iter(self._steps.lines(obj)), "")

    def retry_in(self, record: Record) -> float | None:
        """Seconds until what failed is tried again: 0 while it is, None when only a change brings it back."""
        if record.running or record.queued:
            return 0.0
        return None if record.due_at is None else max(0.0, record.due_at - self._clock())

    def failure(self, obj: KubeObject) -> Record | None:
        """What is known of whoever failed most often to get on with the object; None when nobody did."""
        from volumehost.control.machinery.controller import Key
        from volumehost.control.machinery.queue import Item

        queue = self._queue
        if queue is None:
            return None
        items = (Item(controller, Key.of(obj)) for controller in self._controllers if controller.kind is type(obj))
        failed = [record for record in map(queue.record, items) if record is not None and record.error is not None]
        return max(failed, key=lambda record: record.attempts, default=None)

    def failing(self) -> dict[str, int]:
        """By controller, how many objects its last attempt failed for."""
        queue = self._queue
        found = [item.controller.name for item, _ in queue.failures()] if queue is not None else []
        return {controller.name: found.count(controller.name) for controller in self._controllers}

    def _all_failures(self) -> list[str]:
        queue = self._queue
        if queue is None:
            return ["the control plane does not run"]
        now = self._clock()
        lines = [f"{name}: {step}" for name, step in self._steps.all()]
        for item, record in queue.failures():
            subject = "/".join(part for part in (item.key.namespace, item.key.name) if part)
            kind = item.controller.kind.__name__.lower()
            lines += [f"{kind} {subject}: {line}" for line in failure_lines(item.controller.name, record, now)]
        return lines

    # --- at work ----------------------------------------------------------------------------------------------------

    def _seen(self) -> None:
        """Something was seen or done."""
        with self._progress:
            self._count += 1
            self._progress.notify_all()
        self._hire()

    def _hire(self) -> None:
        """Have one more worker come, when nobody would take the next item at once."""
        if self._workers is not None:
            self._workers.hire()


def _jitter() -> float:
    return random.uniform(0, JITTER)  # noqa: S311 - spreads retries, guards nothing


def _is_about(error: BaseException, driver: str) -> bool:
    return any(isinstance(link, StorageDriverError) and link.driver in {driver, ""} for link in error_chain(error))
