"""From a method of an author's object to what grpc serves: checks, one call per volume, errors, the log."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NoReturn

import grpc
from google.protobuf.message import Message

from volumehost_csi_kit._services import Method
from volumehost_csi_kit.redaction import redacted, secret_values, strip
from volumehost_csi_kit.server.checks import Check, checks_of
from volumehost_csi_kit.server.errors import CsiError
from volumehost_csi_kit.server.replies import checked
from volumehost_csi_kit.server.volume_locks import VolumeLocks, key_of

log = logging.getLogger("volumehost_csi_kit.server")

# Bytes. grpc sends the message as a header, percent-encoded to up to thrice its length, and peers refuse headers beyond
# 8 KiB.
_LONGEST_MESSAGE = 2000

#: Python 3.11 cannot tell two tracebacks at the same time: where they meet, both fail with a SystemError.
_telling = threading.Lock()


@dataclass
class Surroundings:
    """What the calls of one driver share. ``queue_seconds`` 0 answers ABORTED at once, None does not serialise calls.

    ``running`` has the calls that have not ended: the method's name and when it began (monotonic seconds).
    """

    stages: bool
    queue_seconds: float | None
    locks: VolumeLocks = field(default_factory=VolumeLocks)
    running: dict[object, tuple[str, float]] = field(default_factory=dict)


def handler(
    method: Method,
    function: Callable[[Any, grpc.ServicerContext], Any],
    shared: Surroundings,
    pool: ThreadPoolExecutor | None = None,
) -> grpc.RpcMethodHandler[Any, Any]:
    """The grpc handler of one call; ``pool`` has its workers, if they are not the server's."""
    call = _Call(method, function, shared)
    behaviour: Callable[[Any, grpc.ServicerContext], Any] = call.stream if method.streams else call.unary

    def served(request: Any, context: grpc.ServicerContext) -> Any:
        return behaviour(request, context)

    if pool is not None:
        # grpc reads this attribute of the function when it chooses who runs it.
        served.experimental_thread_pool = pool  # type: ignore[attr-defined]
    make = grpc.unary_stream_rpc_method_handler if method.streams else grpc.unary_unary_rpc_method_handler
    return make(
        served,
        request_deserializer=method.request_class.FromString,
        response_serializer=method.reply_class.SerializeToString,
    )


class _Call:
    """One call of one driver, ready to be made any number of times."""

    def __init__(
        self, method: Method, function: Callable[[Any, grpc.ServicerContext], Any], shared: Surroundings
    ) -> None:
        self._method = method
        self._function = function
        self._shared = shared
        self._checks: tuple[Check, ...] = checks_of(method.name, lambda: shared.stages)
        self._key = key_of(method.name)
        self._level = logging.INFO if self._key else logging.DEBUG

    def unary(self, request: Message, context: grpc.ServicerContext) -> Message:
        """Answer once."""
        token, started = object(), time.monotonic()
        self._shared.running[token] = (self._method.name, started)
        try:
            for check in self._checks:
                check(request)
            with self._turn(request, context):
                reply = checked(self._method.name, self._method.reply_class, self._function(request, context))
        except BaseException as error:  # noqa: BLE001 - SystemExit in a worker would leave the caller without an answer
            self._fail(request, context, started, error)
        finally:
            del self._shared.running[token]
        if log.isEnabledFor(self._level):
            self._log_success(request, started, reply)
        return reply

    def stream(self, request: Message, context: grpc.ServicerContext) -> Iterator[Message]:
        """Answer with each message that the author's generator yields."""
        token, started = object(), time.monotonic()
        self._shared.running[token] = (self._method.name, started)
        try:
            for check in self._checks:
                check(request)
            for reply in self._function(request, context):
                yield checked(self._method.name, self._method.reply_class, reply)
        except GeneratorExit:
            raise  # the caller has gone
        except BaseException as error:  # noqa: BLE001 - as above
            self._fail(request, context, started, error)
        finally:
            del self._shared.running[token]
        if log.isEnabledFor(self._level):
            self._log_success(request, started, None)

    def _turn(self, request: Message, context: grpc.ServicerContext) -> AbstractContextManager[None]:
        if self._key is None or self._shared.queue_seconds is None:
            return nullcontext()
        kind, name = self._key
        key = f"{kind} {getattr(request, name)!r}"
        return self._shared.locks.hold(key, self._method.name, timeout=self._shared.queue_seconds, context=context)

    def _log_success(self, request: Message, started: float, reply: Message | None) -> None:
        answer = f" reply={redacted(reply)}" if reply is not None and log.isEnabledFor(logging.DEBUG) else ""
        seconds = time.monotonic() - started
        log.log(
            self._level,
            "call=%s code=OK seconds=%.4f request=%s%s",
            self._method.name,
            seconds,
            redacted(request),
            answer,
        )

    def _fail(self, request: Message, context: grpc.ServicerContext, started: float, error: BaseException) -> NoReturn:
        """End the call with the error's code; nothing that the request brought as a secret leaves with it."""
        secrets = secret_values(request)
        aborted = context.code()  # type: ignore[attr-defined]
        if isinstance(error, CsiError):
            code, message = error.code, error.message
        elif aborted not in (None, grpc.StatusCode.OK):  # the author called context.abort
            code, message = aborted, _text(context.details())  # type: ignore[attr-defined]
        else:
            code = grpc.StatusCode.INTERNAL
            message = f"{self._method.name} failed unexpectedly: {type(error).__name__}: {error}"
            with _telling:
                told = traceback.format_exception(error)
            trace = strip("".join(told), secrets)
            log.error("call=%s raised an unexpected exception:\n%s", self._method.name, trace)
        message = _short(strip(message, secrets))
        log.warning(
            "call=%s code=%s seconds=%.4f error=%r request=%s",
            self._method.name,
            code.name,
            time.monotonic() - started,
            message,
            redacted(request),
        )
        context.abort(code, message)
        raise AssertionError("abort raises")  # for type checkers


def _text(details: str | bytes | None) -> str:
    return details.decode(errors="replace") if isinstance(details, bytes) else details or ""


def _short(message: str) -> str:
    """As much of it as grpc can send; a path's undecodable bytes, which it cannot, are written as escapes."""
    return message.encode(errors="backslashreplace")[:_LONGEST_MESSAGE].decode(errors="ignore")
