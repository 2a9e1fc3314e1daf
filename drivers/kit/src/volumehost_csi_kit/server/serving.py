"""A driver on its socket, in this process: started, registered with the kubelet if asked, stopped without loss."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import grpc

from volumehost_csi_kit.endpoints import LONGEST_MESSAGE, EndpointError, socket_path
from volumehost_csi_kit.server.driver import Driver
from volumehost_csi_kit.server.listening import OwnSocket, listen
from volumehost_csi_kit.server.registration import RegistrationServer

log = logging.getLogger("volumehost_csi_kit.server")


class CsiServer:
    """Serves ``driver`` at ``endpoint``; with a ``registration_dir`` it also registers there, without a sidecar.

    A context manager: it serves inside, and stops with ``grace_seconds`` at the end. It is started once; the driver can
    be served again by another one.

    :raises EndpointError: ``endpoint`` is not one.
    """

    def __init__(
        self,
        driver: Driver,
        endpoint: str,
        *,
        registration_dir: str = "",
        grace_seconds: float = 30.0,
        interceptors: Sequence[grpc.ServerInterceptor] = (),
    ) -> None:
        self.driver = driver
        self.path = socket_path(endpoint)
        self.grace_seconds = grace_seconds
        self._registration = RegistrationServer(driver.name, self.path, registration_dir) if registration_dir else None
        self._workers = ThreadPoolExecutor(driver.workers, thread_name_prefix="csi")
        self._quick_workers = ThreadPoolExecutor(2, thread_name_prefix="csi-quick")
        self._server = grpc.server(
            self._workers,
            handlers=list(driver.handlers(self._quick_workers)),
            interceptors=list(interceptors),
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", LONGEST_MESSAGE),
                ("grpc.max_send_message_length", LONGEST_MESSAGE),
            ],
        )
        self._socket: OwnSocket | None = None

    @property
    def socket(self) -> OwnSocket | None:
        """The socket, once it has been started."""
        return self._socket

    def start(self) -> None:
        """Listen and answer; then register.

        :raises EndpointError: a socket cannot be made; then nothing is served.
        """
        self._socket = listen(self._server, self.path)
        self._server.start()
        log.info("driver=%s version=%s serves endpoint=%s", self.driver.name, self.driver.version, self.path)
        if self._registration is not None:
            try:
                self._registration.start()
            except EndpointError:
                self.stop(0)
                raise

    def stop(self, grace_seconds: float | None = None) -> list[str]:
        """Take no new calls, let the running ones end for as long as the grace time; the names of those that did not.

        The sockets are removed first, if they are still this server's (BR-21), so nobody comes to a closing door.
        """
        grace = self.grace_seconds if grace_seconds is None else grace_seconds
        if self._registration is not None:
            self._registration.stop()
        if self._socket is not None and not self._socket.remove():
            log.warning("endpoint=%s is another instance's by now, and stays", self.path)
        deadline = time.monotonic() + grace
        stopped = self._server.stop(grace)
        stopped.wait(grace + 1)
        left = []
        # grpc cancels calls when the grace is over, but the driver's method runs on: tell what it was.
        for name, since in self.driver.running() if time.monotonic() >= deadline else ():
            left.append(name)
            log.error("call=%s has been running for %.1f s and does not end", name, time.monotonic() - since)
        self._end_workers()
        return left

    def abandon(self) -> None:
        """End as a killed process would: connections drop, what is in the file system stays. For tests of what then."""
        if self._registration is not None:
            self._registration.abandon()
        self._server.stop(None)
        self._end_workers()

    def _end_workers(self) -> None:
        self._workers.shutdown(wait=False)
        self._quick_workers.shutdown(wait=False)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
