"""The threads of the control plane: they take keys from the queue, and more come while some wait for their driver."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from volumehost.errors import VolumeHostError

if TYPE_CHECKING:
    from volumehost.control.machinery.own_writes import OwnWrites
    from volumehost.control.machinery.queue import Item, WorkQueue

logger = logging.getLogger(__name__)

#: A key that has been worked on for so many seconds does not count: it waits for its driver, and the others must not
#: wait for that. How many threads there may be with those; of one driver that hangs the gate
#: (:mod:`volumehost.control.machinery.gate`) lets no more than a few calls begin.
STUCK_SECONDS = 1.0
MOST_WORKERS = 256
#: For how long a key has been worked on when it is told where its worker is, in seconds.
LONG_SECONDS = 1.0
#: How long a worker beyond the first waits for something to do before it ends, in seconds.
IDLE_SECONDS = 5.0


class Workers:
    """Safe for threads.

    :param worked: called after each key.
    :param limit: how many keys are worked on at once, those aside that are stuck.
    """

    def __init__(
        self,
        queue: WorkQueue,
        writes: OwnWrites,
        worked: Callable[[], None],
        *,
        clock: Callable[[], float],
        limit: int,
    ) -> None:
        self._queue = queue
        self._writes = writes
        self._worked = worked
        self._clock = clock
        self._limit = limit
        self._lock = threading.Lock()
        self._threads = 0
        #: Since when each thread that works on a key does, and on which.
        self._busy: dict[threading.Thread, tuple[float, Item]] = {}
        self._looks_again = False
        self._stopping = False

    def hire(self) -> None:
        """Have one more worker come, when nobody would take the next item at once."""
        if not self._queue.needs_taker:
            return
        with self._lock:
            if self._stopping:
                return
            if self._has_enough():
                if not self._looks_again:
                    self._looks_again = True
                    timer = threading.Timer(STUCK_SECONDS, self._look_again)
                    timer.daemon = True
                    timer.start()
                return
            self._threads += 1
        threading.Thread(target=self._work, name="volumehost-control", daemon=True).start()

    def stop(self) -> None:
        """No worker comes any more; those that wait end."""
        with self._lock:
            self._stopping = True

    def where(self, item: Item) -> list[str]:
        """For how long the item has been worked on, and where its worker is, when that is long."""
        with self._lock:
            at_it = [(thread, since) for thread, (since, each) in self._busy.items() if each == item]
        now, found = self._clock(), []
        for thread, since in at_it:
            if now - since > LONG_SECONDS:
                from volumehost.mount.whereabouts import whereabouts

                place = whereabouts(thread)
                found.append(f"{item.controller.name}: for {now - since:.0f} s{', ' if place else ''}{place}")
        return found

    def _look_again(self) -> None:
        """Some of those that work may be stuck by now."""
        with self._lock:
            self._looks_again = False
        self.hire()

    def _has_enough(self) -> bool:
        """Whether no thread may come, or be kept, beyond those there are; called with the lock."""
        now = self._clock()
        stuck = sum(now - since >= STUCK_SECONDS for since, _ in self._busy.values())
        return self._threads - stuck >= self._limit or self._threads >= MOST_WORKERS

    def _work(self) -> None:
        """Take items until the plane stops, or there is nothing to do and somebody else waits."""
        me = threading.current_thread()
        while True:
            item = self._queue.take(IDLE_SECONDS)
            if item is None:
                with self._lock:
                    if self._stopping or self._threads > 1:
                        self._threads -= 1
                        return
                continue
            with self._lock:
                self._busy[me] = self._clock(), item
            self.hire()
            after, error = None, None
            self._writes.begin()
            try:
                after = item.controller.reconcile(item.key)
            except BaseException as caught:  # noqa: BLE001 - one key's trouble is no other's, even a plugin's exit (BR-18)
                error = caught
                _log(item.controller.name, item.key, caught)
            self._queue.finish(item, after=after, error=error, wrote=self._writes.end())
            with self._lock:
                was_stuck = self._clock() - self._busy.pop(me)[0] >= STUCK_SECONDS
                self._threads -= 1
                if was_stuck and self._has_enough():  # somebody came in its place
                    break
                self._threads += 1
            self._worked()
        self._worked()


def _log(controller: str, key: tuple[str, str], error: BaseException) -> None:
    name, namespace = key
    subject = f"{namespace}/{name}" if namespace else name
    if isinstance(error, VolumeHostError):
        logger.info("not done yet: controller=%s object=%s error=%s", controller, subject, error)
    else:
        logger.error("a controller failed: controller=%s object=%s", controller, subject, exc_info=error)
