"""Checks of what a plugin leaves in the process that loaded it, when the volume is gone and it was shut down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.testing.conformance.check import check, require
from volumehost.testing.leaks import LeakGuard

if TYPE_CHECKING:
    from volumehost.testing.conformance.trial import Trial

_GRACE = 1.0  # seconds for threads and processes that shutdown told to end


@check("PLUG-01", "BR-18")
def nothing_is_left_in_the_process(trial: Trial) -> None:
    """After the whole life of a volume and a shutdown no thread (but daemons), process, descriptor, loop device or
    mount is left.
    """
    with LeakGuard(trial.host.root_dir, grace=_GRACE) as guard:
        _live(trial)
        with LeakGuard(trial.host.root_dir, grace=0.0) as second:
            _live(trial)
            # What the first life opened and keeps, a random device say, is opened once in a process.
            left = [leak for leak in second.leaks() if leak.kind == "descriptor"]
        left += [leak for leak in guard.leaks() if leak.kind != "descriptor"]
        guard.take_away()
    require(not left, "after tear_down and shutdown there is left: " + "; ".join(map(str, left)))


def _live(trial: Trial) -> None:
    trial.restart()
    trial.set_up()
    trial.tear_down()
    trial.let_go()
    trial.stop()
