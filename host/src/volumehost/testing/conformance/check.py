"""What a conformance check is, and how it tells the result: return, :func:`require`, :func:`not_applicable`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from volumehost.spec import Spec
    from volumehost.testing.conformance.trial import Trial


class ConformanceFailure(AssertionError):  # noqa: N818 - it is a verdict, reported as a failed assertion
    """The plugin does not keep the contract; the text says what was expected and what happened instead."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check. ``rules`` are the rules of the contract that it holds the plugin to.

    ``of_volume``: it runs once for each volume given, otherwise once for the plugin. ``interface``: the name of the
    interface that the plugin must have for it. ``mode``: the volume mode it is for, "" for any. ``mounts``: it needs a
    mount namespace of its own.
    """

    name: str
    function: Callable[[Trial], None]
    rules: tuple[str, ...]
    of_volume: bool = True
    interface: str = ""
    mode: str = "Filesystem"
    mounts: bool = True

    def is_for(self, spec: Spec) -> bool:
        """Whether the check concerns a volume of this mode."""
        return not self.mode or spec.volume_mode() == self.mode

    @property
    def statement(self) -> str:
        """What must hold, in one sentence or two: the first paragraph of the docstring."""
        paragraph = (self.function.__doc__ or "").strip().partition("\n\n")[0]
        return " ".join(paragraph.split())


def check(
    *rules: str,
    of_volume: bool = True,
    interface: str = "",
    mode: str = "Filesystem",
    mounts: bool | None = None,
) -> Callable[[Callable[[Trial], None]], Check]:
    """Make a check of a function; its name becomes the test's id, its docstring says what must hold.

    Checks of volumes mount unless they say otherwise.
    """

    def decorate(function: Callable[[Trial], None]) -> Check:
        return Check(
            function.__name__, function, rules, of_volume, interface, mode, of_volume if mounts is None else mounts
        )

    return decorate


def require(condition: object, message: str) -> None:
    """Fail the check unless the condition holds."""
    __tracebackhide__ = True
    if not condition:
        fail(message)


def fail(message: str) -> NoReturn:
    """Fail the check."""
    __tracebackhide__ = True
    raise ConformanceFailure(message)


def not_applicable(reason: str) -> NoReturn:
    """The check says nothing about this plugin or volume: it is reported as skipped, with the reason."""
    __tracebackhide__ = True
    pytest.skip(reason)
