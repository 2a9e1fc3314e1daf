"""Waits of callers for a pod: woken by the operations that end, never by polling."""

from __future__ import annotations

import threading
from collections.abc import Callable

#: What takes longer than this many seconds is not worked off one after the other.
PATIENCE_SECONDS = 0.003

Condition = Callable[[], bool]
Action = Callable[[], None]


class PodWaits:
    """Callers that wait for something about a pod. Safe for threads."""

    def __init__(self, clock: Callable[[], float], impatient: Callable[[], object] = lambda: None) -> None:
        """:param impatient: called by whoever has waited for :data:`PATIENCE_SECONDS`."""
        self._clock = clock
        self._impatient = impatient
        self._lock = threading.Lock()
        self._waits: dict[str, list[tuple[Condition, Action]]] = {}

    def wait(self, pod_uid: str, condition: Condition, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds until the condition holds; whether it does.

        The condition is asked at once, and then whenever :meth:`notify` is called for the pod, by that caller.
        """
        deadline = self._clock() + timeout
        event = threading.Event()
        entry = (condition, event.set)
        self._register(pod_uid, entry)
        try:
            if not condition() and not event.wait(max(0.0, min(timeout, PATIENCE_SECONDS))):
                self._impatient()
            while not condition():
                left = deadline - self._clock()
                if left <= 0 or not event.wait(left):
                    return condition()
                event.clear()
            return True
        finally:
            self._forget(pod_uid, entry)

    def once(self, pod_uid: str, condition: Condition, action: Action) -> None:
        """Call the action, once, when the condition holds; by whoever notifies, so it must be quick."""

        def act() -> None:
            if self._forget(pod_uid, entry):
                action()

        entry = (condition, act)
        self._register(pod_uid, entry)
        if condition():
            act()

    def notify(self, pod_uid: str) -> None:
        """Something about the pod changed: wake those whose condition holds now."""
        if pod_uid not in self._waits:
            return
        with self._lock:
            waits = list(self._waits.get(pod_uid, ()))
        for condition, action in waits:
            if condition():
                action()

    def _register(self, pod_uid: str, entry: tuple[Condition, Action]) -> None:
        with self._lock:
            self._waits.setdefault(pod_uid, []).append(entry)

    def _forget(self, pod_uid: str, entry: tuple[Condition, Action]) -> bool:
        with self._lock:
            entries = self._waits.get(pod_uid, [])
            if entry not in entries:
                return False
            entries.remove(entry)
            if not entries:
                del self._waits[pod_uid]
            return True
