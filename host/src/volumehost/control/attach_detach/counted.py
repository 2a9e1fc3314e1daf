"""Counts attaching and detaching, from the first call of an operation to its end (METRIC-01)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from volumehost.errors import ConflictError

if TYPE_CHECKING:
    from volumehost.control.attach_detach.wishes import Pair
    from volumehost.control.attach_detach.world import World

_CSI = "kubernetes.io/csi"


class Counted:
    """One kind of operation: ``volume_attach`` or ``volume_detach``. Safe for threads."""

    def __init__(self, world: World, operation: str) -> None:
        self._world = world
        self._operation = operation
        self._lock = threading.Lock()
        self._since: dict[Pair, float] = {}

    @contextmanager
    def call(self, pair: Pair) -> Iterator[None]:
        """Around a call for the pair; its failure ends the operation."""
        with self._lock:
            self._since.setdefault(pair, self._world.clock())
        try:
            yield
        except ConflictError:
            raise
        except BaseException as error:
            self._end(pair, error)
            raise

    def forget(self, pair: Pair) -> None:
        """Nobody wants that any more: what was begun neither succeeds nor fails."""
        with self._lock:
            self._since.pop(pair, None)

    def done(self, pair: Pair) -> None:
        """It has succeeded."""
        self._end(pair, None)

    def _end(self, pair: Pair, error: BaseException | None) -> None:
        with self._lock:
            since = self._since.pop(pair, None)
        metrics = self._world.context.metrics
        if metrics is not None and since is not None:
            seconds = self._world.clock() - since
            metrics.controlled(self._operation, seconds, error, plugin_label(pair.volume), migrated=False)


def plugin_label(volume: str) -> str:
    """The plugin of a unique volume name as metrics call it (UTIL-14)."""
    plugin = "/".join(volume.split("/", 2)[:2])
    driver, separator, _ = volume.removeprefix(f"{plugin}/").partition("^")
    return f"{plugin}:{driver}" if plugin == _CSI and separator else plugin
