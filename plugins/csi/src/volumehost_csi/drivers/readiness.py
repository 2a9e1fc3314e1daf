"""Waits until a driver that was just started serves and says that it is ready; the registration asks it the rest."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from volumehost.errors import StorageDriverUnavailableError
from volumehost_csi.failures import rpc_failure, status_code

if TYPE_CHECKING:
    import grpc

#: Longest time between two tries, in seconds.
_PAUSE = 0.05
#: Deadline of one Probe, in seconds: a slow one is not a failed one (BR-30).
_PROBE_SECONDS = 30.0


class Waiting:
    """The wait for one driver, in pauses between tries, which grow. It ends with the process behind the endpoint.

    :param deadline: on the monotonic clock.
    :param pidfd: of the driver's process.
    :param told: is told what it waits for.
    """

    def __init__(
        self, driver: str, deadline: float, pidfd: int, stop: threading.Event, told: Callable[[str], None]
    ) -> None:
        self.driver = driver
        self.deadline = deadline
        self._stop = stop
        self._told = told
        self._poller = select.poll()
        self._poller.register(pidfd, select.POLLIN)
        self._seconds = 0.002

    def pause(self, problem: str) -> None:
        """Wait a little because of that.

        :raises StorageDriverUnavailableError: the time is up, the process has ended, or ``stop`` was set.
        """
        self._told(problem)
        remaining = self.deadline - time.monotonic()
        if self._stop.is_set():
            raise self._error("it is no longer wanted")
        if remaining <= 0:
            raise self._error(f"{problem}, and its time is up")
        if self._poller.poll(min(self._seconds, remaining) * 1000):
            raise self._error("its process has ended")
        self._seconds = min(_PAUSE, self._seconds * 2)

    def _error(self, reason: str) -> StorageDriverUnavailableError:
        return StorageDriverUnavailableError(
            reason, driver=self.driver, action=f"waiting for the CSI driver {self.driver} to serve"
        )


def wait_until_ready(endpoint: str, waiting: Waiting) -> None:
    """Until the driver accepts connections at ``endpoint`` and its Probe says that it is ready (CSI-WIRE-19).

    A driver without Probe is ready.

    :raises StorageDriverUnavailableError: the wait has ended without that.
    """
    while problem := connect_problem(endpoint):
        waiting.pause(f"nothing answers at {endpoint}: {problem}")
    from volumehost_csi_kit import endpoints

    channel = endpoints.dial(endpoint)
    try:
        while problem := _probe_problem(channel, waiting.driver, waiting.deadline):
            waiting.pause(problem)
    finally:
        channel.close()


def connect_problem(endpoint: str) -> str:
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
