"""Connections: HTTP/1.1 over sockets, kept alive, in chunks where an answer has no end; closed or reset at any time."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, BinaryIO

from volumehost.testing.api_server.messages import Answer, DroppedError, HttpRequest

Handler = Callable[[HttpRequest, Callable[[], bool]], Answer]

_HOST = "127.0.0.1"
_MAX_LINE = 64 * 1024
_PATIENCE = 5.0
#: How long a connection has to end by itself once it was reset, in seconds.
_GRACE = 0.3


class Listener:
    """A port and the connections that were made to it.

    ``context`` is set where TLS is wanted.

    :param handle: answers a request.
    :param wake: has everybody who answers one look whether it is still wanted.
    """

    def __init__(self, port: int, handle: Handler, wake: Callable[[], None]) -> None:
        self._handle = handle
        self._wake = wake
        self.context: ssl.SSLContext | None = None
        self._lock = threading.Lock()
        self._connections: set[_Connection] = set()
        self._socket = _bound(port)
        self.port: int = self._socket.getsockname()[1]
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen on the port."""
        self._socket.listen(128)
        self._thread = threading.Thread(target=self._accept, args=(self._socket,), name="api-server", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let go of the port and of every connection."""
        self._close_port()
        self.reset_connections()

    def pause(self) -> None:
        """Refuse connections, and reset those that there are; the port stays ours."""
        self._close_port()
        self._socket = _bound(self.port)
        self.reset_connections()

    def _close_port(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes whoever accepts
        if self._thread is not None:
            self._thread.join(_PATIENCE)
            self._thread = None
        self._socket.close()

    def reset_connections(self) -> None:
        """Reset every connection, and wait until nobody works for one."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.reset()
        self._wake()
        waiting = [connection for connection in connections if connection.thread is not threading.current_thread()]
        deadline = time.monotonic() + _GRACE
        for connection in waiting:
            connection.thread.join(max(0.0, deadline - time.monotonic()))
        for connection in waiting:
            if connection.thread.is_alive():
                connection.unblock()
                connection.thread.join(_PATIENCE)

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                accepted, _peer = listening.accept()
            except OSError:
                return  # the port was closed
            connection = _Connection(accepted, self._handle, self.context, self._forget)
            with self._lock:
                self._connections.add(connection)
            connection.thread.start()

    def _forget(self, connection: _Connection) -> None:
        with self._lock:
            self._connections.discard(connection)


def _bound(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((_HOST, port))
    except OSError:
        made.close()
        raise
    return made


class _Connection:
    """One connection, served by a thread of its own."""

    def __init__(
        self,
        accepted: socket.socket,
        handle: Handler,
        context: ssl.SSLContext | None,
        forget: Callable[[_Connection], None],
    ) -> None:
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = accepted
        self._handle = handle
        self._context = context
        self._forget = forget
        self._is_reset = False
        self.thread = threading.Thread(target=self._run, name="api-connection", daemon=True)

    def reset(self) -> None:
        """End it with a reset, from any thread."""
        self._is_reset = True
        with contextlib.suppress(OSError):
            # To linger for no time makes the close a reset; the read side wakes whoever reads.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._socket.shutdown(socket.SHUT_RD)

    def unblock(self) -> None:
        """End it with an end rather than a reset, when its thread is stuck since the other side does not read."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        try:
            if self._context is not None:
                self._socket = self._context.wrap_socket(self._socket, server_side=True)
            with self._socket.makefile("rb") as reader:
                while not self._is_reset and self._serve(reader):
                    pass
        except DroppedError:
            self.reset()
        except (OSError, ValueError):
            pass  # the other side has gone, or speaks something else
        finally:
            self._forget(self)
            with contextlib.suppress(OSError):
                self._socket.close()

    def _serve(self, reader: BinaryIO) -> bool:
        """Answer one request; whether another may come."""
        request = self._read(reader)
        if request is None:
            return False
        found = self._handle(request, self._is_gone)
        keep = request.headers.get("connection", "").lower() != "close"
        if found.stream is not None:
            self._send_stream(found)
            return keep
        if found.cut:
            self._socket.sendall(_head(found, keep=keep) + found.body[: len(found.body) // 2])
            raise DroppedError
        self._socket.sendall(_head(found, keep=keep) + found.body)
        return keep

    def _read(self, reader: BinaryIO) -> HttpRequest | None:
        line = reader.readline(_MAX_LINE)
        if not line.strip():
            return None
        method, target, _version = line.decode("latin-1").split(" ", 2)
        headers: dict[str, str] = {}
        while (line := reader.readline(_MAX_LINE)).strip():
            name, _colon, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        if headers.get("expect", "").lower() == "100-continue":
            self._socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        return HttpRequest(method, target, headers, _body(reader, headers), self._certified())

    def _certified(self) -> tuple[str, tuple[str, ...]] | None:
        if not isinstance(self._socket, ssl.SSLSocket):
            return None
        certificate = self._socket.getpeercert()
        if not certificate:
            return None
        subject: Any = certificate.get("subject", ())
        pairs = [pair for part in subject for pair in part]
        names = [str(value) for key, value in pairs if key == "commonName"]
        return (names[0] if names else "", tuple(str(value) for key, value in pairs if key == "organizationName"))

    def _is_gone(self) -> bool:
        """Whether the other side has hung up, as far as can be known while nothing is expected from it."""
        if self._is_reset:
            return True
        try:
            readable, _writable, _failed = select.select([self._socket], [], [], 0)
            if isinstance(self._socket, ssl.SSLSocket):
                return bool(readable)  # what comes while an answer is under way is the end
            return bool(readable) and not self._socket.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True

    def _send_stream(self, found: Answer) -> None:
        stream = found.stream or iter(())
        try:
            self._socket.sendall(_head(found, keep=True))
            for chunk in stream:
                if self._is_reset:
                    raise DroppedError
                if chunk:
                    self._socket.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            if self._is_reset:
                raise DroppedError
            self._socket.sendall(b"0\r\n\r\n")
        finally:
            found.finish()


def _body(reader: BinaryIO, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return reader.read(int(headers.get("content-length", "0")))
    found = b""
    while size := int(reader.readline(_MAX_LINE).partition(b";")[0], 16):
        found += reader.read(size)
        reader.readline(_MAX_LINE)
    while reader.readline(_MAX_LINE).strip():
        pass
    return found


def _head(found: Answer, *, keep: bool) -> bytes:
    try:
        phrase = HTTPStatus(found.code).phrase
    except ValueError:
        phrase = ""
    headers = {
        "Content-Type": found.content_type,
        "Cache-Control": "no-cache, private",
        **({"Transfer-Encoding": "chunked"} if found.stream is not None else {"Content-Length": str(len(found.body))}),
        **({} if keep else {"Connection": "close"}),
        **found.headers,
    }
    lines = [f"HTTP/1.1 {found.code} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
