"""Waits of callers for a pod: woken by the operations that end, never by polling."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class PodWaits:
    """Callers that wait for something about a pod. Safe for threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waits: dict[str, list[tuple[Callable[[], bool], threading.Event]]] = {}

    def wait(self, pod_uid: str, condition: Callable[[], bool], timeout: float) -> bool:
        """Wait at most ``timeout`` seconds until the condition holds; whether it does.

        The condition is asked at once, and then whenever :meth:`notify` is called for the pod, by that caller.
        """
        deadline = self._clock() + timeout
        with self._registered(pod_uid, condition) as event:
            while not condition():
                left = deadline - self._clock()
                if left <= 0 or not event.wait(left):
                    return condition()
                event.clear()
            return True

    def notify(self, pod_uid: str) -> None:
        """Something about the pod changed: wake those whose condition holds now."""
        if pod_uid not in self._waits:
            return
        with self._lock:
            waits = list(self._waits.get(pod_uid, ()))
        for condition, event in waits:
            if condition():
                event.set()

    @contextmanager
    def _registered(self, pod_uid: str, condition: Callable[[], bool]) -> Iterator[threading.Event]:
        entry = (condition, threading.Event())
        with self._lock:
            self._waits.setdefault(pod_uid, []).append(entry)
        try:
            yield entry[1]
        finally:
            with self._lock:
                self._waits[pod_uid].remove(entry)
                if not self._waits[pod_uid]:
                    del self._waits[pod_uid]
