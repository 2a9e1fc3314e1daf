"""Tells systemd of the state of the service: READY, STATUS, WATCHDOG and so on, by a datagram (sd_notify)."""

from __future__ import annotations

import logging
import os
import socket
import time
from typing import Self

logger = logging.getLogger(__name__)


class Notifier:
    """Sends states to one socket; does nothing when there is none. Safe for threads; never raises, never blocks.

    :param address: path of the socket; one that begins with ``@`` is abstract. "" for none.
    :param watchdog: seconds within which a sign of life is expected, None where none is.
    """

    def __init__(self, address: str = "", *, watchdog: float | None = None) -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._status = ""
        self.watchdog_seconds = watchdog

    @classmethod
    def from_environment(cls) -> Self:
        """For the socket and the watchdog that systemd names in the environment.

        They are taken out of it: what is started from here on must not speak for this process.
        """
        address = os.environ.pop("NOTIFY_SOCKET", "")
        watched, meant = os.environ.pop("WATCHDOG_USEC", ""), os.environ.pop("WATCHDOG_PID", "")
        watchdog = None
        if watched.isdecimal() and int(watched) and meant in ("", str(os.getpid())):
            watchdog = int(watched) / 1e6
        return cls(address, watchdog=watchdog)

    @property
    def listens(self) -> bool:
        """Whether anybody is told."""
        return bool(self._address)

    def send(self, **state: str) -> None:
        """Send these assignments in one datagram."""
        if not self._address:
            return
        text = "\n".join(f"{name}={value}" for name, value in state.items())
        try:
            with socket.socket(
                socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
            ) as sender:
                sender.sendto(text.encode(), self._address)
        except OSError as error:
            logger.debug("systemd was not told %s: %s", text, error)

    def ready(self) -> None:
        """The start, or looking at everything anew, is done."""
        self.send(READY="1")

    def stopping(self) -> None:
        """The end has begun."""
        self.send(STOPPING="1")

    def reloading(self) -> None:
        """Everything is looked at anew."""
        self.send(RELOADING="1", MONOTONIC_USEC=str(time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000))

    def status(self, text: str) -> None:
        """One line for people; sent when it is another one than before."""
        line = " ".join(text.split())
        if line != self._status:
            self._status = line
            self.send(STATUS=line)

    def alive(self) -> None:
        """The sign of life that the watchdog expects."""
        if self.watchdog_seconds is not None:
            self.send(WATCHDOG="1")

    def extend(self, seconds: float) -> None:
        """Starting or ending takes so much longer: what is under way is not to be cut off before."""
        self.send(EXTEND_TIMEOUT_USEC=str(int(seconds * 1e6)))
