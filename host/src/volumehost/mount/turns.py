"""One caller at a time for each name, so that two do not make the same thing twice. Called by the subpath code."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Names that are taken; safe for threads."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, name: str, timeout: float) -> Iterator[None]:
        """Have the name for the block; others who want it wait.

        :param timeout: seconds to wait for it.
        :raises TimeoutError: somebody else had it all the time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: name not in self._taken, timeout):
                raise TimeoutError(f"another call has been at it for {timeout:g} s")
            self._taken.add(name)
        try:
            yield
        finally:
            with self._changed:
                self._taken.discard(name)
                self._changed.notify_all()
