"""Whether the agent's volume manager still gets round to its work: a beat on its timer, and how long a pass takes.

The health endpoint and systemd's watchdog are answered by it. An operation that hangs is none of its business: that
holds up only itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from volumehost.node.assembly import NodeParts

#: Seconds between two beats, without one for how long the timer counts as stuck, and how long the reconciler may take
#: for what changed.
BEAT_SECONDS: Final = 5.0
MISSED_SECONDS: Final = 30.0
PASS_SECONDS: Final = 60.0


class Heart:
    """Beats from :meth:`start` to the end of the manager. Safe for threads."""

    def __init__(self, parts: NodeParts, clock: Callable[[], float] = time.monotonic) -> None:
        self._parts = parts
        self._clock = clock
        self._beat_at = clock()

    def start(self) -> None:
        """Begin to beat."""
        self._beat()

    def timer_problem(self) -> str:
        """Why timers do not come round, "" when they do."""
        silent = self._clock() - self._beat_at
        return f"timers have not come round for {silent:.0f} s" if silent > MISSED_SECONDS else ""

    def reconciler_problem(self) -> str:
        """Why nothing new is begun, "" when the reconciler gets on."""
        since = self._parts.reconciler.at_work_since
        taken = self._clock() - since if since is not None else 0.0
        return f"the reconciler has been at one pass for {taken:.0f} s" if taken > PASS_SECONDS else ""

    @property
    def beats(self) -> bool:
        """Whether neither has a problem."""
        return not (self.timer_problem() or self.reconciler_problem())

    def _beat(self) -> None:
        self._beat_at = self._clock()
        self._parts.timers.call_later(BEAT_SECONDS, self._beat)
