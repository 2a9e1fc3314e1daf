"""Waits of callers for pods and volumes: woken by the operations that end, never by polling."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable

#: What takes longer than this many seconds is not worked off one after the other.
PATIENCE_SECONDS = 0.003

Condition = Callable[[], bool]
Action = Callable[[], None]


class Waits:
    """Callers that wait for something about pods (by UID) and volumes (by unique name). Safe for threads."""

    def __init__(self, clock: Callable[[], float], impatient: Callable[[], object] = lambda: None) -> None:
        """:param impatient: called by whoever has waited for :data:`PATIENCE_SECONDS`."""
        self._clock = clock
        self._impatient = impatient
        self._lock = threading.Lock()
        self._waits: dict[str, list[tuple[Condition, Action]]] = {}

    def wait(self, subjects: Iterable[str], condition: Condition, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds until the condition holds; whether it does.

        The condition is asked at once, and then whenever :meth:`notify` is called for a subject, by that caller.
        """
        subjects = tuple(subjects)
        deadline = self._clock() + timeout
        # Taken while there is nothing to look at: a third of what an Event costs.
        gate = threading.Lock()
        gate.acquire()
        entry = (condition, lambda: _open(gate))
        self._register(subjects, entry)
        try:
            if condition():
                return True
            if not gate.acquire(timeout=max(0.0, min(timeout, PATIENCE_SECONDS))):
                self._impatient()
            while not condition():
                left = deadline - self._clock()
                if left <= 0 or not gate.acquire(timeout=left):
                    return condition()
            return True
        finally:
            self._forget(subjects, entry)

    def once(self, subjects: Iterable[str], condition: Condition, action: Action) -> None:
        """Call the action, once, when the condition holds; by whoever notifies, so it must be quick."""
        subjects = tuple(subjects)

        def act() -> None:
            if self._forget(subjects, entry):
                action()

        entry = (condition, act)
        self._register(subjects, entry)
        if condition():
            act()

    def notify(self, subject: str) -> None:
        """Something about the pod or volume changed: wake those whose condition holds now."""
        if subject not in self._waits:
            return
        with self._lock:
            waits = list(self._waits.get(subject, ()))
        for condition, action in waits:
            if condition():
                action()

    def _register(self, subjects: tuple[str, ...], entry: tuple[Condition, Action]) -> None:
        with self._lock:
            for subject in subjects:
                self._waits.setdefault(subject, []).append(entry)

    def _forget(self, subjects: tuple[str, ...], entry: tuple[Condition, Action]) -> bool:
        """Whether it was still registered."""
        found = False
        with self._lock:
            for subject in subjects:
                entries = self._waits.get(subject, [])
                if entry in entries:
                    found = True
                    entries.remove(entry)
                    if not entries:
                        del self._waits[subject]
        return found


def _open(gate: threading.Lock) -> None:
    with contextlib.suppress(RuntimeError):  # open already
        gate.release()
