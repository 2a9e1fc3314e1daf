"""A channel that knows how many calls are on their way: a driver is replaced by its next version when there are none.

Not an interceptor of grpc's, which would cost each call more than the counting is worth.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import grpc


class CountedChannel:
    """Behaves as the channel that it is given."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._calls = 0

    @property
    def calls(self) -> int:
        """Calls on their way now; those made with ``future`` are not counted."""
        return self._calls

    def unary_unary(self, *args: Any, **kwargs: Any) -> _CountedCall:
        """A callable for one method."""
        return _CountedCall(self._channel.unary_unary(*args, **kwargs), self._add)

    def _add(self, number: int) -> None:
        with self._lock:
            self._calls += number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)


class _CountedCall:
    __slots__ = ("_add", "_callable")

    def __init__(self, multi_callable: Any, add: Callable[[int], None]) -> None:
        self._callable = multi_callable
        self._add = add

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._add(1)
        try:
            return self._callable(*args, **kwargs)
        finally:
            self._add(-1)

    def with_call(self, *args: Any, **kwargs: Any) -> Any:
        self._add(1)
        try:
            return self._callable.with_call(*args, **kwargs)
        finally:
            self._add(-1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._callable, name)
