"""Exponential backoff of a failing operation (BACKOFF-01 to -03), on a clock that the caller gives."""

from __future__ import annotations

from dataclasses import dataclass

#: Seconds: the first delay, the factor, and the longest delay (CONST-04).
INITIAL_DELAY = 0.5
FACTOR = 2.0
MAXIMUM_DELAY = 122.0


@dataclass(slots=True)
class Backoff:
    """What is remembered of an operation's failures; times are those of a monotonic clock, in seconds."""

    delay: float = 0.0
    failed_at: float = 0.0
    attempts: int = 0
    error: BaseException | None = None

    def next_delay(self) -> float:
        """The delay after one failure more: 0.5, 1, 2, 4 ... 64, 122, 122 seconds."""
        return min(self.delay * FACTOR, MAXIMUM_DELAY) if self.delay else INITIAL_DELAY

    def failed(self, error: BaseException, now: float) -> None:
        """Count a failure."""
        self.delay = self.next_delay()
        self.failed_at = now
        self.attempts += 1
        self.error = error

    def reset(self) -> None:
        """Forget the failures: another operation, or another spec, starts afresh."""
        self.delay = self.failed_at = 0.0
        self.attempts = 0
        self.error = None

    def retry_in(self, now: float) -> float:
        """Seconds until the operation may start again, 0 when it may start now."""
        if not self.delay:
            return 0.0
        return max(0.0, self.failed_at + self.delay - now)

    def blocks(self, now: float) -> bool:
        """Whether a start is refused: elapsed time must exceed the delay, equal is not enough (BACKOFF-02)."""
        return bool(self.delay) and now - self.failed_at <= self.delay
