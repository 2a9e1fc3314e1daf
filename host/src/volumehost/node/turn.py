"""Waits for a turn on a root directory: one manager works on it at a time, and one-shot commands are soon done.

Where an agent has it for good, there is no turn to wait for: the caller works through the agent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

from volumehost.errors import AgentGoneError, RootDirectoryLockedError, WaitTimeoutError
from volumehost.mount.deadline import in_seconds

if TYPE_CHECKING:
    from volumehost.node.pod_manager import PodManager

T = TypeVar("T")

#: Seconds between two looks at the lock of another process, which announces nothing.
_PAUSE = 0.05


@contextmanager
def manager_in_turn(
    make: Callable[[], AbstractContextManager[PodManager]],
    timeout: float,
    *,
    join: Callable[[], AbstractContextManager[PodManager]] | None = None,
    on_wait: Callable[[int | None], None] = lambda pid: None,  # noqa: ARG005 - whoever waits silently
    unless: Callable[[], bool] = lambda: False,
) -> Iterator[PodManager | None]:
    """Enter a manager as soon as no other works on its root directory, or that of the agent that has it.

    :param make: makes the manager, anew for each try.
    :param join: makes the manager of the agent that has the root directory; entering it raises AgentGoneError when it
        is none that has it.
    :param timeout: seconds to wait for the turn.
    :param on_wait: told once that it has to wait, and for which process.
    :param unless: asked while waiting; when it is true there is nothing left to do, and the manager is None.
    :raises WaitTimeoutError: another manager had the root directory all the time.
    """
    deadline = time.monotonic() + timeout
    pause, told = threading.Event(), False
    with ExitStack() as stack:
        manager: PodManager | None = None
        while manager is None:
            try:
                manager = stack.enter_context(make())
            except RootDirectoryLockedError as error:
                if unless():
                    break
                manager = _joined(stack, join)
                if manager is not None:
                    break
                if time.monotonic() >= deadline:
                    raise WaitTimeoutError(
                        f"{error.reason}, and did all of {in_seconds(timeout)}",
                        action="waiting for the root directory",
                        subject=error.subject,
                        hint="try again when it has ended, or give a longer --timeout",
                    ) from error
                if not told:
                    on_wait(error.pid)
                    told = True
                pause.wait(min(_PAUSE, max(0.0, deadline - time.monotonic())))
        yield manager


def _joined(stack: ExitStack, join: Callable[[], AbstractContextManager[PodManager]] | None) -> PodManager | None:
    """The agent's manager, entered; None where no agent is at work."""
    if join is None:
        return None
    try:
        return stack.enter_context(join())
    except AgentGoneError:
        return None


def in_turns(timeout: float, longest: float, call: Callable[[float], T]) -> T:
    """Make a call that waits, in turns of at most ``longest`` seconds each, until it is done or the time is over.

    :param call: waits for as many seconds as it is given, and raises WaitTimeoutError when that was not enough.
    :raises WaitTimeoutError: the last one's, with the whole time.
    """
    deadline = time.monotonic() + timeout
    while True:
        turn = min(max(0.0, deadline - time.monotonic()), longest)
        try:
            return call(turn)
        except WaitTimeoutError as error:
            if time.monotonic() >= deadline:
                error.reason = error.reason.replace(f" after {in_seconds(turn)}", f" after {in_seconds(timeout)}")
                raise
