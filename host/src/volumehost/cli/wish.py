"""What the commands share whose work is done by the controllers: a wish in the store, and the wait for it.

Whoever manages the root directory fulfils it: this process, or an agent that has it already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.cli.api_choice import open_for_writing
from volumehost.cli.managing import root_dir_exists, volume_manager
from volumehost.cli.progress import progress
from volumehost.errors import ObjectNotFoundError, VolumeHostError, WaitTimeoutError
from volumehost.mount.deadline import in_seconds

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import KubeObject, Pod
    from volumehost.cli.options import Settings
    from volumehost.node.pod_manager import Controllers

#: How often something is tried before a command gives up on it: what fails once may be busy, what fails thrice is not.
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Wish:
    """Something that the controllers are to bring about.

    ``what`` says it, after "waiting for". ``is_done`` asks the store. ``objects`` are those that the controllers work
    on for it, as they are now. ``problem`` is why it will not come about as things are, None where it may yet; it is
    asked when the controllers have done all they can for now. ``pods`` are mounted pods whose volumes have a part in
    it. Without ``insists`` it is enough that the controllers have done what they can: the rest may need a pod.
    """

    what: str
    is_done: Callable[[], bool]
    objects: Callable[[], Sequence[KubeObject]]
    problem: Callable[[], VolumeHostError | None] = lambda: None
    pods: Callable[[], Sequence[Pod]] = tuple
    insists: bool = True


def existing_store(settings: Settings, what: str) -> AbstractContextManager[ApiClient]:
    """The API objects, for a wish about something that must be there.

    :param what: what must be there, for the error: ``claim default/data``.
    :raises ObjectNotFoundError: without a cluster: there is no root directory, and none is made.
    """
    if not settings.cluster and not root_dir_exists(settings):
        raise ObjectNotFoundError(
            f"there is no {what}: the root directory {settings.root} does not exist",
            subject=what,
            hint="another root directory is given with --root-dir",
        )
    return open_for_writing(settings)


def bring_about(settings: Settings, api: ApiClient, wish: Wish, timeout: float) -> None:
    """Wait until the wish has come true.

    :raises WaitTimeoutError: it has not in time; ``details`` tells what its objects are at.
    :raises VolumeHostError: it will not as things are; the wish stays in the store.
    """
    for error in bring_all_about(settings, api, [wish], timeout):
        raise error


def bring_all_about(
    settings: Settings, api: ApiClient, wishes: Sequence[Wish], timeout: float
) -> list[VolumeHostError]:
    """Wait until each wish has come true, or will not as things are; one does not keep the others.

    In a cluster others bring it about, and all that can be done is to look.

    :param api: where the wishes are.
    :returns: an error for each wish that has not come true; see :func:`bring_about`.
    """
    if settings.cluster:
        from volumehost.cli.cluster_wait import wait_for_cluster

        return wait_for_cluster(api, wishes, timeout, verbosity=settings.verbosity)
    deadline = time.monotonic() + timeout

    def all_done() -> bool:
        return all(wish.is_done() for wish in wishes)

    if all_done():
        return []
    with volume_manager(settings, timeout, unless=all_done) as manager:
        if manager is None or all_done():
            return []
        plane = manager.control
        for wish in wishes:
            for pod in wish.pods():
                manager.sync_pod(pod)
        found: list[VolumeHostError | None] = []

        def is_over() -> bool:
            outcomes = [_outcome(plane, wish) for wish in wishes]
            found[:] = [outcome if isinstance(outcome, VolumeHostError) else None for outcome in outcomes]
            return None not in outcomes

        with progress(lambda: _lines(plane, wishes), verbosity=settings.verbosity):
            try:
                what = ", ".join(wish.what for wish in wishes)
                plane.wait_until(is_over, max(0.0, deadline - time.monotonic()), what)
            except WaitTimeoutError:
                return [
                    error or _late(plane, wish, timeout)
                    for error, wish in zip(found, wishes, strict=True)
                    if error is not None or not wish.is_done()
                ]
    return [error for error in found if error is not None]


def _outcome(plane: Controllers, wish: Wish) -> VolumeHostError | bool | None:
    """True when it is done, or as good as that; why it will not be; None while it may yet."""
    if wish.is_done():
        return True
    failure = _failure(plane, wish)
    if failure is not None:
        return failure
    if not plane.settled() or _is_retried(plane, wish):
        return None
    return wish.problem() or (None if wish.insists else True)


def _failure(plane: Controllers, wish: Wish) -> VolumeHostError | None:
    """The error of what has failed often enough."""
    for obj in wish.objects():
        record = plane.failure(obj)
        if record is not None and record.attempts >= ATTEMPTS and isinstance(record.error, VolumeHostError):
            return record.error
    return None


def _is_retried(plane: Controllers, wish: Wish) -> bool:
    return any(plane.failure(obj) is not None for obj in wish.objects())


def _late(plane: Controllers, wish: Wish, timeout: float) -> WaitTimeoutError:
    return WaitTimeoutError(
        f"not so after {in_seconds(timeout)}",
        details=[line for obj in wish.objects() for line in plane.explain(obj)],
        action=f"waiting for {wish.what}",
        hint="the controllers go on with it when a command or an agent next works on the root directory",
    )


def _lines(plane: Controllers, wishes: Sequence[Wish]) -> list[str]:
    lines = []
    for wish in wishes:
        if not wish.is_done():
            lines += [
                f"waiting for {wish.what}",
                *(f"  {line}" for obj in wish.objects() for line in plane.explain(obj)),
            ]
    return lines
