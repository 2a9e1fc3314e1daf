"""How far the registration of each socket has come, and when it is tried again (CSI-PM-10 to -12, BR-25)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from volumehost_csi.registration.checks import DriverNameTakenError
from volumehost_csi.registration.protocol import NotARegistrationSocketError, RegistrationError

if TYPE_CHECKING:
    from volumehost_csi.registration.caches import DesiredSocket

#: Seconds: the first pause after a failure, its factor, and the longest.
FIRST_DELAY = 0.5
FACTOR = 2.0
LONGEST_DELAY = 122.0

#: Attempts at a socket that serves something else; then it is left alone until another lies there (BR-24).
ATTEMPTS_AT_OTHER_SOCKETS = 5


class RegistrationState(StrEnum):
    """Where a socket is."""

    #: It was just seen, or is being asked or registered.
    REGISTERING = "registering"
    REGISTERED = "registered"
    #: ``error`` tells why, ``retry_at`` when it is tried again.
    FAILED = "failed"
    #: It serves something else; tried again only when another socket lies there.
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class SocketStatus:
    """One socket of the registration directory, for people; ``retry_at`` is seconds since the epoch.

    ``type``, ``name`` and ``endpoint`` are what the plugin said, "" before it said anything. ``error`` is, word for
    word, what the plugin was told; ``notification`` says why it could not be told, "" when it was.
    """

    path: str
    state: RegistrationState
    type: str = ""
    name: str = ""
    endpoint: str = ""
    error: str = ""
    notification: str = ""
    attempts: int = 0
    retry_at: float | None = None


class Attempt:
    """What is remembered of the attempts at one socket; a new socket at its path begins afresh (CSI-PM-12 improved)."""

    def __init__(self, socket: DesiredSocket) -> None:
        self.socket = socket
        self.type = self.name = self.endpoint = ""
        self.attempts = 0
        self.error: Exception | None = None
        #: It is tried again as soon as the driver that has its name leaves.
        self.name_taken = False
        self._delay = 0.0
        #: Monotonic seconds.
        self._retry_at = 0.0

    @property
    def given_up(self) -> bool:
        """Whether it is left alone for as long as it lies there."""
        return isinstance(self.error, NotARegistrationSocketError) and self.attempts >= ATTEMPTS_AT_OTHER_SOCKETS

    def retry_in(self, now: float) -> float:
        """Seconds until it may be tried again, 0 when it may be tried now."""
        return max(0.0, self._retry_at - now)

    def failed(self, error: Exception, now: float) -> None:
        """Count a failure."""
        self.attempts += 1
        self.error = error
        self.name_taken = isinstance(error.__cause__, DriverNameTakenError)
        self._delay = min(self._delay * FACTOR, LONGEST_DELAY) if self._delay else FIRST_DELAY
        self._retry_at = now + self._delay

    def succeeded(self) -> None:
        """Forget the failures."""
        self.attempts += 1
        self.error = None
        self.retry_now()

    def retry_now(self) -> None:
        """What it waited for has changed."""
        self.name_taken = False
        self._delay = self._retry_at = 0.0

    def status(self, *, registered: bool, running: bool, now: float) -> SocketStatus:
        """For people; ``now`` is monotonic seconds."""
        if registered:
            state = RegistrationState.REGISTERED
        elif self.given_up:
            state = RegistrationState.IGNORED
        elif self.error is not None:
            state = RegistrationState.FAILED
        else:
            state = RegistrationState.REGISTERING
        waits = state is RegistrationState.FAILED and not running
        return SocketStatus(
            path=self.socket.path,
            state=state,
            type=self.type,
            name=self.name,
            endpoint=self.endpoint,
            error=str(self.error) if self.error is not None else "",
            notification=self.error.notification if isinstance(self.error, RegistrationError) else "",
            attempts=self.attempts,
            retry_at=time.time() + self.retry_in(now) if waits else None,
        )
