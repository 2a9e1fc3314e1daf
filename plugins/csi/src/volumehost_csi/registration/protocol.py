"""Speaking with a registration socket: the plugin serves, we call (CSI-RAPI-01 to -17).

grpc is imported when a socket accepts a connection, not before: stale sockets of killed registrars cost nothing.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
import time
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
        channel = self._channel
        if channel is not None:
            channel.close()

    def connect(self, timeout: float = DIAL_TIMEOUT) -> None:
        """Wait until connected.

        :raises RegistrationError: nobody listens there, or it was not connected in ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        self._knock()
        import grpc

        from volumehost_csi_kit import endpoints, stubs

        channel = endpoints.dial(self.path)
        self._channel = channel
        if self._closed.is_set():
            channel.close()
        try:
            grpc.channel_ready_future(channel).result(max(0.0, deadline - time.monotonic()))
        except grpc.FutureTimeoutError:
            raise self._failure(f"something listens there, but does not speak gRPC within {timeout:g} s") from None
        except ValueError:
            raise self._failure("the host is shutting down") from None
        self._stub = stubs.RegistrationStub(channel)

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

    def _knock(self) -> None:
        """See whether anybody listens there, without grpc.

        :raises RegistrationError: nobody does.
        """
        from volumehost_csi_kit import endpoints

        deadline = time.monotonic() + _LISTEN_TIMEOUT
        while True:
            try:
                with endpoints.reachable(self.path) as path, socket.socket(socket.AF_UNIX) as knock:
                    knock.settimeout(DIAL_TIMEOUT)
                    knock.connect(path)
            except ConnectionRefusedError:
                # Made a moment ago, perhaps, and listening in the next.
                if time.monotonic() < deadline and not self._closed.wait(_LISTEN_PAUSE):
                    continue
                raise self._failure(
                    "nobody listens on the socket; the process that made it seems to have ended"
                ) from None
            except (OSError, endpoints.EndpointError) as error:
                raise self._failure(describe(error)) from None
            return

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
