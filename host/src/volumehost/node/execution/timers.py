"""One daemon thread and a heap: calls back when something is due. Started when there is something to wait for."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Timers:
    """Calls functions later, each once, one after the other on the timer's own thread. Safe for threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._condition = threading.Condition(threading.Lock())
        self._heap: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def call_later(self, seconds: float, function: Callable[[], object]) -> None:
        """Call the function in ``seconds``; it must be quick. Nothing happens after :meth:`stop`."""
        with self._condition:
            if self._stopping:
                return
            heapq.heappush(self._heap, (self._clock() + seconds, next(self._numbers), function))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="volumehost-timer", daemon=True)
                self._thread.start()
            elif self._heap[0][2] is function:
                self._condition.notify()

    def stop(self) -> None:
        """Forget everything; the thread ends."""
        with self._condition:
            self._stopping = True
            self._heap.clear()
            self._condition.notify()

    def _run(self) -> None:
        while True:
            with self._condition:
                if self._stopping:
                    return
                if not self._heap:
                    self._condition.wait()
                    continue
                wait = self._heap[0][0] - self._clock()
                if wait > 0:
                    self._condition.wait(wait)
                    continue
                function = heapq.heappop(self._heap)[2]
            try:
                function()
            except Exception:
                logger.exception("a timer's function raised")
