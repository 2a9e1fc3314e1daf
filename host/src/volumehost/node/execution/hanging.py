"""Where an operation that takes long is stuck, in one line; for status, for explanations and for the journal.

What is asked here is asked of a running process about itself: it touches no mount and waits for nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from volumehost.node.execution.pending import PendingOperation, PendingOperations
    from volumehost.node.operations.common import Services

#: How long an operation has run when it is first looked for, in seconds.
LONG_SECONDS = 1.0

#: It is looked for again when it has run for half as long again, and after this many seconds at the latest.
_LOOK_AGAIN_SECONDS = 10.0


def where_it_hangs(entry: PendingOperation | None, pending: PendingOperations, clock: Callable[[], float]) -> str:
    """Where the operation is, "" for none and for one that has not run for more than a second.

    :param clock: the manager's.
    """
    if entry is None or not entry.running or clock() - entry.started_at <= LONG_SECONDS:
        return ""
    thread = entry.thread
    if thread is not None:
        from volumehost.mount.whereabouts import whereabouts

        return whereabouts(thread)
    hanging = sum(each.thread is not None and each.lane == entry.lane for each in pending.running())
    return f"waiting for a worker, {hanging} operations of {entry.lane} hang" if hanging else "waiting for a worker"


class SlowNotes:
    """Keeps in the journal where slow operations are, for status of another process. Used by one thread at a time."""

    def __init__(self, services: Services, pending: PendingOperations) -> None:
        self._services = services
        self._pending = pending
        self._told: dict[PendingOperation, tuple[dict[str, Any], float]] = {}

    def take(self, running: Iterable[PendingOperation]) -> None:
        """Note what is new of the operations that run and have run for long."""
        clock = self._services.clock
        told, self._told = self._told, {}
        for entry in running:
            age = clock() - entry.started_at
            if age <= LONG_SECONDS:
                continue
            former, look_at = told.get(entry, ({}, 0.0))
            note = former
            if clock() >= look_at or entry.step != former.get("step"):
                look_at = clock() + min(age / 2, _LOOK_AGAIN_SECONDS)
                where = where_it_hangs(entry, self._pending, clock)
                note = {"op": entry.name, "step": entry.step, "where": where, "progress": entry.progress}
            if note != former:
                self._note(entry, note)
            self._told[entry] = note, look_at
        for entry in told.keys() - self._told.keys():  # it has ended: the next run begins with a clean record
            self._note(entry, {"where": "", "progress": ""})

    def _note(self, entry: PendingOperation, note: dict[str, Any]) -> None:
        self._services.note({"v": entry.key.volume, "p": entry.key.pod, **note}, only_known=True)
