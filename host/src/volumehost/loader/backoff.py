"""When to try again what failed: soon at first, then ever more rarely."""

from __future__ import annotations

FIRST_DELAY = 0.5
LONGEST_DELAY = 120.0


class Backoff:
    """Counts failures; each doubles the delay, from half a second to two minutes. Times are in seconds."""

    __slots__ = ("_failures", "next_at")

    def __init__(self) -> None:
        self._failures = 0
        #: When it may be tried again, on the caller's monotonic clock.
        self.next_at = 0.0

    def failed(self, now: float) -> None:
        """Note a failure."""
        self.next_at = now + min(FIRST_DELAY * 2.0 ** min(self._failures, 30), LONGEST_DELAY)
        self._failures += 1

    def retry_now(self) -> None:
        """Let the next try happen at once; the delay after it goes on growing."""
        self.next_at = 0.0

    def due(self, now: float) -> bool:
        """Whether it may be tried again."""
        return now >= self.next_at
