"""What the commands share whose work is done by the controllers: a wish in the store, and the wait for it.

Whoever manages the root directory fulfils it: this process, or an agent that has it already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.cli.managing import root_dir_exists, volume_manager
from volumehost.cli.objects import open_for_writing
from volumehost.cli.progress import progress
from volumehost.errors import ObjectNotFoundError, VolumeHostError, WaitTimeoutError

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject, Pod
    from volumehost.api.store import EmbeddedStore
    from volumehost.cli.options import Settings
    from volumehost.control.plane import ControlPlane

#: How often something is tried before a command gives up on it: what fails once may be busy, what fails thrice is not.
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Wish:
    """Something that the controllers are to bring about.

    ``what`` says it, after "waiting for". ``is_done`` asks the store. ``objects`` are those that the controllers work
    on for it, as they are now. ``problem`` is why it will not come about as things are, None where it may yet; it is
    asked when the controllers have done all they can for now. ``pods`` are mounted pods
    whose volumes have a part in it.
    """

    what: str
    is_done: Callable[[], bool]
    objects: Callable[[], Sequence[KubeObject]]
    problem: Callable[[], VolumeHostError | None] = lambda: None
    pods: Callable[[], Sequence[Pod]] = tuple


def existing_store(settings: Settings, what: str) -> EmbeddedStore:
    """The embedded store, for a wish about something that must be there.

    :param what: what must be there, for the error: ``claim default/data``.
    :raises ObjectNotFoundError: there is no root directory, and none is made.
    """
    if not root_dir_exists(settings):
        raise ObjectNotFoundError(
            f"there is no {what}: the root directory {settings.root} does not exist",
            subject=what,
            hint="another root directory is given with --root-dir",
        )
    return open_for_writing(settings)


def bring_about(settings: Settings, wish: Wish, timeout: float) -> None:
    """Wait until the wish has come true.

    :raises WaitTimeoutError: it has not in time; ``details`` tells what every object that failed is at.
    :raises VolumeHostError: it will not as things are; the wish stays in the store.
    """
    deadline = time.monotonic() + timeout
    with volume_manager(settings, timeout, unless=wish.is_done) as manager:
        if manager is None or wish.is_done():
            return
        plane = manager.control
        for pod in wish.pods():
            manager.sync_pod(pod)
        found: list[VolumeHostError] = []

        def is_over() -> bool:
            if wish.is_done():
                return True
            problem = _failure(plane, wish) or (wish.problem() if plane.settled() else None)
            if problem is not None:
                found.append(problem)
            return problem is not None

        with progress(lambda: _lines(plane, wish), verbosity=settings.verbosity):
            try:
                plane.wait_until(is_over, max(0.0, deadline - time.monotonic()), wish.what)
            except WaitTimeoutError as error:
                error.reason = f"not so after {timeout:g} s"  # of which some went by before
                error.hint = "the controllers go on with it when a command or an agent next works on the root directory"
                raise
    if found:
        raise found[0]


def _failure(plane: ControlPlane, wish: Wish) -> VolumeHostError | None:
    """The error of what has failed often enough."""
    for obj in wish.objects():
        record = plane.failure(obj)
        if record is not None and record.attempts >= ATTEMPTS and isinstance(record.error, VolumeHostError):
            return record.error
    return None


def _lines(plane: ControlPlane, wish: Wish) -> list[str]:
    return [f"waiting for {wish.what}", *(f"  {line}" for obj in wish.objects() for line in plane.explain(obj))]
