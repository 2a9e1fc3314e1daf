"""How long to wait before the next attempt: twice as long each time, a little at random. Used by watches, informers."""

from __future__ import annotations

import random

#: Seconds.
FIRST, MOST = 0.5, 30.0


class Backoff:
    """Delays that grow while there is no success. Not safe for threads."""

    def __init__(self, first: float = FIRST, most: float = MOST) -> None:
        self._first = first
        self._most = most
        self.failures = 0

    def next(self) -> float:
        """Seconds to wait now: between one and one and a half times the delay that is due."""
        delay = min(self._first * 2.0 ** min(self.failures, 30), self._most)
        self.failures += 1
        return delay * random.uniform(1, 1.5)  # noqa: S311 - spreads retries, guards nothing

    def reset(self) -> None:
        """It went well: begin again with the first delay."""
        self.failures = 0
