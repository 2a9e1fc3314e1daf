"""How a test steers a fake driver in another process: JSON lines over a unix socket, a request and its answer in turn.

Requests are ``{"do": NAME, ...}`` with the names of :data:`REQUESTS`; answers
``{"result": ...}`` or ``{"error": TEXT}``.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Mapping
from typing import Any

from volumehost_csi_kit.endpoints import reachable
from volumehost_csi_kit.fake.driver import FakeDriver
from volumehost_csi_kit.fake.rules import Rule

#: What can be asked for, and the arguments.
REQUESTS: Mapping[str, tuple[str, ...]] = {
    "script": ("rules",),
    "clear_script": (),
    "release": (),
    "configure": ("changes",),
    "connections": (),
    "state": (),
}


class ControlServer:
    """Takes requests for ``driver`` at ``path``, from any number of clients, until the process ends."""

    def __init__(self, driver: FakeDriver, path: str) -> None:
        self._driver = driver
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        with reachable(path) as short:
            self._listener.bind(short)
        self._listener.listen()
        threading.Thread(target=self._accept, name="fake-control", daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._talk, args=(connection,), name="fake-control", daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as stream:
            for line in stream:
                try:
                    answer = {"result": self._answer(json.loads(line))}
                except Exception as error:  # noqa: BLE001 - whatever is wrong with a request, its sender is told
                    answer = {"error": f"{type(error).__name__}: {error}"}
                stream.write(json.dumps(answer).encode() + b"\n")
                stream.flush()

    def _answer(self, request: Mapping[str, Any]) -> Any:
        what = request["do"]
        if what not in REQUESTS:
            raise ValueError(f"there is no request {what!r}, only {', '.join(REQUESTS)}")
        if what == "script":
            return self._driver.script(*(Rule(**rule) for rule in request["rules"]))
        if what == "configure":
            return self._driver.configure(**request["changes"])
        return getattr(self._driver, what)()


class ControlClient:
    """The other end. Each request has a connection of its own, so a driver that was restarted is no matter."""

    def __init__(self, path: str, timeout: float = 30.0) -> None:
        self._path = path
        self._timeout = timeout

    def request(self, do: str, **arguments: Any) -> Any:
        """The result of one request.

        :raises OSError: nobody answers.
        :raises RuntimeError: the driver does not understand it; says why.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
            connection.settimeout(self._timeout)
            with reachable(self._path) as short:
                connection.connect(short)
            with connection.makefile("rwb") as stream:
                stream.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
                stream.flush()
                answer = stream.readline()
        if not answer:
            raise ConnectionResetError(f"the fake driver at {self._path} hung up on {do}")
        decoded = json.loads(answer)
        if "error" in decoded:
            raise RuntimeError(f"the fake driver does not {do}: {decoded['error']}")
        return decoded["result"]
