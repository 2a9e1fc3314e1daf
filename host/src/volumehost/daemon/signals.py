"""Signals as bytes of a pipe: the main thread of the agent waits for them there, whichever thread the kernel chose.

A Python handler runs in the main thread alone, and only once that thread wakes, which a signal that another thread was
given does not bring about.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_WAKE = b"\0"


class Signals:
    """Hears signals from :meth:`hearing` on. Only its main thread may wait."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    @contextmanager
    def hearing(self, numbers: Iterable[int]) -> Iterator[None]:
        """Take these signals while the block runs. To be entered in the main thread."""
        former_descriptor = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        former = {number: signal.signal(number, lambda _number, _frame: None) for number in numbers}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(former_descriptor)

    def wait(self, timeout: float | None) -> list[int]:
        """Wait for signals, for :meth:`wake`, or at most ``timeout`` seconds; the signals that came."""
        select.select([self._reader], [], [], timeout)
        with contextlib.suppress(BlockingIOError):
            return [number for number in os.read(self._reader, 4096) if number]
        return []

    def wake(self) -> None:
        """Have :meth:`wait` return. Safe from any thread."""
        with contextlib.suppress(BlockingIOError):  # so much is in it that it returns anyhow
            os.write(self._writer, _WAKE)
