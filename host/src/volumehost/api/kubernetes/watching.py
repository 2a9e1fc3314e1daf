"""Watches over HTTP: a stream of lines that can break in every way, and an iterator of events that does not.

A stream ends when the server ends it, when nothing has come for long (a dead connection says nothing), or when it is
closed by another thread. Informers read streams in their own threads; :func:`watch_events` reads them for whoever
calls ``KubernetesClient.watch``.
"""

from __future__ import annotations

import math
import queue
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from volumehost.api.client import WatchEvent
from volumehost.api.kubernetes.asking import Asked
from volumehost.api.kubernetes.backoff import FIRST, Backoff
from volumehost.api.kubernetes.caller import Caller
from volumehost.api.kubernetes.codec import RawEvent, bookmark, read_event, read_heading, read_object, split_lines
from volumehost.api.kubernetes.connection_errors import connection_error
from volumehost.api.kubernetes.failures import error_of
from volumehost.api.kubernetes.gate import LONGEST_WANTED
from volumehost.errors import (
    ApiError,
    ServerFailedError,
    ServerTimeoutError,
    ServerUnreachableError,
    StoreError,
    TooManyRequestsError,
)

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

#: How often a caller's ``stop`` is asked, in seconds.
_LOOK_SECONDS = 0.1
_CHUNK = 64 * 1024
#: A stream that ends so soon is no good one, in seconds.
_SHORT_SECONDS = 1.0
#: Events that wait for a slow caller before the reading of more waits too.
_QUEUED = 1000


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """How watches are kept alive, in seconds.

    :param silence: after so long without a word the connection may be dead, and another takes its place; most servers
        send a bookmark a minute.
    :param first_byte: how long the server may take to begin.
    :param stream: the server is asked to end a stream after this long, up to twice as much at random.
    :param retry: the first pause after a failure, which grows.
    """

    silence: float = 90.0
    first_byte: float = 30.0
    stream: float = 300.0
    retry: float = FIRST


class WatchStream:
    """One connection of a watch. Read by one thread, closed by any.

    :param last_heard: the clock's time when the server said something last.
    :param silent: it was given up because nothing came. That need not mean anything: a server sends bookmarks as it
        likes, and of a kind that nobody changes it may have none to send.
    :param reported: the server ended it with an error of its own.
    """

    def __init__(
        self,
        caller: Caller,
        settings: WatchSettings,
        asked: Asked,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._caller = caller
        self._settings = settings
        self._asked = asked
        self._clock = clock
        self._lock = threading.Lock()
        self._response: BaseHTTPResponse | None = None
        self._closed = False
        self.last_heard = clock()
        self.opened = self.silent = self.reported = False

    def events(
        self,
        version: str,
        query: Mapping[str, str],
        *,
        seconds: float | None = None,
        opened: Callable[[], None] | None = None,
    ) -> Iterator[RawEvent]:
        """Events after the version, until the stream ends.

        :param seconds: ask the server to end it then; by itself after a few minutes.
        :param opened: called when the server has begun to answer.
        :raises GoneError: the changes after the version are not known any more.
        :raises ServerUnreachableError: the connection broke or went silent.
        :raises ApiError: the server refused, or reported an error in the stream.
        """
        settings = self._settings
        seconds = settings.stream * random.uniform(1, 2) if seconds is None else seconds  # noqa: S311 - spreads load
        wanted = {
            **query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, math.ceil(seconds))),
            "resourceVersion": version,
        }
        response = self._caller.stream(self._asked, wanted, read_seconds=settings.first_byte)
        try:
            if not self._take(response):
                return
            self.opened, self.last_heard = True, self._clock()
            if opened is not None:
                opened()
            for line in split_lines(self._chunks(response)):
                event = read_event(self._asked.kind, line)
                if event.type == "ERROR":
                    self.reported = True
                    raise error_of(self._asked, self._caller.server, 0, event.object)
                yield event
        finally:
            with self._lock:
                self._response = None
            response.close()

    def close(self) -> None:
        """End it now; the reading thread notices at once."""
        with self._lock:
            self._closed = True
            found = _socket_of(self._response)
            if found is not None:
                _shut_down(found)

    @property
    def closed(self) -> bool:
        """Whether it was closed from this side."""
        return self._closed or self._caller.closed

    def _take(self, response: BaseHTTPResponse) -> bool:
        with self._lock:
            self._response = response
            found = _socket_of(response)
            if found is not None:
                found.settimeout(self._settings.silence)
            return not self._closed

    def _chunks(self, response: BaseHTTPResponse) -> Iterator[bytes]:
        try:
            while not self._closed:
                chunk = response.read1(_CHUNK)
                if not chunk:
                    return
                self.last_heard = self._clock()
                yield chunk
        except Exception as error:
            if self._closed:
                return
            told = connection_error(error, self._caller.transport.config, self._asked.action)
            self.silent = isinstance(told, ServerTimeoutError)
            raise told from error


