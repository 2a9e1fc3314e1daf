"""Calls: a request with its credentials, repeated where that is safe and the server asks for it, errors as ours.

KubernetesClient makes all its calls here.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from volumehost.api.kubernetes.asking import Asked
from volumehost.api.kubernetes.failures import error_of
from volumehost.api.kubernetes.server_warnings import ServerWarnings
from volumehost.api.kubernetes.transport import Answer, Request, Transport
from volumehost.errors import ApiError, ServerTimeoutError, ServerUnreachableError, StoreError, TooManyRequestsError

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_Reply = TypeVar("_Reply", Answer, "BaseHTTPResponse")

#: How long a call waits in all when the server asks for patience (429, or 5xx with Retry-After), in seconds.
PATIENCE_SECONDS = 10.0
#: What is waited where it does not say how long, doubled each time.
_FIRST_WAIT_SECONDS = 0.5
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML too


def _pause(request: Request, error: ApiError, wait: float) -> float | None:
    """How long to wait before the request is made again; None: it must not be, or would be of no use."""
    reads = request.method == "GET"
    if isinstance(error, TooManyRequestsError):
        # 503 that does not say when to come back may be a proxy's, whose connection broke after the write had arrived.
        again = reads or error.status == 429 or error.retry_after
        return (error.retry_after or wait) if again else None
    return error.retry_after or None if isinstance(error, ServerTimeoutError) and reads else None


class Caller:
    """Makes calls. Safe for threads.

    :param patience: seconds that a call may wait because the server asks for it.
    """

    def __init__(
        self, transport: Transport, *, patience: float = PATIENCE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.transport = transport
        self.server = transport.config.server
        self._patience = patience
        self._clock = clock
        self._closed = threading.Event()
        self._warnings = ServerWarnings()

    def with_patience(self, patience: float) -> Caller:
        """The same, closed with this one, whose calls wait for at most so many seconds."""
        other = copy.copy(self)
        other._patience = patience  # noqa: SLF001 - its own class's
        return other

    def close(self) -> None:
        """End waits, refuse further calls, close the connections."""
        self._closed.set()
        self.transport.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed.is_set()

    def call(
        self,
        asked: Asked,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        content_type: str = "application/json",
        patient: bool = True,
        read_seconds: float | None = None,
    ) -> bytes:
        """Make a call; the body of the answer.

        :param patient: whether to wait and repeat when the server asks for that.
        :raises ApiError: it failed; see ``failures``.
        """
        data = None if body is None else msgspec.json.encode(body)
        request = Request(asked.method, asked.path, query or {}, data, content_type, asked.action)
        deadline = self._clock() + (self._patience if patient else 0.0)
        wait = _FIRST_WAIT_SECONDS
        while True:
            answer = self._answered(asked, request, read_seconds, again=patient)
            if answer.warnings:
                self._warnings.note(answer.warnings, asked.action)
            if 200 <= answer.status < 300:
                return answer.body
            error = error_of(asked, self.server, answer.status, answer.body, answer.headers)
            pause = _pause(request, error, wait)
            if pause is None or self._clock() + pause > deadline:
                raise error
            if self._closed.wait(pause):
                raise error
            wait *= 2

    def stream(self, asked: Asked, query: Mapping[str, str], *, read_seconds: float) -> BaseHTTPResponse:
        """Make a call whose answer goes on; its body is still to be read.

        :param read_seconds: how long the first byte may take.
        :raises ApiError: it failed.
        """
        request = Request(asked.method, asked.path, query, action=asked.action)
        response = self._with_credentials(
            asked, lambda headers: self.transport.stream(request, headers, read_seconds=read_seconds)
        )
        if response.status == 200:
            return response
        try:
            body = response.read(decode_content=True)
        except Exception:  # noqa: BLE001 - the status tells enough
            body = b""
        finally:
            response.close()
        headers = {name.lower(): value for name, value in response.headers.items()}
        raise error_of(asked, self.server, response.status, body, headers)

    def _answered(self, asked: Asked, request: Request, read_seconds: float | None, *, again: bool) -> Answer:
        def send(headers: Mapping[str, str]) -> Answer:
            return self.transport.send(request, headers, read_seconds=read_seconds)

        try:
            return self._with_credentials(asked, send)
        except ServerTimeoutError:
            raise
        except ServerUnreachableError:
            # A connection that was kept may have been closed by the other side in the same moment. What reads can be
            # asked again; of a write nobody knows whether it arrived.
            if request.method != "GET" or self.closed or not again:
                raise
            return self._with_credentials(asked, send)

    def _with_credentials(self, asked: Asked, send: Callable[[Mapping[str, str]], _Reply]) -> _Reply:
        """Send with credentials; once more with new ones when the server does not take them."""
        if self.closed:
            raise StoreError("the client has been closed", action=asked.action, subject=self.server)
        credentials = self.transport.config.credentials
        headers = credentials.headers()
        answer = send(headers)
        if answer.status != 401 or not credentials.refresh(headers):
            return answer
        if not isinstance(answer, Answer):
            answer.close()
        return send(credentials.headers())
