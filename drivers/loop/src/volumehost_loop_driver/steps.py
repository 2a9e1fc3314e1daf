"""Names of the instants between the steps of an operation, for tests that end the process exactly there."""

from __future__ import annotations

from typing import Protocol


class StepObserver(Protocol):
    """Told when an operation has reached a step; the program itself observes nothing."""

    def __call__(self, step: str) -> None:
        """``step`` is ``<operation>:<what has just been done>``, such as ``create:image``."""
        ...


def unobserved(step: str) -> None:
    """Observe nothing."""
