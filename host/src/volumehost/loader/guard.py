"""Runs third-party code in a thread with a deadline, so that what hangs, exits or raises concerns nobody else."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

_LONGEST_TEXT = 1000


class DeadlinePassedError(Exception):
    """A guarded call did not come back in time. Its thread goes on: Python offers no way to end it."""

    def __init__(self, seconds: float, thread: threading.Thread) -> None:
        super().__init__(f"it did not come back within {seconds:g} s")
        self.thread = thread


class Outcome:
    """How a guarded call ended: with a value, or with an error, which may be SystemExit or DeadlinePassedError."""

    __slots__ = ("error", "value")

    def __init__(self, value: Any = None, error: BaseException | None = None) -> None:
        self.value = value
        self.error = error


class Guard:
    """Runs calls in daemon threads, and knows whether the present thread is one of them."""

    def __init__(self) -> None:
        self._local = threading.local()

    @property
    def inside(self) -> bool:
        """Whether the caller runs inside a guarded call; such a caller must not wait for the manager's lock."""
        return getattr(self._local, "inside", False)

    def run(self, function: Callable[[], Any], timeout: float, name: str) -> Outcome:
        """Call the function in a daemon thread and wait at most ``timeout`` seconds for it; never raises."""
        outcomes: list[Outcome] = []
        context = contextvars.copy_context()

        def work() -> None:
            self._local.inside = True
            try:
                outcomes.append(Outcome(value=context.run(function)))
            except BaseException as error:  # noqa: BLE001 - SystemExit and the like of a plugin are its own
                outcomes.append(Outcome(error=error))

        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        thread.join(timeout)
        return outcomes[0] if outcomes else Outcome(error=DeadlinePassedError(timeout, thread))


def still_running(error: BaseException | None) -> bool:
    """Whether the call that led to the error is one that has not come back even now."""
    cause = error
    while cause is not None and not isinstance(cause, DeadlinePassedError):
        cause = cause.__cause__
    return cause is not None and cause.thread.is_alive()


def describe(error: BaseException) -> str:
    """One line on how third-party code failed."""
    if isinstance(error, DeadlinePassedError):
        return str(error)
    if isinstance(error, SystemExit):
        return f"it tried to end the process (SystemExit: {error.code})"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"missing module {error.name!r}"
    text = shown(error, str)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shown(value: object, text_of: Callable[[Any], str] = repr) -> str:
    """A third party's value as text of a reasonable length, also when it cannot be made text of."""
    try:
        text = text_of(value)
    except Exception:  # noqa: BLE001 - code of the third party as well
        return f"<{type(value).__name__} that cannot be shown>"
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
