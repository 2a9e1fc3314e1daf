"""Where an operation that takes long is stuck, in one line; for status, for explanations and for the journal.

What is asked here is asked of a running process about itself: it touches no mount and waits for nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.node.pending import PendingOperation, PendingOperations

#: How long an operation has run when it is first looked for, in seconds.
LONG_SECONDS = 1.0


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
