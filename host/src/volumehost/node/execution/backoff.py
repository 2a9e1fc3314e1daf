"""Exponential backoff of a failing operation (BACKOFF-01 to -03), on a clock that the caller gives."""

from __future__ import annotations

import msgspec

from volumehost.errors import (
    NoPluginMatchedError,
    PluginNotFoundError,
    StorageDriverError,
    StorageDriverUnavailableError,
    error_chain,
)

#: Seconds: the first delay, the factor, and the longest delay (CONST-04).
INITIAL_DELAY = 0.5
FACTOR = 2.0
MAXIMUM_DELAY = 122.0
#: Seconds until a driver is asked again that said "busy" (ABORTED), each time: it is done in a moment (BR-39).
BUSY_DELAY = 0.1
#: Seconds until it is looked again for a driver that is not registered; that it has registered is told (BR-27).
ABSENT_DELAY = 2.0

#: The longest delay until it is looked again for a plugin that is not there, in seconds: nobody tells that it has come.
PLUGIN_MAXIMUM_DELAY = 15.0


def lacks_plugin(error: BaseException | None) -> bool:
    """Whether the volume's plugin is not there: it may be installed again at any time."""
    return any(isinstance(link, NoPluginMatchedError | PluginNotFoundError) for link in error_chain(error))


def absent_driver(error: BaseException | None) -> str | None:
    """The name of the storage driver whose absence is the reason, None for any other reason."""
    for link in error_chain(error):
        if isinstance(link, StorageDriverUnavailableError):
            return link.driver
    return None


def is_about_driver(error: BaseException | None, name: str) -> bool:
    """Whether a call of the storage driver of that name failed, or could not be made."""
    return any(isinstance(link, StorageDriverError) and link.driver in (name, "") for link in error_chain(error))


def flat_delay(error: BaseException | None) -> float | None:
    """Seconds until a retry where waiting longer each time is wrong; None where the delay is to grow."""
    if absent_driver(error) is not None:
        return ABSENT_DELAY
    busy = any(isinstance(link, StorageDriverError) and link.code == "ABORTED" for link in error_chain(error))
    return BUSY_DELAY if busy else None


class Backoff(msgspec.Struct):
    """What is remembered of an operation's failures; times are those of a monotonic clock, in seconds.

    ``attempts`` counts real failures: that a driver was busy or absent is none.
    """

    delay: float = 0.0
    failed_at: float = 0.0
    attempts: int = 0
    error: BaseException | None = None

    def delay_after(self, error: BaseException) -> float:
        """The delay after this failure more: 0.5, 1, 2, 4 ... 64, 122, 122 seconds, or the flat one of its kind."""
        flat = flat_delay(error)
        longest = PLUGIN_MAXIMUM_DELAY if lacks_plugin(error) else MAXIMUM_DELAY
        return flat if flat is not None else min(INITIAL_DELAY * FACTOR ** min(self.attempts, 10), longest)

    def attempts_after(self, error: BaseException) -> int:
        """How many real failures there are with this one."""
        return self.attempts + (flat_delay(error) is None)

    def failed(self, error: BaseException, now: float) -> None:
        """Count a failure; what is only in the way for now is tried again after the same short delay each time."""
        self.delay = self.delay_after(error)
        self.attempts = self.attempts_after(error)
        self.failed_at = now
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
