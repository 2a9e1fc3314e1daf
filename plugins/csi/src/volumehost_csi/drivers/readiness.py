"""Waits until a driver that was just started serves and says that it is ready; the registration asks it the rest."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from volumehost.errors import StorageDriverUnavailableError
from volumehost_csi.failures import rpc_failure, status_code

if TYPE_CHECKING:
    import grpc

#: Longest time between two tries, in seconds.
_PAUSE = 0.05
#: Deadline of one Probe, in seconds: a slow one is not a failed one (BR-30).
_PROBE_SECONDS = 30.0


def wait_until_ready(endpoint: str, driver: str, deadline: float, pidfd: int, stop: threading.Event) -> None:
    """Until the driver accepts connections at ``endpoint`` and its Probe says that it is ready (CSI-WIRE-19).

    ``deadline`` is on the monotonic clock. A driver without Probe is ready.

    :param pidfd: of its process; the wait ends with it.
    :raises StorageDriverUnavailableError: it is not by the deadline, its process has ended, or ``stop`` was set.
    """
    waiting = _Waiting(endpoint, driver, deadline, pidfd, stop)
    while problem := _connect_problem(endpoint):
        waiting.pause(f"nothing answers at {endpoint}: {problem}")
    from volumehost_csi_kit import endpoints

    channel = endpoints.dial(endpoint)
    try:
        while problem := _probe_problem(channel, driver, deadline):
            waiting.pause(problem)
    finally:
        channel.close()


class _Waiting:
    """Pauses between two tries, which grow, and end with the process behind the endpoint."""

    def __init__(self, endpoint: str, driver: str, deadline: float, pidfd: int, stop: threading.Event) -> None:
        self._action = f"waiting for the CSI driver {driver} to serve at {endpoint}"
        self._driver = driver
        self._deadline = deadline
        self._stop = stop
        self._poller = select.poll()
        self._poller.register(pidfd, select.POLLIN)
        self._seconds = 0.002

    def pause(self, problem: str) -> None:
        remaining = self._deadline - time.monotonic()
        if self._stop.is_set():
            raise self._error("it is no longer wanted")
        if remaining <= 0:
            raise self._error(f"{problem}, and its time is up")
        if self._poller.poll(min(self._seconds, remaining) * 1000):
            raise self._error("its process has ended")
        self._seconds = min(_PAUSE, self._seconds * 2)

    def _error(self, reason: str) -> StorageDriverUnavailableError:
        return StorageDriverUnavailableError(reason, driver=self._driver, action=self._action)


def _connect_problem(endpoint: str) -> str:
    """Why no connection can be made now, "" when one can. Costs no grpc while the driver is not there yet."""
    from volumehost_csi_kit import endpoints

    try:
        with (
            endpoints.reachable(endpoints.socket_path(endpoint)) as path,
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock,
        ):
            knock.settimeout(1)
            knock.connect(path)
    except endpoints.EndpointError as error:
        return error.reason
    except OSError as error:
        return os.strerror(error.errno) if error.errno else str(error)
    return ""


def _probe_problem(channel: grpc.Channel, driver: str, deadline: float) -> str:
    from volumehost_csi_kit import csi, stubs

    seconds = min(_PROBE_SECONDS, max(0.05, deadline - time.monotonic()))
    try:
        reply: Any = stubs.IdentityStub(channel).Probe(csi.ProbeRequest(), timeout=seconds, wait_for_ready=True)
    except Exception as error:  # noqa: BLE001 - whatever a call raises is a failure of the call
        if status_code(error) == "UNIMPLEMENTED":
            return ""
        return rpc_failure(error, driver=driver, call="Probe", action="").reason
    return "it says that it is not ready yet" if reply.HasField("ready") and not reply.ready.value else ""
