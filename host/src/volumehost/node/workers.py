"""A bounded pool of daemon threads for operations. A task that hangs holds up itself and nobody else.

``concurrent.futures`` is not used: it joins its threads when the interpreter ends, so that one hung mount would keep
the process from exiting (BR-52).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

logger = logging.getLogger(__name__)

Task = Callable[[], None]

#: A task that has run for this many seconds is not a quick one.
QUICK_SECONDS = 0.003


class WorkerPool:
    """Runs tasks in daemon threads, at most ``size`` at a time that are not stuck.

    A burst of quick tasks is worked off by one thread, which is faster than several that contend for the interpreter.
    Whoever notices that it takes long calls :meth:`hurry`; threads then join in until nothing waits any more.

    A task counts as stuck once it has run for ``stuck_after`` seconds: its thread then no longer counts against
    ``size``, up to ``limit`` threads in all. Threads are started when needed and end with :meth:`stop`.
    """

    def __init__(
        self, clock: Callable[[], float], *, size: int = 16, limit: int = 128, stuck_after: float = 10.0
    ) -> None:
        self._clock = clock
        self._size = size
        self._limit = limit
        self._stuck_after = stuck_after
        self._lock = threading.Lock()  # the condition's own, half the price where nobody waits
        self._condition = threading.Condition(self._lock)
        self._tasks: deque[Task] = deque()
        self._threads = 0
        self._idle = 0
        self._coming = 0
        self._hurried = False
        self._busy_since: dict[int, float] = {}
        self._stopping = False

    def submit(self, *tasks: Task) -> None:
        """Queue tasks; they must not raise.

        :raises RuntimeError: the pool has been stopped.
        """
        with self._lock:
            if self._stopping:
                raise RuntimeError("the worker pool has been stopped")
            self._tasks += tasks
            if self._hurried or not self._somebody_is_quick():
                self._call_a_thread()

    def nearly_done(self) -> None:
        """The task that calls this is at its end: what it submits from now on is taken by its own thread, in its turn.

        No other has to be woken for that.
        """
        me = threading.get_ident()
        with self._lock:
            if me in self._busy_since:
                self._busy_since[me] = self._clock()

    def hurry(self) -> bool:
        """Have more threads join in while tasks wait, also in the place of those that hang; whether any waits."""
        with self._lock:
            self._hurried = bool(self._tasks)
            if self._hurried:
                self._call_a_thread()
            return self._hurried

    def stop(self, timeout: float) -> bool:
        """Take no more tasks, drop the queued ones, and wait for running ones; whether all have ended."""
        deadline = self._clock() + timeout
        with self._condition:
            self._stopping = True
            self._tasks.clear()
            self._condition.notify_all()
            while self._busy_since:
                left = deadline - self._clock()
                if left <= 0:
                    return False
                self._condition.wait(left)
            return True

    @property
    def threads(self) -> int:
        """How many threads there are now."""
        return self._threads

    # --- inside the condition ---------------------------------------------------------------------------------------

    def _somebody_is_quick(self) -> bool:
        """Whether a thread is at a task that it began just now, and so will soon take the next."""
        now = self._clock()
        return any(now - since < QUICK_SECONDS for since in self._busy_since.values())

    def _call_a_thread(self) -> None:
        """Have one thread look at the queue, unless one is on its way."""
        if self._coming:
            return
        if self._idle:
            self._coming = 1
            self._condition.notify()
            return
        now = self._clock()
        stuck = sum(now - since > self._stuck_after for since in self._busy_since.values())
        if self._threads - stuck >= self._size or self._threads >= self._limit:
            return  # those that run take the task in turn
        self._threads += 1
        self._coming = 1
        try:
            threading.Thread(target=self._work, name=f"volumehost-worker-{self._threads}", daemon=True).start()
        except RuntimeError as error:
            self._threads -= 1
            self._coming = 0
            logger.warning("cannot start a worker thread, %d run: %s", self._threads, error)

    def _next_task(self, me: int) -> Task | None:
        """Wait for a task; None when the thread is to end."""
        arriving = me not in self._busy_since
        self._busy_since.pop(me, None)
        while not self._stopping:
            if arriving:
                self._coming = 0
            if self._tasks and not self._stopping:
                task = self._tasks.popleft()
                self._busy_since[me] = self._clock()
                if not self._tasks:
                    self._hurried = False
                elif self._hurried:
                    self._call_a_thread()
                return task
            if not self._tasks:
                self._idle += 1
                self._condition.wait_for(lambda: self._coming or self._stopping)
                self._idle -= 1
                arriving = True
        self._threads -= 1
        self._condition.notify_all()
        return None

    def _work(self) -> None:
        me = threading.get_ident()
        while True:
            with self._lock:
                task = self._next_task(me)
            if task is None:
                return
            try:
                task()
            except BaseException:
                logger.exception("a worker's task raised, which it must not")
            del task
