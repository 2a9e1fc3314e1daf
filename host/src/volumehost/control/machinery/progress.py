"""What the controllers are at, for those who wait: steps under way, and errors with their attempts and next retry."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from volumehost.errors import StorageDriverError, error_chain

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject
    from volumehost.control.machinery.queue import Record

_Subject = tuple[str, str, str]


class Steps:
    """The step that is under way for each object; implements Progress. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._steps: dict[_Subject, str] = {}

    def __call__(self, obj: KubeObject, step: str) -> None:
        """The step that begins; "" when nothing is done for the object any more."""
        subject = _subject(obj)
        with self._lock:
            if step:
                self._steps[subject] = step
            else:
                self._steps.pop(subject, None)

    def lines(self, obj: KubeObject) -> list[str]:
        """The step of one object, as a list of none or one."""
        step = self._steps.get(_subject(obj))
        return [step] if step else []

    def all(self) -> list[tuple[str, str]]:
        """Every object that something is done for, and the step."""
        with self._lock:
            found = list(self._steps.items())
        return [(f"{kind} {'/'.join(part for part in rest if part)}", step) for (kind, *rest), step in found]


def _subject(obj: KubeObject) -> _Subject:
    return obj.kind.lower(), obj.metadata.namespace, obj.metadata.name


def failure_lines(controller: str, record: Record, now: float) -> list[str]:
    """One line for an item that failed: who tried, what went wrong, how often, and when it is tried again."""
    from volumehost.control.messages import message_of

    error = record.error
    code = next((link.code for link in error_chain(error) if isinstance(link, StorageDriverError) and link.code), "")
    text = message_of(error) if error is not None else ""
    shown = f"{code}: {text}" if code and code not in text else text
    times = "once" if record.attempts == 1 else f"{record.attempts} times"
    if record.running or record.queued:
        when = "tried again now"
    elif record.due_at is None:
        when = "tried again when something changes"
    else:
        when = f"next try in {max(0.0, record.due_at - now):.0f} s"
    return [f"{controller}: {shown} (failed {times}, {when})"]
