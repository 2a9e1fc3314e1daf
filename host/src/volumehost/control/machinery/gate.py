"""Keeps a storage driver (or a plugin) that does not answer from taking every worker of the control plane (BR-52).

Controllers reach drivers through it, as long as they may: one that does not lead any more begins no call. While too
many calls of one hang, no other of that one is begun: what needs it is told so, waits for its next attempt, and is
looked at as soon as one of those calls comes back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from volumehost.errors import StorageDriverUnavailableError

if TYPE_CHECKING:
    from volumehost.storage_driver import StorageDriver

#: How many calls of one driver may hang, and after how many seconds a call does.
MOST_HANGING: Final = 16
HANGING_SECONDS: Final = 2.0


class Gate:
    """Counts the calls that are under way for each driver. Safe for threads.

    :param freed: called with a driver's name when one of its calls came back and others were refused before.
    :param allowed: asked before each call; raises where none may be begun any more, because others lead now.
    :param clock: monotonic, in seconds.
    """

    def __init__(
        self,
        freed: Callable[[str], object] = lambda _name: None,
        *,
        allowed: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        most: int = MOST_HANGING,
    ) -> None:
        self._freed = freed
        self._allowed = allowed
        self._clock = clock
        self._most = most
        self._lock = threading.Lock()
        self._calls: dict[str, dict[object, float]] = {}
        self._refused: set[str] = set()

    @contextmanager
    def entered(self, name: str) -> Iterator[None]:
        """Around a call of the driver or plugin of that name.

        :raises StorageDriverUnavailableError: too many of its calls hang; this one was not begun.
        :raises ApiError: no call may be begun any more.
        """
        self._allowed()
        call = object()
        with self._lock:
            self._admit(name)
            self._calls.setdefault(name, {})[call] = self._clock()
        try:
            yield
        finally:
            with self._lock:
                del self._calls[name][call]
                if not self._calls[name]:
                    del self._calls[name]
                refused = name in self._refused
                self._refused.discard(name)
            if refused:
                self._freed(name)

    def guarded(self, driver: StorageDriver) -> StorageDriver:
        """The driver, each of whose calls goes through here."""
        return cast("StorageDriver", _Guarded(driver, self))

    def _admit(self, name: str) -> None:
        now = self._clock()
        ages = [now - since for since in self._calls.get(name, {}).values()]
        hanging = [age for age in ages if age >= HANGING_SECONDS]
        if len(hanging) < self._most:
            return
        self._refused.add(name)
        raise StorageDriverUnavailableError(
            f"{len(hanging)} calls of {name} have not come back, one for {max(hanging):.0f} s: no other is begun",
            driver=name,
            hint="it is tried again when one of them does; volumehost drivers show tells of the driver",
        )


class _Guarded:
    """Stands for a driver."""

    def __init__(self, driver: StorageDriver, gate: Gate) -> None:
        self._driver = driver
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._driver, name)
        return self._through(value) if callable(value) else value

    def _through(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **options: Any) -> Any:
            with self._gate.entered(self._driver.name):
                return call(*args, **options)

        return guarded
