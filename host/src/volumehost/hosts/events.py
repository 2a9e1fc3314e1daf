"""Records events as Event objects in the API, off the caller's path; what happens again is counted, not repeated.

An event never fails what it reports on: when the API cannot take it, a log line has to do.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from volumehost.errors import ApiError, ObjectNotFoundError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient

logger = logging.getLogger(__name__)

_KNOWN_EVENTS = 512
_QUEUED_EVENTS = 1024

#: So many different messages for one reason and object are events of their own; the others that come within this many
#: seconds of the first are one event, which shows the last of them: a number in an error would make each one new.
_DIFFERENT_MESSAGES = 10
_SIMILAR_SECONDS = 600.0
_COMBINED = "(combined from similar events): "


class _Key(NamedTuple):
    """What makes two events the same one that happened again."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    event_type: str
    reason: str
    message: str


@dataclass(slots=True)
class _Similar:
    """The messages that there were for one reason and object, since the first of them."""

    since: float
    messages: set[str]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """How often something happened that is not written yet, when last, and in which words."""

    count: int
    when: float
    message: str


@dataclass(frozen=True, slots=True)
class _Seen:
    event_name: str
    count: int


class ApiEventRecorder:
    """An EventRecorder that writes to an ApiClient from a daemon thread, started with the first event."""

    def __init__(
        self,
        api: Callable[[], ApiClient | None],
        component: str,
        host: str,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._api = api
        self._component = component
        self._host = host
        self._wall_clock = wall_clock
        self._condition = threading.Condition()
        self._waiting: OrderedDict[_Key, _Waiting] = OrderedDict()
        self._similar: OrderedDict[_Key, _Similar] = OrderedDict()
        self._seen: OrderedDict[_Key, _Seen] = OrderedDict()
        self._running = False
        self._writing = False
        #: Why the last one could not be written: what is refused for the same reason is not told each time.
        self._refusal = ""

    def event(self, involved: Any, event_type: str, reason: str, message: str) -> None:
        """Record one event on an API object (or a reference to one): returns at once."""
        metadata = getattr(involved, "metadata", involved)
        key = _Key(
            involved.api_version, involved.kind, metadata.namespace, metadata.name, metadata.uid,
            event_type, reason, message,
        )  # fmt: skip
        log = logger.warning if event_type == "Warning" else logger.info
        with self._condition:
            key = self._combined(key)
            if key not in self._seen and key not in self._waiting:
                log("event on %s %s/%s: %s: %s", key.kind, key.namespace, key.name, reason, message)
            former = self._waiting.get(key)
            count = former.count + 1 if former is not None else 1
            self._waiting[key] = _Waiting(count, self._wall_clock(), message)
            if len(self._waiting) > _QUEUED_EVENTS:
                self._waiting.popitem(last=False)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="volumehost-events", daemon=True).start()
            self._condition.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds until all that was recorded is written; whether it is."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._waiting and not self._writing, timeout)

    def _combined(self, key: _Key) -> _Key:
        """The key without its message when there have been many other ones; called with the lock."""
        subject, now = key._replace(message=""), self._wall_clock()
        similar = self._similar.get(subject)
        if similar is None or now - similar.since > _SIMILAR_SECONDS:
            similar = self._similar[subject] = _Similar(now, set())
        self._similar.move_to_end(subject)
        if len(self._similar) > _KNOWN_EVENTS:
            self._similar.popitem(last=False)
        if key.message not in similar.messages:
            if len(similar.messages) >= _DIFFERENT_MESSAGES:
                return key._replace(message=_COMBINED)
            similar.messages.add(key.message)
        return key

    def _run(self) -> None:
        while True:
            with self._condition:
                self._writing = False
                self._condition.notify_all()
                # An idle thread ends: nothing has to be stopped when the host ends.
                if not self._condition.wait_for(lambda: bool(self._waiting), timeout=5.0):
                    self._running = False
                    return
                key, waiting = self._waiting.popitem(last=False)
                self._writing = True
            try:
                self._write(key, waiting)
            except Exception as error:  # noqa: BLE001 - an event must not take its recorder down, nor be lost silently
                logger.warning("event not recorded: %s %s %s: %s", key.name, key.reason, waiting.message, error)

    def _write(self, key: _Key, waiting: _Waiting) -> None:
        api = self._api()
        if api is None:
            return
        from volumehost.api.objects import Event, EventSource, ObjectMeta, ObjectReference

        timestamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(waiting.when))
        message = (_COMBINED if key.message == _COMBINED else "") + waiting.message
        count = waiting.count
        namespace = key.namespace or "default"
        seen = self._seen.get(key)
        if seen is not None:
            total = seen.count + count
            try:
                change = {"count": total, "lastTimestamp": timestamp, "message": message[:1024]}
                api.patch(Event, seen.event_name, change, namespace)
            except ObjectNotFoundError:
                seen = None
            else:
                self._remember(key, _Seen(seen.event_name, total))
        if seen is None:
            name = f"{key.name[:200].rstrip('-.')}.{os.urandom(8).hex()}"
            event = Event(
                metadata=ObjectMeta(name=name, namespace=namespace),
                involved_object=ObjectReference(
                    api_version=key.api_version,
                    kind=key.kind,
                    namespace=key.namespace,
                    name=key.name,
                    uid=key.uid,
                ),
                reason=key.reason,
                message=message[:1024],
                source=EventSource(component=self._component, host=self._host),
                reporting_component=self._component,
                first_timestamp=timestamp,
                last_timestamp=timestamp,
                count=count,
                type=key.event_type,
            )
            try:
                api.create(event)
            except ApiError as error:
                log = logger.debug if error.reason == self._refusal else logger.warning
                self._refusal = error.reason
                log("event not recorded: %s %s %s: %s", key.name, key.reason, message, error)
                return
            self._refusal = ""
            self._remember(key, _Seen(name, count))

    def _remember(self, key: _Key, seen: _Seen) -> None:
        with self._condition:
            self._seen[key] = seen
            self._seen.move_to_end(key)
            if len(self._seen) > _KNOWN_EVENTS:
                self._seen.popitem(last=False)
