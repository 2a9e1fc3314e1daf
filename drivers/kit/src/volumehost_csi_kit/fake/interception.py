"""Between grpc and the fake driver's methods: records each call, follows the script, hides what is switched off."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.message import Message

from volumehost_csi_kit.fake.config import FakeConfig
from volumehost_csi_kit.fake.connections import Connections
from volumehost_csi_kit.fake.recording import METHODS, Recorder
from volumehost_csi_kit.fake.rules import Rule, Script


class Interception(grpc.ServerInterceptor):
    """A server interceptor; ``die`` ends the driver the hard way, in whatever way it runs."""

    def __init__(
        self,
        recorder: Recorder,
        script: Script,
        connections: Connections,
        config: Callable[[], FakeConfig],
        die: Callable[[], None],
    ) -> None:
        self._recorder = recorder
        self._script = script
        self._connections = connections
        self._config = config
        self._die = die
        self._released = threading.Event()

    def release(self) -> None:
        """Let all calls that hang or are delayed go on; later ones hang again."""
        self._released.set()
        self._released = threading.Event()

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        """Wrap the handler of one call."""
        inner = continuation(handler_call_details)
        name = handler_call_details.method.rpartition("/")[2]
        if inner is None or inner.unary_unary is None:
            return inner

        def served(request: Message, context: grpc.ServicerContext) -> Message:
            call = self._recorder.begin(name, request, self._connections.count())
            try:
                reply = self._answer(name, request, context, inner.unary_unary)
            except BaseException:
                code = context.code()  # type: ignore[attr-defined]
                self._recorder.end(call, code.name if code is not None else "UNKNOWN")
                raise
            self._recorder.end(call, "OK")
            return reply

        return grpc.unary_unary_rpc_method_handler(
            served,
            request_deserializer=inner.request_deserializer,
            response_serializer=inner.response_serializer,
        )

    def _answer(
        self,
        name: str,
        request: Message,
        context: grpc.ServicerContext,
        work: Callable[[Message, grpc.ServicerContext], Message],
    ) -> Message:
        rule = self._script.take(name, request)
        if rule is None:
            return self._work(name, request, context, work)
        reply = self._work(name, request, context, work) if rule.when == "after" else None
        self._misbehave(rule, context)
        if rule.reply is not None:
            return json_format.ParseDict(dict(rule.reply), METHODS[name].reply_class())
        return reply if reply is not None else self._work(name, request, context, work)

    def _work(
        self,
        name: str,
        request: Message,
        context: grpc.ServicerContext,
        work: Callable[[Message, grpc.ServicerContext], Message],
    ) -> Message:
        if self._config().refuses(name):
            context.abort(grpc.StatusCode.UNIMPLEMENTED, f"this driver has no {name}")
        return work(request, context)

    def _misbehave(self, rule: Rule, context: grpc.ServicerContext) -> None:
        if rule.delay:
            self._released.wait(rule.delay)
        if rule.die:
            self._die()
            context.abort(grpc.StatusCode.UNAVAILABLE, "died by script")
        if rule.hang:
            self._released.wait()
        if rule.code:
            context.abort(grpc.StatusCode[rule.code], rule.message)
