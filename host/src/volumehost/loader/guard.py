"""Runs third-party code in a thread with a deadline, so that what hangs, exits or raises concerns nobody else."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Outcome:
    """How a guarded call ended: a value, an error (SystemExit too), or not at all within its deadline."""

    thread: threading.Thread
    value: Any = None
    error: BaseException | None = None
    finished: bool = False

    @property
    def stuck(self) -> bool:
        """Whether its thread still runs, past the deadline."""
        return self.thread.is_alive()


class Guard:
    """Runs calls in daemon threads, and knows whether the present thread is one of them."""

    def __init__(self) -> None:
        self._inside = threading.local()

    @property
    def inside(self) -> bool:
        """Whether the caller runs inside a guarded call; such a caller must not wait for the manager's lock."""
        return getattr(self._inside, "depth", 0) > 0

    def run(self, function: Callable[[], Any], timeout: float, name: str) -> Outcome:
        """Call the function in a daemon thread and wait at most ``timeout`` seconds for it.

        Never raises what the function raises: the outcome carries it. A thread that does not end in time is left
        alone; Python offers no way to end it.
        """
        outcome: Outcome
        context = contextvars.copy_context()

        def work() -> None:
            self._inside.depth = 1
            try:
                outcome.value = context.run(function)
            except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt of a plugin are its own
                outcome.error = error
            outcome.finished = True

        thread = threading.Thread(target=work, name=name, daemon=True)
        outcome = Outcome(thread)
        thread.start()
        thread.join(timeout)
        return outcome
