"""The agent's control socket: one-shot commands see the live state and wait through it, over HTTP on a unix socket.

Only root can connect. Threads are bounded: what comes beyond is told to come again, and the caller does.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import logging
import os
import socket
import socketserver
import sys
import threading
from typing import TYPE_CHECKING, Any

from volumehost.agent.calls import ControlCalls, unknown_call
from volumehost.agent.socket_path import reachable_path
from volumehost.agent.wire import LONGEST_BODY, PREFIX, SOCKET_NAME, error_to_wire
from volumehost.errors import VolumeHostError
from volumehost.hosts.root_dir import root_directory_error

if TYPE_CHECKING:
    from volumehost.node.manager import VolumeManager

logger = logging.getLogger(__name__)

#: How many callers are served at once.
MOST_CALLERS = 64

#: How long a caller may take to send its request, in seconds.
REQUEST_SECONDS = 10.0

#: How often the server looks up while nobody calls, and how long between two knocks on its door when it is to end.
_IDLE_SECONDS = 3600.0
_KNOCK_SECONDS = 0.05


class ControlService:
    """Serves the control socket of one manager from :meth:`start` to :meth:`stop`.

    The socket file goes with the service; one that a killed agent left is replaced, which the root directory's lock
    makes safe.
    """

    def __init__(self, manager: VolumeManager) -> None:
        self._path = f"{manager.root_dir}/{SOCKET_NAME}"
        self._calls = ControlCalls(manager)
        self._server: _Server | None = None

    def start(self) -> None:
        """Begin to answer.

        :raises RootDirectoryError: the socket cannot be made.
        """
        try:
            self._server = server = _Server(self._path, self._calls)
        except OSError as error:
            raise root_directory_error(error, self._path, f"making the control socket {self._path}") from error
        threading.Thread(
            target=server.serve_forever, args=(_IDLE_SECONDS,), name="volumehost-control-socket", daemon=True
        ).start()

    def stop(self) -> None:
        """Take no more calls; those that run are cut off when the process ends."""
        server, self._server = self._server, None
        if server is None:
            return
        ending = threading.Thread(target=server.shutdown, daemon=True)
        ending.start()
        while ending.is_alive():  # it looks up when somebody connects
            with (
                contextlib.suppress(OSError),
                socket.socket(socket.AF_UNIX) as knock,
                reachable_path(self._path) as path,
            ):
                knock.settimeout(_KNOCK_SECONDS)
                knock.connect(path)
            ending.join(_KNOCK_SECONDS)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        server.server_close()


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """A unix stream server whose path may be longer than the kernel's limit for one."""

    address_family = socket.AF_UNIX
    daemon_threads = True
    block_on_close = False
    request_queue_size = MOST_CALLERS

    def __init__(self, path: str, calls: ControlCalls) -> None:
        self.calls = calls
        self._free = threading.BoundedSemaphore(MOST_CALLERS)
        self._path = path
        super().__init__(path, _Handler)  # type: ignore[arg-type]

    def server_bind(self) -> None:
        """Make the socket under a temporary name, for root alone, and put it in its place."""
        temporary = f"{self._path}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        with reachable_path(temporary) as reachable:
            self.socket.bind(reachable)
        os.chmod(temporary, 0o600, follow_symlinks=False)
        os.rename(temporary, self._path)
        self.server_address = (self._path, 0)

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own, while there are some left."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)  # the caller comes again
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one caller."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that went away is no trouble."""
        del request, client_address
        logger.debug("a caller of the control socket went away: %s", sys.exception())


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection; calls follow one another on it."""

    protocol_version = "HTTP/1.1"
    timeout = REQUEST_SECONDS
    server: _Server

    def do_POST(self) -> None:
        """Run the call that the path names."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > LONGEST_BODY:
            self._answer(400, {"error": error_to_wire(_bad_request("its length is missing or too large"))})
            self.close_connection = True
            return
        body = self.rfile.read(int(length))
        try:
            arguments = json.loads(body or b"{}")
        except ValueError as error:
            self._answer(400, {"error": error_to_wire(_bad_request(f"it is no JSON: {error}"))})
            return
        if not isinstance(arguments, dict):
            self._answer(400, {"error": error_to_wire(_bad_request("its body is no object"))})
            return
        name = self.path.removeprefix(PREFIX)
        call = self.server.calls.by_name.get(name) if self.path.startswith(PREFIX) else None
        if call is None:
            self._answer(404, {"error": error_to_wire(unknown_call(name, self.server.calls))})
            return
        try:
            answer = {"result": call(arguments)}
        except Exception as error:
            if not isinstance(error, VolumeHostError):
                logger.exception("call %s of the control socket failed", name)
            self._answer(200, {"error": error_to_wire(error)})
        else:
            self._answer(200, answer)

    def _answer(self, status: int, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Each call, for those who want every detail."""
        logger.debug("control socket: %s", format % args)

    def address_string(self) -> str:
        """Callers of a unix socket have no address."""
        return "local"


def _bad_request(reason: str) -> VolumeHostError:
    return VolumeHostError(reason, action="reading a call of the control socket")
