"""Who the caller is: tokens, token files that are renewed, names with passwords, plugins of the kubeconfig.

``transport`` asks for headers before each request and refreshes once when the server answers 401.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable
from typing import Protocol

from volumehost.api.kubernetes.material import Material
from volumehost.errors import ClusterConfigError

#: How often a file with a token is read again, in seconds: whoever rotates it leaves the old one valid for longer.
REREAD_SECONDS = 10.0


class Credentials(Protocol):
    """What proves to the server who is asking. Safe for threads."""

    def headers(self) -> dict[str, str]:
        """The headers of the next request.

        :raises ClusterConfigError: there are none to be had.
        """
        ...

    def refresh(self, refused: dict[str, str]) -> bool:
        """After 401: get others than these headers if possible; whether it is worth to try again."""
        ...

    def certificate(self) -> tuple[Material, Material] | None:
        """A client certificate and its key that a plugin gave, None without."""
        ...


class NoCredentials:
    """The caller says nothing of itself, or only with the certificate of the connection."""

    def headers(self) -> dict[str, str]:
        """None."""
        return {}

    def refresh(self, refused: dict[str, str]) -> bool:  # noqa: ARG002 - the protocol's
        """There are no others."""
        return False

    def certificate(self) -> tuple[Material, Material] | None:
        """None."""
        return None


class FixedHeaders(NoCredentials):
    """A token or a name with a password, as written in the kubeconfig."""

    def __init__(self, headers: dict[str, str]) -> None:
        self._headers = headers

    def headers(self) -> dict[str, str]:
        """Always the same."""
        return self._headers


def bearer(token: str, origin: str) -> dict[str, str]:
    """The header for a token.

    :raises ClusterConfigError: it cannot stand in a header; the message does not show it.
    """
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        reason = "is empty" if not token else "has characters that no token has"
        raise ClusterConfigError(f"the token {reason}", action=f"read the token of {origin}", subject=origin)
    return {"Authorization": f"Bearer {token}"}


def basic(username: str, password: str) -> dict[str, str]:
    """The header for a name with a password."""
    return {"Authorization": "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()}


class TokenFile(NoCredentials):
    """A file with a token, read again every ten seconds and when the server refuses the token.

    :param origin: whose token it is, for messages.
    """

    def __init__(self, path: str, origin: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._origin = origin
        self._clock = clock
        self._lock = threading.Lock()
        self._headers: dict[str, str] = {}
        self._read_at = 0.0

    def headers(self) -> dict[str, str]:
        """The token as it was read last, unless that is long ago; one that cannot be read again goes on being used."""
        with self._lock:
            now = self._clock()
            if not self._headers or now - self._read_at >= REREAD_SECONDS:
                self._read_at = now
                try:
                    self._headers = self._read()
                except ClusterConfigError:
                    if not self._headers:
                        raise
            return self._headers

    def refresh(self, refused: dict[str, str]) -> bool:
        """Read the file; whether it holds another token by now."""
        with self._lock:
            try:
                self._headers, self._read_at = self._read(), self._clock()
            except ClusterConfigError:
                return False
            return self._headers != refused

    def _read(self) -> dict[str, str]:
        try:
            with open(self._path, encoding="utf-8") as file:
                token = file.read()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "is not text"
            raise ClusterConfigError(
                f"{self._path}: {reason}",
                action=f"read the token of {self._origin}",
                subject=self._path,
                hint="the file must hold a token and be readable",
            ) from None
        return bearer(token, f"{self._origin} in {self._path}")
