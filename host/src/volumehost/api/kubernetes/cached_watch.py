"""Watches that are answered from what informers have seen. Used by ``cached_client``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from volumehost.api.client import WatchEvent
from volumehost.api.kubernetes.change_log import Change, ChangeLog, is_later
from volumehost.api.kubernetes.codec import bookmark, read_heading, read_object
from volumehost.api.kubernetes.informer import Informer

#: How often a caller's ``stop`` is asked, in seconds.
_LOOK_SECONDS = 0.1
Stop = Callable[[], bool] | None


class CachedWatch:
    """The events of some informers' kinds, in one order.

    :param namespace: "" for all.
    """

    def __init__(
        self, log: ChangeLog, informers: Sequence[Informer[Any]], namespace: str, stop: Stop, timeout: float | None
    ) -> None:
        self._log = log
        self._informers = {informer.kind.kind: informer for informer in informers}
        self._namespace = namespace
        self._stop = stop
        self._deadline = None if timeout is None else time.monotonic() + timeout

    def from_present(self, *, mark: bool) -> Iterator[WatchEvent[Any]]:
        """All objects as ADDED, then changes. All informers must have synced.

        :param mark: end what is present, and each group of changes, with a BOOKMARK for all kinds together.
        :raises GoneError: whoever reads is too slow.
        """
        with self._log.changed:
            number = self._log.end
            present = [
                (informer, body)
                for informer in self._informers.values()
                for body in informer.cache.bodies(self._namespace, own=False)
            ]
            told = self._common_version()
        for informer, body in present:
            yield WatchEvent("ADDED", read_object(informer.kind, body))
        del present
        if mark:
            yield self._mark(told)
        yield from self.from_number(number, mark=mark, told=told)

    def from_number(
        self, number: int, *, mark: bool = False, told: str = "", after: str = ""
    ) -> Iterator[WatchEvent[Any]]:
        """Changes from a place in the log on; none of a version that is not later than ``after``."""
        while not self._stopped():
            with self._log.changed:
                changes, number = self._log.since(number, self._informers), self._log.end
                version = self._common_version()
            for change in changes:
                if self._stopped():
                    return
                if (event := self._event(change, after, mark=mark)) is not None:
                    yield event
            if mark and version != told:
                told = version
                yield self._mark(told)
            if not self._wait(number):
                return

    def _event(self, change: Change, after: str, *, mark: bool) -> WatchEvent[Any] | None:
        kind = self._informers[change.kind].kind
        if change.type == "BOOKMARK":
            return None if mark else WatchEvent("BOOKMARK", bookmark(kind.struct, change.version))
        if self._namespace and change.namespace != self._namespace:
            return None
        if after and not is_later(change.version or read_heading(change.body).version, after):
            return None
        return WatchEvent(change.type, read_object(kind, change.body))

    def _wait(self, number: int) -> bool:
        """Wait for a change after that number; whether to go on."""
        while True:
            left = _LOOK_SECONDS if self._deadline is None else min(_LOOK_SECONDS, self._deadline - time.monotonic())
            with self._log.changed:
                if self._log.end > number:
                    return True
                if left <= 0 or any(informer.stopped for informer in self._informers.values()):
                    return False
                self._log.changed.wait(left)
            if self._stopped():
                return False

    def _stopped(self) -> bool:
        return self._stop is not None and self._stop()

    def _common_version(self) -> str:
        """Up to where everything of every kind was told. Under the lock."""
        versions = [informer.cache.version for informer in self._informers.values()]
        numbers = [int(version) for version in versions if version.isdigit()]
        return str(min(numbers)) if len(numbers) == len(versions) and numbers else versions[0]

    def _mark(self, version: str) -> WatchEvent[Any]:
        first = next(iter(self._informers.values()))
        return WatchEvent("BOOKMARK", bookmark(first.kind.struct, version))
