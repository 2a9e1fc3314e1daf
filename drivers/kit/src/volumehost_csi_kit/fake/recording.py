"""What a fake driver was asked: every call in the order of its beginning, in memory and in a file that outlives it."""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from volumehost_csi_kit._services import SERVICES, Method

METHODS: dict[str, Method] = {name: method for service in SERVICES.values() for name, method in service.methods.items()}


@dataclass(slots=True)
class Call:
    """One call. ``request`` is all that came, secrets too. Times are monotonic seconds.

    ``code`` is empty until the call has ended; ``connections`` is how many connections had brought calls by then.
    """

    number: int
    name: str
    request: Message
    started: float
    connections: int
    pid: int
    code: str = ""
    ended: float = 0.0


class Recorder:
    """Keeps the calls; appends them to ``path`` as JSON lines too, where one is given."""

    def __init__(self, path: str = "") -> None:
        self._changed = threading.Condition()
        self._calls: list[Call] = []
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600) if path else None
        if self._file is not None:
            weakref.finalize(self, os.close, self._file)

    def begin(self, name: str, request: Message, connections: int) -> Call:
        """A call has come in."""
        kept = type(request)()
        kept.CopyFrom(request)
        with self._changed:
            call = Call(len(self._calls) + 1, name, kept, time.monotonic(), connections, os.getpid())
            self._calls.append(call)
            self._write(
                {
                    "number": call.number,
                    "name": name,
                    "request": json_format.MessageToDict(kept, preserving_proto_field_name=True),
                    "started": call.started,
                    "connections": connections,
                    "pid": call.pid,
                }
            )
            self._changed.notify_all()
        return call

    def end(self, call: Call, code: str) -> None:
        """It has been answered with this status."""
        with self._changed:
            call.ended = time.monotonic()
            call.code = code
            self._write({"number": call.number, "pid": call.pid, "code": code, "ended": call.ended})
            self._changed.notify_all()

    def calls(self, name: str = "") -> list[Call]:
        """All calls, or those of one name, in the order of their beginning."""
        with self._changed:
            return [call for call in self._calls if name in ("", call.name)]

    def clear(self) -> None:
        """Forget them. The file, if there is one, keeps them."""
        with self._changed:
            self._calls.clear()

    def wait_for(self, enough: Callable[[list[Call]], bool], timeout: float) -> list[Call]:
        """Wait until the calls are as wanted.

        :raises TimeoutError: they are not, after ``timeout`` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: enough(self._calls), timeout):
                raise TimeoutError(f"not within {timeout} s; calls: {[(call.name, call.code) for call in self._calls]}")
            return list(self._calls)

    def _write(self, entry: dict[str, Any]) -> None:
        if self._file is not None:
            os.write(self._file, json.dumps(entry).encode() + b"\n")


def read_calls(path: str) -> list[Call]:
    """The calls in a recorder's file, of every process that has written to it."""
    found: dict[tuple[int, int], Call] = {}
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")[:-1]  # the last one may be half written
    except FileNotFoundError:
        return []
    for line in lines:
        entry = json.loads(line)
        key = (entry["pid"], entry["number"])
        if "name" in entry:
            entry["request"] = json_format.ParseDict(entry["request"], METHODS[entry["name"]].request_class())
            found[key] = Call(**entry)
        else:
            found[key].code, found[key].ended = entry["code"], entry["ended"]
    return list(found.values())
