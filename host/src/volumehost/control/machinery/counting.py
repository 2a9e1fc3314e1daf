"""What the controllers count of their work, where somebody exports metrics (METRIC-01 to -03, -08, -09).

Whoever makes a control plane may hand in a :class:`ControlMetrics`. Without one nothing is measured.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from volumehost.errors import ConflictError

logger = logging.getLogger(__name__)

#: Of so many objects whose operation failed it is remembered since when it is tried; the oldest are forgotten.
_REMEMBERED = 4096


class ControlMetrics(Protocol):
    """Counts what controllers did. Called by several threads at a time; must be quick."""

    def controlled(
        self, operation: str, seconds: float, error: BaseException | None, plugin: str, *, migrated: bool
    ) -> None:
        """One attempt has ended: ``volume_provision``, ``volume_delete`` or ``expand_volume`` (METRIC-02)."""
        ...

    def completed(self, operation: str, seconds: float, plugin: str) -> None:
        """``provision`` or ``delete`` is done, ``seconds`` after it was first tried (METRIC-03)."""
        ...

    def attempt_failed(self, operation: str, plugin: str) -> None:
        """``provision`` or ``delete`` failed, and is tried again (METRIC-09)."""
        ...

    def forced_detach(self, reason: str) -> None:
        """A volume is detached from a node that uses it (METRIC-08)."""
        ...

    def class_assigned(self, error: BaseException | None) -> None:
        """A claim that named no class was to get the default one (PVC-53)."""
        ...


class CountedOperation:
    """One kind of operation. Safe for threads.

    :param name: of one attempt.
    :param total: of the whole, from the first attempt to the success; "" where that is not counted.
    """

    def __init__(self, metrics: ControlMetrics | None, name: str, total: str = "") -> None:
        self._metrics = metrics
        self._name = name
        self._total = total
        self._lock = threading.Lock()
        self._since: dict[str, float] = {}

    @contextmanager
    def attempt(self, uid: str, plugin: str, *, migrated: bool = False) -> Iterator[None]:
        """Count what is done inside for the object of that uid. A write that met a newer state is no attempt.

        :param plugin: its name for metrics (UTIL-14).
        """
        metrics = self._metrics
        if metrics is None:
            yield
            return
        started = time.perf_counter()
        if self._total:
            with self._lock:
                started_first = self._since.setdefault(uid, started)
                if len(self._since) > _REMEMBERED:
                    del self._since[next(iter(self._since))]
        try:
            yield
        except ConflictError:
            raise
        except BaseException as error:
            seconds = time.perf_counter() - started
            problem = error
            _tell(lambda: metrics.controlled(self._name, seconds, problem, plugin, migrated=migrated))
            if self._total:
                _tell(lambda: metrics.attempt_failed(self._total, plugin))
            raise
        now = time.perf_counter()
        _tell(lambda: metrics.controlled(self._name, now - started, None, plugin, migrated=migrated))
        if self._total:
            self.forget(uid)
            _tell(lambda: metrics.completed(self._total, now - started_first, plugin))

    def forget(self, uid: str) -> None:
        """The object needs it no more."""
        with self._lock:
            self._since.pop(uid, None)


def count_forced_detach(metrics: ControlMetrics | None, reason: str) -> None:
    """See :meth:`ControlMetrics.forced_detach`."""
    if metrics is not None:
        _tell(lambda: metrics.forced_detach(reason))


@contextmanager
def counted_class_assignment(metrics: ControlMetrics | None) -> Iterator[None]:
    """Count what is done inside by :meth:`ControlMetrics.class_assigned`."""
    try:
        yield
    except Exception as error:
        if metrics is not None:
            problem = error
            _tell(lambda: metrics.class_assigned(problem))
        raise
    if metrics is not None:
        _tell(lambda: metrics.class_assigned(None))


def csi_label(driver: str) -> str:
    """The name for metrics of the plugin that fronts a CSI driver (UTIL-14)."""
    return f"kubernetes.io/csi:{driver}"


def _tell(count: Callable[[], None]) -> None:
    try:
        count()
    except Exception:
        logger.exception("something was not counted")
