"""Calls of a fake that are recorded, and fail when a test wants them to."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from volumehost.testing.storage_driver_state import driver_error

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it came; ``arguments`` are those of the method by name."""

    method: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Failure:
    error: BaseException
    after_effect: bool


class ScriptedCalls:
    """Keeps the calls of one driver in ``calls``, in order. Safe for threads."""

    def __init__(self, name: str, observer: Callable[[str, str], None] | None) -> None:
        self._name = name
        self.calls: list[Call] = []
        self._observer = observer
        self._failures: dict[str, deque[_Failure]] = defaultdict(deque)
        self._lock = threading.RLock()

    def fail(
        self,
        method: str,
        code: str | BaseException,
        *,
        times: int = 1,
        after_effect: bool = False,
        message: str = "it was told to fail",
    ) -> None:
        """Let the next ``times`` calls of the method fail, with the error of a gRPC code or any other.

        :param after_effect: do the work first, as a driver does whose answer is lost.
        """
        error = driver_error(self._name, method, code, message) if isinstance(code, str) else code
        self._failures[method].extend([_Failure(error, after_effect)] * times)

    def count(self, method: str) -> int:
        """How often the method was called."""
        return sum(call.method == method for call in self.calls)

    def last(self, method: str) -> Mapping[str, Any]:
        """The arguments of the last call of the method."""
        return [call for call in self.calls if call.method == method][-1].arguments

    def _call(self, method: str, effect: Callable[[], R], **arguments: Any) -> R:
        with self._lock:
            self.calls.append(Call(method, arguments))
            waiting = self._failures[method]
            failure = waiting.popleft() if waiting else None
        if failure is not None and not failure.after_effect:
            raise failure.error
        self._tell("before", method)
        with self._effect():
            result = effect()
        self._tell("after", method)
        if failure is not None:
            raise failure.error
        return result

    def _effect(self) -> AbstractContextManager[None]:
        """What surrounds a change of the state."""
        raise NotImplementedError

    def _tell(self, moment: str, method: str) -> None:
        if self._observer is not None:
            self._observer(moment, method)
