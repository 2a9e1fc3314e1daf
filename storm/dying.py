"""``python -m storm.dying ARGUMENTS``: the program ``volumehost``, which ends itself at a step that a variable names.

A volume manager tells an observer of every named step of every operation; the observer that it is given here kills. The
variable is read by this launcher alone, never by the product.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storm.steps import Step

#: ``<operation>/<step>:<count>``: die before the step is taken for the count-th time.
VARIABLE = "VOLUMEHOST_STORM_DIE_AT"


def variable_for(step: Step, count: int = 1) -> dict[str, str]:
    """What to add to the environment of a process that is to die."""
    return {VARIABLE: f"{step}:{count}"}


class DieAt:
    """A StepObserver that ends the process as ``kill -9`` does."""

    def __init__(self, text: str) -> None:
        step, _, count = text.rpartition(":")
        self._step = tuple(step.split("/"))
        self._left = int(count)

    def __call__(self, operation: str, step: str, _volume: str, _pod_uid: str) -> None:
        """A step is about to be taken."""
        if (operation, step) == self._step:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run the program."""
    if text := os.environ.pop(VARIABLE, ""):
        from volumehost.node.manager import VolumeManager

        # The one place where a storm reaches into the program: every manager of this process gets the observer.
        made = functools.partialmethod(VolumeManager.__init__, observer=DieAt(text))
        VolumeManager.__init__ = made  # type: ignore[assignment, method-assign]
    from volumehost.cli import main as volumehost

    sys.argv[0] = "volumehost"
    sys.exit(volumehost())


if __name__ == "__main__":
    main()
