"""What a fake driver is told to do wrong: rules, each for some calls, taken in the order in which they were given."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from google.protobuf.message import Message


@dataclass(frozen=True, slots=True)
class Rule:
    """One fault, or one prescribed answer.

    It applies to calls named ``call`` (``NodeStageVolume``; ``*`` is any), only for ``volume_id`` if that is given (for
    calls that have none: the name, or the snapshot's id). It lets the first ``skip`` such calls pass, applies to the
    ``times`` after them (None: to all), and does, in this order: wait ``delay`` seconds; kill the driver (``die``);
    answer only once released (``hang``); fail with ``code``, a gRPC status name, and ``message``; answer ``reply``, in
    protobuf's JSON form.

    ``when="after"`` has all that happen after the work is done, so that a failure is a lie and a death loses the
    answer; ``"before"`` has it happen before, and neither a failure nor a prescribed reply does any work.
    """

    call: str = "*"
    times: int | None = 1
    skip: int = 0
    volume_id: str = ""
    when: Literal["before", "after"] = "before"
    delay: float = 0.0
    die: bool = False
    hang: bool = False
    code: str = ""
    message: str = "scripted"
    reply: Mapping[str, Any] | None = None

    def applies_to(self, call: str, request: Message) -> bool:
        """Whether a call is one of those that the rule is for, ``skip`` and ``times`` aside."""
        if self.call not in ("*", call):
            return False
        return not self.volume_id or self.volume_id == volume_of(request)

    def to_json(self) -> dict[str, Any]:
        """The fields that are not at their defaults."""
        return {f.name: value for f in dataclasses.fields(self) if (value := getattr(self, f.name)) != f.default}


def volume_of(request: Message) -> str:
    """What a request is about: the volume's id, the name of what to create, the snapshot's id; "" for others."""
    for name in ("volume_id", "source_volume_id", "name", "snapshot_id"):
        if value := getattr(request, name, ""):
            return str(value)
    return ""


class Script:
    """The rules that are in force. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[tuple[Rule, list[int]]] = []

    def add(self, rules: Iterable[Rule]) -> None:
        """Put more rules behind those that are there."""
        with self._lock:
            self._rules += [(rule, [0]) for rule in rules]

    def clear(self) -> None:
        """Forget all rules."""
        with self._lock:
            self._rules.clear()

    def take(self, call: str, request: Message) -> Rule | None:
        """The first rule that applies to this call; counts it."""
        with self._lock:
            for rule, seen in self._rules:
                if not rule.applies_to(call, request):
                    continue
                if rule.times is not None and seen[0] >= rule.skip + rule.times:
                    continue
                seen[0] += 1
                if seen[0] > rule.skip:
                    return rule
        return None
