"""A value that is expensive to find out and may be a little old."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """Finds a value out when it is asked for, and again once it is older than ``seconds``. Safe for threads.

    A failure is not remembered.
    """

    def __init__(self, find_out: Callable[[], T], seconds: float, clock: Callable[[], float]) -> None:
        self._find_out = find_out
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._known: tuple[float, T] | None = None

    def get(self) -> T:
        """The value; whatever finding it out raises."""
        known = self._known
        now = self._clock()
        if known is not None and now < known[0]:
            return known[1]
        with self._lock:
            if self._known is None or self._known is known:
                self._known = (now + self._seconds, self._find_out())
            return self._known[1]

    def forget(self) -> None:
        """Find it out anew at the next call: what is remembered may be too old for what depends on it."""
        with self._lock:
            self._known = None
