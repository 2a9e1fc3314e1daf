"""A bounded pool of daemon threads for operations. A task that hangs holds up itself and nobody else.

``concurrent.futures`` is not used: it joins its threads when the interpreter ends, so that one hung mount would keep
the process from exiting (BR-52).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from volumehost.node.execution.computing import Computing
from volumehost.node.execution.lanes import Lanes, Task

logger = logging.getLogger(__name__)

#: How many threads there are at most, and how many tasks of one lane run at a time.
MOST_THREADS = 256
SHARE = 16


class WorkerPool:
    """Runs tasks in daemon threads: at most ``size`` at a time that are quick, and at most ``limit`` threads in all.

    Tasks come in lanes, one for each storage driver or plugin, which take turns. Of one lane at most ``share`` run at a
    time, those aside that have run for ``stuck_after`` seconds; and a lane that hangs never gets all of the threads.
    What it has no thread for waits, and waits alone: see :class:`~volumehost.node.execution.lanes.Lanes`.

    A burst of quick tasks is worked off by one thread, which is faster than several that contend for the interpreter.
    Whoever notices that it takes long calls :meth:`hurry`; threads then join in until nothing waits any more. In a lane
    whose tasks took long before nobody has to notice first.

    Threads are started when needed; those that have nothing to do stay, up to ``size``, until :meth:`stop`.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        size: int = 2 * SHARE,
        share: int = SHARE,
        limit: int = MOST_THREADS,
        stuck_after: float = 2.0,
    ) -> None:
        self._clock = clock
        self._size = size
        self._limit = limit
        self._lock = threading.Lock()  # the condition's own, half the price where nobody waits
        self._condition = threading.Condition(self._lock)
        self._lanes = Lanes(share=share, limit=limit, stuck_after=stuck_after)
        self._threads = 0
        self._idle = 0
        self._coming = 0
        self._hurried = False
        #: Those that work compute: one of them does it faster than all.
        self._crowded = False
        self._stopping = False
        self._computing = Computing()

    def submit(self, lane: str, *tasks: Task) -> None:
        """Queue tasks of one lane; they must not raise.

        :raises RuntimeError: the pool has been stopped.
        """
        with self._lock:
            if self._stopping:
                raise RuntimeError("the worker pool has been stopped")
            self._lanes.put(lane, *tasks)
            now = self._clock()
            if self._hurried or not self._lanes.somebody_is_quick(now):
                self._call_a_thread(now)

    def nearly_done(self) -> None:
        """The task that calls this is at its end: what it submits from now on is taken by its own thread, in its turn.

        No other has to be woken for that.
        """
        with self._lock:
            self._lanes.nearly_end(threading.get_ident(), self._clock())

    def hurry(self) -> bool:
        """Have more threads join in while tasks wait that one could take; whether any does.

        None joins in while tasks are worked off that compute and wait for nobody, which it would only make slower, and
        all but one of those that are at it stop; so ask again as long as any task waits.
        """
        with self._lock:
            now = self._clock()
            waits = self._lanes.can_take(now)
            gets_on = self._lanes.slow(now) < self._lanes.busy and self._computing.any()
            # Those who computed when it was last asked may only have been held up: then one joins in, and no more yet.
            self._hurried = waits and not gets_on and not self._crowded
            self._crowded = waits and gets_on
            if waits and not gets_on:
                self._call_a_thread(now)
            return waits

    def stop(self, timeout: float) -> bool:
        """Take no more tasks, drop the queued ones, and wait for running ones; whether all have ended."""
        deadline = self._clock() + timeout
        with self._condition:
            self._stopping = True
            self._lanes.clear()
            self._condition.notify_all()
            while self._lanes.busy:
                left = deadline - self._clock()
                if left <= 0:
                    return False
                self._condition.wait(left)
            return True

    @property
    def threads(self) -> int:
        """How many threads there are now."""
        return self._threads

    @property
    def limit(self) -> int:
        """How many there are at most."""
        return self._limit

    # --- inside the condition ---------------------------------------------------------------------------------------

    def _call_a_thread(self, now: float) -> None:
        """Have one thread look at what waits, unless one is on its way."""
        if self._coming:
            return
        if self._idle:
            self._coming = 1
            self._condition.notify()
            return
        if self._threads >= self._limit or self._threads - self._lanes.slow(now) >= self._size:
            return  # those that run take the task in turn
        self._threads += 1
        self._coming = 1
        try:
            threading.Thread(target=self._work, name=f"volumehost-worker-{self._threads}", daemon=True).start()
        except RuntimeError as error:
            self._threads -= 1
            self._coming = 0
            logger.warning("cannot start a worker thread, %d run: %s", self._threads, error)

    def _next_task(self, me: int, *, arriving: bool) -> Task | None:
        """Wait for a task; None when the thread is to end."""
        now = self._clock()
        if not (arriving or self._hurried or self._stopping):
            task = self._lanes.go_on(me, now)
            if task is not None:
                return task
        self._lanes.end(me, now)
        while not self._stopping:
            if arriving:
                self._coming = 0
            taken = self._lanes.take(me, now) if arriving or not self._is_one_too_many(now) else None
            if taken is not None:
                if self._hurried or taken.alone:
                    self._hurried = self._lanes.can_take(now)
                    if self._hurried:
                        self._call_a_thread(now)
                if arriving:
                    self._computing.begin(threading.get_native_id())
                return taken.task
            if self._idle >= self._size:
                break  # it came in the place of one that hung
            self._computing.end(threading.get_native_id())
            self._idle += 1
            self._condition.wait_for(lambda: self._coming or self._stopping)
            self._idle -= 1
            arriving = True
            now = self._clock()
        self._threads -= 1
        self._computing.forget(threading.get_native_id())
        self._condition.notify_all()
        return None

    def _is_one_too_many(self, now: float) -> bool:
        """Whether another thread takes what waits sooner than it could be done by both."""
        return self._crowded and self._lanes.busy > self._lanes.slow(now)

    def _work(self) -> None:
        me = threading.get_ident()
        arriving = True
        while True:
            with self._lock:
                task = self._next_task(me, arriving=arriving)
            if task is None:
                return
            arriving = False
            try:
                task()
            except BaseException:
                logger.exception("a worker's task raised, which it must not")
            del task
