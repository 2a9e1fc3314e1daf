"""Tells systemd of the state of the service: READY, STATUS, STOPPING and so on, by a datagram (sd_notify)."""

from __future__ import annotations

import logging
import os
import socket
from typing import Self

logger = logging.getLogger(__name__)


class Notifier:
    """Sends states to one socket; does nothing when there is none. Safe for threads; never raises, never blocks.

    :param address: path of the socket; one that begins with ``@`` is abstract. "" for none.
    """

    def __init__(self, address: str = "") -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address

    @classmethod
    def from_environment(cls) -> Self:
        """For the socket that ``NOTIFY_SOCKET`` names, taken out of the environment: what is started from here on
        must not speak for this process.
        """
        return cls(os.environ.pop("NOTIFY_SOCKET", ""))

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
            logger.debug("systemd was not told of %s: %s", text, error)

    def ready(self) -> None:
        """The start is done."""
        self.send(READY="1")

    def stopping(self) -> None:
        """The end has begun."""
        self.send(STOPPING="1")
