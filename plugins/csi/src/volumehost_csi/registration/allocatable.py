"""Asks drivers again, from time to time, how many volumes this node can take (CSI-UPD-01 to -06).

How often is in the CSIDriver object (``nodeAllocatableUpdatePeriodSeconds``); without that a driver is asked only when
it registers, or when :meth:`AllocatableUpdater.refresh` is called because a limit was met (CSI-PLUG-24).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.errors import ApiError, NotAvailableOnHostError, ObjectNotFoundError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.api.objects import CSIDriver
    from volumehost_csi.registration.handler import CSIRegistrationHandler
    from volumehost_csi.registration.store import DriverStore

logger = logging.getLogger(__name__)

#: Seconds between two looks at the CSIDriver objects of registered drivers: the shortest period that the API allows.
#: Reading costs microseconds; a watch of the embedded store would wake twenty times a second.
LOOK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Schedule:
    """``due`` is monotonic seconds."""

    period: int
    due: float


class AllocatableUpdater:
    """One thread for all drivers, there only while one is registered; a driver that is asked has one of its own.

    :param csi_driver: reads the CSIDriver of a name; raises ObjectNotFoundError when there is none.
    :param look_seconds: how soon a change of a CSIDriver is noticed.
    """

    def __init__(
        self,
        store: DriverStore,
        handler: CSIRegistrationHandler,
        csi_driver: Callable[[str], CSIDriver],
        *,
        clock: Callable[[], float] = time.monotonic,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._store = store
        self._handler = handler
        self._csi_driver = csi_driver
        self._clock = clock
        self._look_seconds = look_seconds
        self._condition = threading.Condition()
        self._schedules: dict[str, _Schedule] = {}
        self._changed: set[str] = set()
        self._asking: set[str] = set()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Follow the store from now on."""
        self._unsubscribe = self._store.subscribe(self.sync)
        for name in self._store.names():
            self.sync(name)

    def stop(self, timeout: float = 5.0) -> None:
        """Ask no driver any more; waits at most ``timeout`` seconds for those that are being asked."""
        deadline = time.monotonic() + timeout
        self._unsubscribe()
        with self._condition:
            self._stopping = True
            thread = self._thread
            self._condition.notify_all()
        if thread is not None:
            thread.join(timeout)
        with self._condition:
            self._condition.wait_for(lambda: not self._asking, max(0.0, deadline - time.monotonic()))

    def sync(self, driver: str) -> None:
        """The driver was registered or left, or its CSIDriver changed: look at it soon (CSI-UPD-02, -03)."""
        with self._condition:
            if self._stopping:
                return
            self._changed.add(driver)
            self._condition.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="volumehost-allocatable", daemon=True)
                self._thread.start()

    def refresh(self, driver: str) -> None:
        """Ask the driver now and publish what it says; failures are logged (CSI-UPD-04)."""
        try:
            self._handler.refresh(driver)
        except VolumeHostError as error:
            logger.warning("the limit of volumes of the CSI driver %s could not be refreshed: %s", driver, error)
        except Exception:
            logger.exception("the limit of volumes of the CSI driver %s could not be refreshed", driver)

    def period(self, driver: str) -> int:
        """Seconds between two refreshes as they are scheduled now, 0 when none are."""
        with self._condition:
            schedule = self._schedules.get(driver)
        return schedule.period if schedule is not None else 0

    # --- the thread -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        look_at = self._clock() + self._look_seconds
        while True:
            names = self._take(look_at)
            if names is None:
                return
            if self._clock() >= look_at:
                names.update(self._store.names())
                look_at = self._clock() + self._look_seconds
            for name in sorted(names):
                self._schedule(name)
            for name in self._due():
                self._begin(name)

    def _take(self, look_at: float) -> set[str] | None:
        """Names to look at, at the latest when something is due; None when the thread is to end."""
        with self._condition:
            if not self._changed and not self._stopping and self._store.names():
                moments = [look_at, *(schedule.due for schedule in self._schedules.values())]
                self._condition.wait(max(0.0, min(moments) - self._clock()))
            changed, self._changed = self._changed, set()
            if self._stopping or not (changed or self._store.names()):
                self._thread = None
                return None
            return changed

    def _schedule(self, name: str) -> None:
        """Keep the phase of a period that stays the same (CSI-UPD-06 improved)."""
        period = self._period(name)
        with self._condition:
            known = self._schedules.get(name)
            if not period:
                self._schedules.pop(name, None)
            elif known is None or known.period != period:
                self._schedules[name] = _Schedule(period, self._clock() + period)

    def _period(self, name: str) -> int:
        instance = self._store.get(name)
        if instance is None or instance.node_info is None:
            return 0
        try:
            return self._csi_driver(name).spec.node_allocatable_update_period_seconds or 0
        except (ObjectNotFoundError, NotAvailableOnHostError):
            return 0
        except ApiError as error:
            logger.warning("the CSIDriver %s cannot be read: %s", name, error)
            return 0
        except Exception:  # whatever an API client raises, the other drivers have their turn
            logger.exception("the CSIDriver %s cannot be read", name)
            return 0

    def _due(self) -> list[str]:
        """Drivers whose turn it is; the next turn is one period from now."""
        now = self._clock()
        with self._condition:
            due = [name for name, schedule in self._schedules.items() if schedule.due <= now]
            for name in due:
                self._schedules[name] = _Schedule(self._schedules[name].period, now + self._schedules[name].period)
        return due

    def _begin(self, driver: str) -> None:
        """Ask a driver, unless it has not answered the last question yet: one that hangs holds up no other."""
        with self._condition:
            if self._stopping or driver in self._asking:
                return
            self._asking.add(driver)

        def ask() -> None:
            try:
                self.refresh(driver)
            finally:
                with self._condition:
                    self._asking.discard(driver)
                    self._condition.notify_all()

        threading.Thread(target=ask, name="volumehost-refresh", daemon=True).start()
