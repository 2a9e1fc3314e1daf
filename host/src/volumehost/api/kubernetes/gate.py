"""One back-off for everything that asks one server: while it refuses, all together ask it every few seconds at most.

The informers of a CachedClient wait here for their turn; its other calls fail here at once with the server's last
error while nothing else is to be expected. The first success lets everybody go on.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable

from volumehost.api.kubernetes.backoff import Backoff
from volumehost.errors import (
    ApiError,
    ClusterConfigError,
    ForbiddenError,
    KindNotServedError,
    ServerFailedError,
    ServerTimeoutError,
    ServerUnreachableError,
    StoreError,
    TooManyRequestsError,
    UnauthorizedError,
)

#: The first and the longest pause, in seconds.
FIRST, MOST = 1.0, 15.0
#: The longest pause that a server may ask for, in seconds: what stands in between may name any.
LONGEST_WANTED = 300.0
#: After so many failures in a row calls are not made any more until it is time.
_PATIENCE = 3
#: How often waiting informers look whether somebody succeeded, in seconds.
_LOOK_SECONDS = 0.25

_EVERYBODY = (ServerUnreachableError, UnauthorizedError, TooManyRequestsError, ClusterConfigError)
_MAYBE = (ForbiddenError, KindNotServedError, ServerFailedError)


class RequestGate:
    """Safe for threads.

    Failures of requests that were under way together count as one: they are of one round.
    """

    def __init__(self, first: float = FIRST, most: float = MOST, clock: Callable[[], float] = time.monotonic) -> None:
        self._backoff = Backoff(first, most)
        self._clock = clock
        self._lock = threading.Lock()
        self._round = 0
        self._pause = 0.0
        self._closed_until = 0.0
        self._error: ApiError | None = None
        self._live = 0

    def wait_for_turn(self, stop: threading.Event) -> int | None:
        """Wait until a request is due, as long as it takes; the round that it belongs to, None when stopped."""
        while not stop.is_set():
            with self._lock:
                wait = self._turn()
                if wait <= 0:
                    return self._round
            stop.wait(min(wait, _LOOK_SECONDS))
        return None

    @property
    def refusal(self) -> ApiError | None:
        """The error for which everybody waits, None while nobody does."""
        with self._lock:
            return self._error

    def enter(self) -> int:
        """Ask for a request now; the round that it belongs to.

        :raises StoreError: the server refuses everything, and it is not time to ask again; the last error.
        """
        with self._lock:
            if self._backoff.failures < _PATIENCE or self._error is None:
                return self._round
            wait = self._turn()
            if wait <= 0:
                return self._round
            error = copy.copy(self._error)
        error.hint = f"asked again in {wait:.0f} s" if wait >= 1 else "asked again soon"
        raise error

    def answered(self) -> None:
        """A request was answered: everybody may go on."""
        with self._lock:
            self._backoff.reset()
            self._round += 1
            self._closed_until, self._error = 0.0, None

    def refused(self, turn: int, error: ApiError) -> bool:
        """A request of that round failed; whether that is taken to concern everybody."""
        with self._lock:
            concerns_all = isinstance(error, _EVERYBODY) or (isinstance(error, _MAYBE) and not self._live)
            if not concerns_all or turn != self._round:
                return concerns_all
            self._round += 1
            self._error = error
            wanted = error.retry_after if isinstance(error, (TooManyRequestsError, ServerTimeoutError)) else 0.0
            self._pause = max(self._backoff.next(), min(wanted, LONGEST_WANTED))
            self._closed_until = self._clock() + self._pause
            return True

    def doubt(self) -> None:
        """A connection broke: one asks whether the server is there, the others wait for what comes of that."""
        with self._lock:
            if not self._backoff.failures:
                self._pause = self._backoff.next()
                self._closed_until = self._clock()

    def went_live(self) -> None:
        """A watch has begun."""
        with self._lock:
            self._live += 1
        self.answered()

    def went_dead(self) -> None:
        """It has ended."""
        with self._lock:
            self._live -= 1

    def call(self, function: Callable[[], object]) -> object:
        """Make a call that goes through to the server, and learn from how it ends."""
        turn = self.enter()
        try:
            result = function()
        except StoreError as error:
            self.refused(turn, error)
            raise
        except ApiError:
            self.answered()
            raise
        self.answered()
        return result

    def _turn(self) -> float:
        """Seconds until the next request is due; 0 takes the turn."""
        if not self._backoff.failures:
            return 0.0
        now = self._clock()
        if now < self._closed_until:
            return self._closed_until - now
        # The others wait until this one is known to have gone well, or for as long as after another failure.
        self._closed_until = now + self._pause
        return 0.0
