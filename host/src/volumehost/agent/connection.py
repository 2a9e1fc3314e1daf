"""One connection to the agent's control socket, made anew when the agent was restarted meanwhile."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from typing import Any

from volumehost.agent.socket_path import reachable_path
from volumehost.agent.wire import PREFIX, error_from_wire
from volumehost.errors import AgentGoneError

#: How long a command waits for an agent that is just being restarted, in seconds, and between two looks.
RESTART_SECONDS = 10.0
_PAUSE = 0.1

#: How long an answer may take beyond the time that the call itself waits, in seconds.
ANSWER_SECONDS = 30.0


class Connection:
    """Calls the agent. Every call may be repeated, and one whose answer was lost is. Each thread has its own line."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lines = threading.local()

    def connect(self) -> None:
        """Connect now.

        :raises AgentGoneError: nobody listens.
        """
        connection = _UnixConnection(self._path)
        try:
            connection.connect()
        except OSError as error:
            raise AgentGoneError(
                error.strerror or str(error),
                action=f"connecting to the agent's socket {self._path}",
                subject=self._path,
                hint="no agent runs for this root directory",
            ) from error
        self._lines.http = connection

    def close(self) -> None:
        """Hang up this thread's line; those of others end with their threads."""
        connection = self._line
        self._lines.http = None
        if connection is not None:
            connection.close()

    @property
    def _line(self) -> _UnixConnection | None:
        line: _UnixConnection | None = getattr(self._lines, "http", None)
        return line

    def call(self, call: str, /, **arguments: Any) -> Any:
        """Make a call and return its result.

        :raises AgentGoneError: the agent ended, and no other came in its place within some seconds.
        :raises VolumeHostError: the call's own.
        """
        body = json.dumps(arguments).encode()
        seconds = float(arguments.get("timeout") or 0.0) + ANSWER_SECONDS
        deadline = time.monotonic() + RESTART_SECONDS
        answer: dict[str, Any] | None = None
        while answer is None:
            try:
                answer = self._ask(call, body, seconds)
            except TimeoutError as error:
                self.close()
                raise AgentGoneError(
                    f"it did not answer {call} within {seconds:g} s",
                    action="asking the agent",
                    subject=self._path,
                    hint="its log, or 'volumehost status', may tell what it is at",
                ) from error
            except (OSError, http.client.HTTPException):
                self.close()
                self._reconnect(deadline)
        if answer.get("error") is not None:
            raise error_from_wire(answer["error"])
        return answer.get("result")

    def _ask(self, name: str, body: bytes, seconds: float) -> dict[str, Any]:
        connection = self._line
        if connection is None or connection.sock is None:
            raise ConnectionError("not connected yet, or no more")
        connection.sock.settimeout(seconds)
        connection.request("POST", f"{PREFIX}{name}", body, {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        return answer if isinstance(answer, dict) else {}

    def _reconnect(self, deadline: float) -> None:
        pause = threading.Event()
        while True:
            try:
                self.connect()
            except AgentGoneError:
                if time.monotonic() >= deadline:
                    raise
                pause.wait(_PAUSE)
            else:
                return


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(ANSWER_SECONDS)
        try:
            with reachable_path(self._path) as path:
                connection.connect(path)
        except BaseException:
            connection.close()
            raise
        self.sock = connection
