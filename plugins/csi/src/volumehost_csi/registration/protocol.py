"""Speaking with a registration socket: the plugin serves, we call (CSI-RAPI-01 to -17).

grpc is imported once something has answered on the socket: stale sockets of killed registrars cost nothing.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from volumehost.errors import StorageDriverError
from volumehost_csi.failures import status_code

if TYPE_CHECKING:
    import grpc

#: Seconds: until connected, for GetInfo, for NotifyRegistrationStatus (CSI-RAPI-05, -06, -13).
DIAL_TIMEOUT = 10.0
INFO_TIMEOUT = 1.0
NOTIFY_TIMEOUT = 5.0

#: A registrar that has just made its socket listens on it within this time, in seconds.
_LISTEN_TIMEOUT = 0.2
_LISTEN_PAUSE = 0.01

#: What a client begins with in HTTP/2: the preface and an empty SETTINGS frame. The server begins with SETTINGS too.
_CLIENT_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_FRAME_HEADER_BYTES = 9
_SETTINGS = b"\x04"

#: Characters of a reason that a plugin is told.
_LONGEST_REASON = 4096


class RegistrationError(StorageDriverError):
    """A registration did not come about; ``reason`` is what the plugin was told, or why it could not be asked.

    ``notification`` says why the plugin could not be told, "" when it was (CSI-RAPI-13 improved).
    """

    notification: str = ""


class NotARegistrationSocketError(RegistrationError):
    """Whatever serves there does not know the service Registration: a driver's own socket, say (BR-24)."""


class NotificationError(RegistrationError):
    """The plugin could not be told how its registration went."""


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """What a plugin says of itself: type (``CSIPlugin``), name, endpoint ("" is this very socket), versions."""

    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...]


class RegistrationSocket:
    """A connection to one plugin for one attempt; a context manager (CSI-RAPI-16).

    :meth:`close` may be called from another thread: whatever is under way then fails.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._closed = threading.Event()
        self._channel: grpc.Channel | None = None
        self._greeting: socket.socket | None = None
        self._stub: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._closed.set()
        channel, greeting = self._channel, self._greeting
        if greeting is not None:
            with suppress(OSError):
                greeting.shutdown(socket.SHUT_RDWR)
        if channel is not None:
            channel.close()

    def connect(self, timeout: float = DIAL_TIMEOUT) -> None:
        """Wait until whatever serves there has greeted as gRPC does.

        The greeting is exchanged on a connection of its own: grpc's own way of waiting until a channel is ready keeps
        its closing waiting for a fifth of a second, and would be imported for what does not speak gRPC too.

        :raises RegistrationError: nobody listens there, or did not greet within ``timeout`` seconds.
        """
        try:
            self._greet(time.monotonic() + timeout)
        except TimeoutError:
            raise self._failure(f"something listens there, but does not answer within {timeout:g} s") from None
        except ConnectionRefusedError:
            raise self._failure("nobody listens there; the process that made the socket seems to have ended") from None
        except (OSError, ValueError) as error:
            raise self._failure(describe(error)) from None
        from volumehost_csi_kit import endpoints, stubs

        self._channel = endpoints.dial(self.path)
        self._stub = stubs.RegistrationStub(self._channel)
        if self._closed.is_set():
            self.close()

    def get_info(self) -> PluginInfo:
        """Ask the plugin what it is.

        :raises NotARegistrationSocketError: it does not know the question.
        :raises RegistrationError: it does not answer in time.
        """
        from volumehost_csi_kit import registration

        try:
            info = self._stub.GetInfo(registration.InfoRequest(), timeout=INFO_TIMEOUT)
        except Exception as error:  # noqa: BLE001 - whatever a call raises is a failure of the call
            code = status_code(error)
            if code == "UNIMPLEMENTED":
                raise NotARegistrationSocketError(
                    "it does not serve pluginregistration.Registration, so it is not a registration socket",
                    call="GetInfo",
                    code=code,
                    action=f"registering the plugin at {self.path}",
                    subject=self.path,
                ) from None
            raise self._call_failure(RegistrationError, "GetInfo", error) from None
        return PluginInfo(info.type, info.name, info.endpoint, tuple(info.supported_versions))

    def notify(self, registered: bool, reason: str = "") -> None:
        """Tell the plugin how it went.

        :raises NotificationError: it could not be told. A registrar that is refused often exits in the middle of this
            call (CSI-RGR-05).
        """
        from volumehost_csi_kit import registration

        status = registration.RegistrationStatus(plugin_registered=registered, error=reason[:_LONGEST_REASON])
        try:
            self._stub.NotifyRegistrationStatus(status, timeout=NOTIFY_TIMEOUT)
        except Exception as error:  # noqa: BLE001 - whatever a call raises is a failure of the call
            raise self._call_failure(NotificationError, "NotifyRegistrationStatus", error) from None

    def _greet(self, deadline: float) -> None:
        from volumehost_csi_kit import endpoints

        with endpoints.reachable(self.path) as path, self._connected(path) as connection:
            self._greeting = connection
            header = b""
            if not self._closed.is_set():  # whoever closes this from now on ends the wait
                connection.sendall(_CLIENT_GREETING)
            while not self._closed.is_set() and len(header) < _FRAME_HEADER_BYTES:
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                received = connection.recv(_FRAME_HEADER_BYTES - len(header))
                if not received:
                    break
                header += received
            self._greeting = None
        if self._closed.is_set():
            raise ConnectionAbortedError("the host is shutting down")
        if header[3:4] != _SETTINGS:
            raise ConnectionError("whatever serves there does not speak gRPC")

    def _connected(self, path: str) -> socket.socket:
        """A connection; a socket that was made a moment ago is listened on in the next."""
        deadline = time.monotonic() + _LISTEN_TIMEOUT
        while True:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(DIAL_TIMEOUT)
            try:
                connection.connect(path)
            except ConnectionRefusedError:
                connection.close()
                if time.monotonic() >= deadline or self._closed.wait(_LISTEN_PAUSE):
                    raise
            except BaseException:
                connection.close()
                raise
            else:
                return connection

    def _failure(self, reason: str) -> RegistrationError:
        return RegistrationError(reason, action=f"registering the plugin at {self.path}", subject=self.path)

    def _call_failure(self, kind: type[RegistrationError], call: str, error: BaseException) -> RegistrationError:
        code = status_code(error)
        details = getattr(error, "details", None)
        said = str(details() if callable(details) else error).strip()
        return kind(
            f"{call} failed with {f'{code}: {said}' if code else said}",
            call=call,
            code=code,
            driver_message=said,
            action=f"registering the plugin at {self.path}",
            subject=self.path,
        )


def describe(error: Exception) -> str:
    """An OSError or EndpointError in one line, without the number."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)


def why_no_socket(path: str) -> str:
    """Why nothing can be reached at that path, "" when a socket lies there (CSI-REG-01 improved)."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        # Only connecting has a limit of its own; a path can be longer than even the filesystem takes.
        return "there is no such socket" if error.errno == errno.ENOENT else describe(error)
    return "" if stat.S_ISSOCK(mode) else "it is not a socket"