def _socket_of(response: BaseHTTPResponse | None) -> socket.socket | None:
    found = getattr(getattr(response, "connection", None), "sock", None)
    return found if isinstance(found, socket.socket) else None


def _shut_down(found: socket.socket) -> None:
    try:
        # Not SSLSocket's own, which would pull the encryption from under the thread that reads.
        socket.socket.shutdown(found, socket.SHUT_RDWR)
    except OSError:
        return  # it is closed already


_Item = RawEvent | ApiError | None


def watch_events(
    caller: Caller,
    settings: WatchSettings,
    asked: Asked,
    version: str,
    query: Mapping[str, str],
    *,
    stop: Callable[[], bool] | None,
    timeout: float | None,
) -> Iterator[WatchEvent[Any]]:
    """Events after the version for one caller, over as many streams as it takes (``ApiClient.watch``)."""
    watch = _Watch(caller, settings, asked, version, query)
    watch.deadline = None if timeout is None else time.monotonic() + timeout
    thread = threading.Thread(target=watch.run, name=f"volumehost-watch-{asked.kind.plural}", daemon=True)
    thread.start()
    try:
        while stop is None or not stop():
            try:
                item = watch.items.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                if caller.closed:
                    return
                continue
            if item is None:
                return
            if isinstance(item, ApiError):
                raise item
            if item.type == "BOOKMARK":
                yield WatchEvent("BOOKMARK", bookmark(asked.kind.struct, read_heading(item.object).version))
            elif item.type in {"ADDED", "MODIFIED", "DELETED"}:
                yield WatchEvent(item.type, read_object(asked.kind, item.object))  # type: ignore[arg-type]
    finally:
        watch.end()


class _Watch:
    """The thread behind one ``watch``: reads streams, one after another, and hands events over."""

    def __init__(
        self, caller: Caller, settings: WatchSettings, asked: Asked, version: str, query: Mapping[str, str]
    ) -> None:
        self.items: queue.Queue[_Item] = queue.Queue(_QUEUED)
        self.deadline: float | None = None
        self._caller = caller
        self._settings = settings
        self._asked = asked
        self._version = version
        self._query = query
        self._ended = threading.Event()
        self._stream: WatchStream | None = None

    def end(self) -> None:
        """Let the thread end: its connection is closed."""
        self._ended.set()
        stream = self._stream
        if stream is not None:
            stream.close()

    def run(self) -> None:
        """Until the deadline, an error that the caller must know of, or the end."""
        backoff = Backoff(self._settings.retry)
        try:
            while not self._ended.is_set():
                left = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
                if self._read(left, backoff) and left is not None:
                    break  # the server has told everything up to the deadline
                if left == 0.0:
                    break
            self._hand_over(None)
        except ApiError as error:
            self._hand_over(error)
        except Exception as error:  # noqa: BLE001 - the caller would wait for ever
            self._hand_over(ServerFailedError(f"watching failed: {error}", action=self._asked.action))

    def _read(self, left: float | None, backoff: Backoff) -> bool:
        """Read one stream; whether it ended in good order."""
        stream = self._stream = WatchStream(self._caller, self._settings, self._asked)
        seconds = None if left is None or left > self._settings.stream else left
        began = time.monotonic()
        try:
            for event in stream.events(self._version, self._query, seconds=seconds):
                backoff.reset()
                self._version = read_heading(event.object).version or self._version
                if not self._hand_over(event):
                    return False
        except (ServerUnreachableError, TooManyRequestsError) as error:
            if stream.silent:
                return False  # it has been waited for already
            if stream.opened and time.monotonic() - began >= _SHORT_SECONDS:
                backoff.reset()
            if not stream.opened and backoff.failures >= _FAILURES:
                raise
            pause = max(backoff.next(), min(getattr(error, "retry_after", 0.0), LONGEST_WANTED))
            self._ended.wait(pause if left is None else min(pause, left))
            return False
        if stream.closed:
            raise StoreError("the client has been closed", action=self._asked.action, subject=self._caller.server)
        if time.monotonic() - began >= _SHORT_SECONDS:
            backoff.reset()
        elif seconds is None:
            # Servers end streams after minutes: one that ends at once is not well, though it says so politely.
            self._ended.wait(backoff.next())
        return seconds is not None

    def _hand_over(self, item: _Item) -> bool:
        while not self._ended.is_set():
            try:
                self.items.put(item, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return True
        return False


#: How often in a row a watch may fail to begin before its caller is told.
_FAILURES = 3
