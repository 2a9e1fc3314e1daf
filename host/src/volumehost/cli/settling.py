"""Has the controllers do what applied or deleted objects ask for, when no agent runs that would; and waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from volumehost.cli.managing import volume_manager
from volumehost.cli.progress import progress
from volumehost.errors import MissingPrivilegeError, ObjectNotFoundError, VolumesFailedError, WaitTimeoutError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.kinds import Kind
    from volumehost.api.objects import KubeObject
    from volumehost.cli.options import Settings
    from volumehost.control.plane import ControlPlane

#: How often something is tried before a command gives up on it.
ATTEMPTS = 3


def no_wait_option(function: Callable[..., object]) -> Callable[..., object]:
    """``--wait/--no-wait`` of the commands that change objects."""
    return click.option(
        "--wait/--no-wait", default=True, help="Wait until the controllers have done their part.  [default: wait]"
    )(function)


@dataclass(frozen=True)
class Wish:
    """One object, what is done about it (``deleting``), and whether that is over; None stands for "gone"."""

    kind: Kind[KubeObject]
    name: str
    namespace: str
    doing: str
    fulfilled: Callable[[KubeObject | None], bool]

    def look(self, api: ApiClient) -> KubeObject | None:
        """The object as it is now."""
        try:
            return api.get(self.kind.struct, self.name, self.namespace)
        except ObjectNotFoundError:
            return None

    def is_fulfilled(self, api: ApiClient) -> bool:
        """Whether nothing is left to do."""
        return self.fulfilled(self.look(api))


def settle(settings: Settings, api: ApiClient, wishes: Sequence[Wish], timeout: float) -> list[Exception]:
    """Run the controllers until each wish is fulfilled, has failed a few times, or waits for something else.

    Whoever has the root directory now, an agent say, does it in our stead.

    :returns: an error for each wish that failed or is not fulfilled in time.
    """
    deadline = time.monotonic() + timeout

    def all_fulfilled() -> bool:
        return all(wish.is_fulfilled(api) for wish in wishes)

    if not wishes or all_fulfilled():
        return []
    try:
        with volume_manager(settings, timeout, unless=all_fulfilled) as manager:
            if manager is None:
                return []
            return _wait(manager.control, api, wishes, deadline, settings.verbosity)
    except MissingPrivilegeError as error:
        words = "it is done by the next command that runs with the privilege to mount"
        click.echo(f"note: nothing was done about {', '.join(map(_label, wishes))}: {error.reason}; {words}", err=True)
        return []


def _wait(
    control: ControlPlane, api: ApiClient, wishes: Sequence[Wish], deadline: float, verbosity: int
) -> list[Exception]:
    def is_over() -> bool:
        return all(_is_over(control, api, wish) for wish in wishes) and control.settled()

    def lines() -> list[str]:
        waiting = [(wish, wish.look(api)) for wish in wishes if not wish.is_fulfilled(api)]
        return [f"{wish.doing} {_label(wish)}: {_words(control, found)}".rstrip(": ") for wish, found in waiting]

    left = max(0.0, deadline - time.monotonic())
    in_time = True
    with progress(lines, verbosity=verbosity):
        try:
            control.wait_until(is_over, left, ", ".join(map(_label, wishes)))
        except WaitTimeoutError:
            in_time = False
    errors: list[Exception] = []
    for wish in wishes:
        found = wish.look(api)
        if found is None or wish.fulfilled(found):
            continue
        details = control.explain(found)
        if details or not in_time:
            reason = "it failed" if in_time else "it is not done yet"
            error = (VolumesFailedError if in_time else WaitTimeoutError)(
                reason, details=details, action=f"{wish.doing} {_label(wish)}", subject=wish.name
            )
            error.hint = "it is tried again by the next command, or by an agent"
            errors.append(error)
    return errors


def _is_over(control: ControlPlane, api: ApiClient, wish: Wish) -> bool:
    """Whether waiting helps no more: fulfilled, failed often enough, or nothing is being done about it."""
    found = wish.look(api)
    if wish.fulfilled(found):
        return True
    if found is None:
        return True
    failure = control.failure(found)
    return failure.attempts >= ATTEMPTS if failure is not None else not control.explain(found)


def _words(control: ControlPlane, found: KubeObject | None) -> str:
    return control.explain(found)[0] if found is not None and control.explain(found) else ""


def _label(wish: Wish) -> str:
    return wish.kind.describe(wish.name, wish.namespace)
