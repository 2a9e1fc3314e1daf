"""What the API server is told to do wrong: rules, each for some requests, taken in the order in which they come."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Literal

from volumehost.testing.api_server.recording import Request


@dataclass(frozen=True, slots=True)
class Rule:
    """One fault, or one prescribed answer.

    It applies to requests of ``verb`` (``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``delete``,
    ``deletecollection``) on ``resource`` (``pods``; a subresource as ``pods/status``), an object called ``name`` in
    ``namespace``, by ``user``; ``*`` is any. It lets the first ``skip`` such requests pass, applies to the ``times``
    after them (None: to all), and does, in this order: wait ``delay`` seconds; reset the connection (``drop``); leave
    it open and never answer (``hang``); answer ``body`` as it is, with ``content_type``, as a proxy in between would;
    answer with the HTTP status ``code``, ``reason`` and ``message`` as Kubernetes writes them (``reason`` "" is the
    usual one for the code), and ``retry_after`` seconds as a header and in the details. A body without a code comes
    with 200.

    ``truncate`` has the work done and the connection reset in the middle of the answer.

    ``when="after"`` has all that happen after the work is done, so that a failure is a lie and a reset loses the
    answer; ``"before"`` has it happen before, and no work is done.

    With ``after_events`` a rule for a watch acts within the stream, once so many events were sent: ``code`` is sent as
    an ERROR event, ``drop`` resets the connection, ``hang`` leaves it open without another event, ``truncate`` ends it
    in the middle of the next line, and a rule with none of them ends the stream in good order.
    """

    verb: str = "*"
    resource: str = "*"
    name: str = "*"
    namespace: str = "*"
    user: str = "*"
    times: int | None = 1
    skip: int = 0
    when: Literal["before", "after"] = "before"
    delay: float = 0.0
    drop: bool = False
    hang: bool = False
    code: int = 0
    reason: str = ""
    message: str = "scripted"
    retry_after: int | None = None
    body: bytes | None = None
    content_type: str = "text/html"
    after_events: int | None = None
    truncate: bool = False

    def applies_to(self, request: Request) -> bool:
        """Whether a request is one of those that the rule is for, ``skip`` and ``times`` aside."""
        asked = (self.verb, self.resource, self.name, self.namespace, self.user)
        found = (request.verb, request.permission, request.name, request.namespace, request.user)
        return all(wanted in ("*", there) for wanted, there in zip(asked, found, strict=True))


class Faults:
    """The rules that are in force. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[tuple[Rule, list[int]]] = []

    def add(self, *rules: Rule) -> None:
        """Put more rules behind those that are there."""
        with self._lock:
            self._rules += [(rule, [0]) for rule in rules]

    def clear(self) -> None:
        """Forget all rules."""
        with self._lock:
            self._rules.clear()

    def take(self, request: Request) -> Rule | None:
        """The first rule that applies to this request; counts it."""
        with self._lock:
            for rule, seen in self._rules:
                if not rule.applies_to(request):
                    continue
                if rule.times is not None and seen[0] >= rule.skip + rule.times:
                    continue
                seen[0] += 1
                if seen[0] > rule.skip:
                    return rule
        return None
