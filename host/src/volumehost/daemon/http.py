"""A small HTTP server for what the agent tells of itself, on a TCP address; and the form of its routes.

For few and local callers: threads are bounded, each request has a time limit, and there is no authentication.
"""

from __future__ import annotations

import contextlib
import http.server
import ipaddress
import logging
import socket
import socketserver
import sys
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from volumehost.errors import VolumeHostError

logger = logging.getLogger(__name__)

#: How many requests are answered at once, and how long a caller may take with its own, in seconds.
MOST_CALLERS: Final = 16
REQUEST_SECONDS: Final = 10.0

#: How often the server looks up while nobody calls, and how often it is knocked at when it is to end, in seconds.
_IDLE_SECONDS: Final = 3600.0
_KNOCKS: Final = 20
_KNOCK_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Request:
    """What of a request matters: the names of its query's parameters, and its header ``Accept``."""

    query: frozenset[str] = frozenset()
    accept: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    status: int
    body: bytes
    content_type: str

    @classmethod
    def of_text(cls, status: int, text: str) -> Self:
        """Plain text."""
        return cls(status, text.encode(), "text/plain; charset=utf-8")


Route = Callable[[Request], Answer]


class HttpAddressError(VolumeHostError):
    """The address for health and metrics cannot be used; nothing was done."""


def answer(routes: Mapping[str, Route], target: str, accept: str = "") -> Answer:
    """Answer a GET for ``target`` (path and query). A route that raises becomes an answer too."""
    parts = urllib.parse.urlsplit(target)
    route = routes.get(parts.path)
    if route is None:
        return Answer.of_text(404, f"there is no {parts.path}; there are {', '.join(sorted(routes))}\n")
    query = frozenset(urllib.parse.parse_qs(parts.query, keep_blank_values=True))
    try:
        return route(Request(query, accept))
    except Exception as error:
        logger.exception("%s could not be answered", parts.path)
        return Answer.of_text(500, f"{parts.path} could not be answered: {error}\n")


def parse_address(text: str) -> tuple[str, int]:
    """``127.0.0.1:10258`` or ``[::1]:10258`` as (address, port).

    :raises ValueError: it is neither.
    """
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{text!r} is no ADDRESS:PORT such as 127.0.0.1:10258")
    return str(ipaddress.ip_address(host)), int(port)


@dataclass(slots=True)
class HttpServer:
    """Serves routes on one TCP address from :meth:`start` on; its port is taken when it is made.

    :param address: ``ADDRESS:PORT``; port 0 for any that is free.
    :raises ValueError: it is no such thing.
    :raises HttpAddressError: it cannot be had, since another process has it for example.
    """

    address: str
    _server: _Server = field(init=False)
    _serving: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        host, port = parse_address(self.address)
        try:
            self._server = _Server(host, port)
        except OSError as error:
            raise HttpAddressError(
                error.strerror or str(error),
                action=f"serving health and metrics on {self.address}",
                subject=self.address,
                hint="give another address with --http, or none",
            ) from error
        if not ipaddress.ip_address(host).is_loopback:
            logger.warning("health and metrics on %s can be read by whoever reaches it", self.address)

    @property
    def url(self) -> str:
        """Where it is served."""
        host, port = self._address
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def start(self, routes: Mapping[str, Route]) -> None:
        """Answer from now on."""
        self._server.routes = routes
        self._serving = True
        threading.Thread(
            target=self._server.serve_forever, args=(_IDLE_SECONDS,), name="volumehost-http", daemon=True
        ).start()
        logger.info("health and metrics at %s", self.url)

    def close(self) -> None:
        """Give the port back; answers that are under way end with the process."""
        if self._serving:
            self._serving = False
            ending = threading.Thread(target=self._server.shutdown, daemon=True)
            ending.start()
            for _ in range(_KNOCKS):  # it looks up when somebody connects
                with contextlib.suppress(OSError), socket.create_connection(self._address, _KNOCK_SECONDS):
                    pass
                ending.join(_KNOCK_SECONDS)
                if not ending.is_alive():
                    break
        self._server.server_close()

    @property
    def _address(self) -> tuple[str, int]:
        host, port = self._server.server_address[:2]
        return str(host), int(port)


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """The library's server with bounded threads, for both families of addresses."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = MOST_CALLERS

    def __init__(self, host: str, port: int) -> None:
        self.routes: Mapping[str, Route] = {}
        self._free = threading.BoundedSemaphore(MOST_CALLERS)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Without looking up the host's name, which may take its time."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own, while there are some left."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one caller."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the library's signature
        """A caller that went away is no trouble."""
        logger.debug("a caller went away: %r", sys.exception())


class _Handler(http.server.BaseHTTPRequestHandler):
    """One request."""

    timeout = REQUEST_SECONDS
    server: _Server
    server_version = "volumehost"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer by the routes."""
        found = answer(self.server.routes, self.path, self.headers.get("Accept", ""))
        self.send_response(found.status)
        self.send_header("Content-Type", found.content_type)
        self.send_header("Content-Length", str(len(found.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(found.body)

    def do_HEAD(self) -> None:
        """The same without a body."""
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        """Each request, for those who want every detail."""
        logger.debug("http: %s", format % args)
