"""SupervisedDriver: keeps the process of one installed driver running while this host needs it.

One thread for each: it starts the process or adopts the one that runs, registers it, waits for its end, and starts it
again with a growing delay. Any number of hosts may do that for one driver at once.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Callable

from volumehost.errors import StorageDriverError, StorageDriverUnavailableError, VolumeHostError
from volumehost.storage_driver import DriverState
from volumehost_csi.drivers.driver_process import DriverConnection, DriverProcess, SupervisionSettings, unavailable
from volumehost_csi.drivers.installed import InstalledDriver
from volumehost_csi.drivers.keeper import rotate_log
from volumehost_csi.drivers.launch import how_it_ended, wait_for_keeper
from volumehost_csi.drivers.places import DriverPlaces
from volumehost_csi.drivers.processes import is_alive, opened
from volumehost_csi.drivers.records import ProcessRecord

logger = logging.getLogger(__name__)


class SupervisedDriver:
    """One installed driver in this host. Safe for threads.

    :param find: the driver as it is installed now, None when it is not.
    :param changed: called after each change of state; must not block.
    """

    def __init__(
        self,
        places: DriverPlaces,
        find: Callable[[], InstalledDriver | None],
        connection: DriverConnection,
        *,
        node_name: str,
        settings: SupervisionSettings,
        changed: Callable[[str], None],
    ) -> None:
        self.name = places.name
        self.places = places
        self._find = find
        self._connection = connection
        self._settings = settings
        self._changed = changed
        self._condition = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._look = threading.Event()
        self._process = DriverProcess(
            places, find, connection, node_name=node_name, settings=settings, stop=self._stop, note=self._note
        )
        self._failed_with: InstalledDriver | None = None
        self._wake = -1
        self._state = DriverState.STOPPED
        self._error: VolumeHostError | None = None
        self._waits_for = ""
        self._failures = 0
        self._delays = 0
        self._retry_at = 0.0

    # --- for everybody ----------------------------------------------------------------------------------------

    @property
    def state(self) -> DriverState:
        """As this host sees it; STOPPED when it does not need the driver."""
        return self._state

    @property
    def error(self) -> str:
        """What is or was last wrong with it, "" when nothing is."""
        return str(self._error) if self._error is not None else ""

    @property
    def retry_in(self) -> float | None:
        """Seconds until the next start, None when none is due."""
        if self._state is not DriverState.FAILED or self._retry_at == float("inf"):
            return None
        return max(0.0, self._retry_at - time.monotonic())

    @property
    def _alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def need(self, timeout: float) -> None:
        """From now on this host needs the driver; wait at most ``timeout`` seconds until it is registered.

        :raises StorageDriverUnavailableError: it is not by then, or does not start.
        """
        deadline = time.monotonic() + timeout
        with self._condition:
            if self._stop.is_set():
                raise unavailable(self.places, "the host is about to end")
            self.begin()
            if self._state is DriverState.FAILED and self._find() != self._failed_with:
                self._state = DriverState.STARTING
                self._look.set()
            failures = self._failures
            while self._state is not DriverState.READY:
                hopeless = self._state is DriverState.FAILED and self._retry_at >= deadline
                if self._error is not None and (self._failures > failures or hopeless):
                    raise self._told(self._error)
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    about = f": {self._waits_for}" if self._waits_for else ""
                    raise unavailable(
                        self.places, f"it is not ready after {timeout:g} s{about}", hint=f"see {self.places.log_file}"
                    )
                self._condition.wait(remaining)

    def begin(self) -> None:
        """From now on this host needs the driver; does not wait for it."""
        with self._condition:
            if not self._alive and not self._stop.is_set():
                self._state, self._retry_at = DriverState.STARTING, 0.0
                self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
                self._thread = threading.Thread(target=self._run, name=f"csi driver {self.name}", daemon=True)
                self._thread.start()

    def ask_to_end(self) -> None:
        """This host needs it no more. The process ends if no other host needs it, and mounts do not."""
        with self._condition:
            self._stop.set()
            self._look.set()
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)
            self._condition.notify_all()

    def wait_for_end(self) -> None:
        """After :meth:`ask_to_end`: until that is done, as long as its grace and a little more."""
        if self._thread is not None:
            seconds = self._settings.close_timeout + 10
            self._thread.join(seconds)
            if self._thread.is_alive():
                logger.warning("a CSI driver does not end: driver=%s waited=%g s", self.name, seconds)

    # --- the thread -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        wake = self._wake
        try:
            while not self._stop.is_set():
                self._turn()
        except Exception as error:
            logger.exception("the supervision of a CSI driver failed: driver=%s", self.name)
            self._fail(StorageDriverUnavailableError(str(error), driver=self.name, action=f"supervising {self.name}"))
        finally:
            try:
                self._process.let_go()
                if self._state is not DriverState.FAILED:
                    self._set(DriverState.STOPPED)
            finally:
                with self._condition:
                    self._wake = -1
                    os.close(wake)

    def _turn(self) -> None:
        """One life of the process."""
        driver = self._find()
        running = self._process.running()
        if driver is None and running is None:
            self._fail(
                unavailable(self.places, "it is not installed any more", hint="pip install it again"), for_good=True
            )
            self._pause(driver)
            return
        if driver is not None and driver.problem:
            self._fail(driver.unavailable(), driver, for_good=True)
            self._pause(driver)
            return
        self._set(DriverState.STARTING)
        try:
            record = self._process.start_or_adopt(driver)
        except (StorageDriverError, OSError) as error:
            if not self._stop.is_set():
                self._fail(self._because(error) if isinstance(error, OSError) else error, driver)
                self._pause(driver)
            return
        self._set(DriverState.READY)
        began = time.monotonic()
        why = self._watch(record)
        if why != "stopped":
            self._set(DriverState.STARTING)
        self._connection.disconnect()
        if why == "ended":
            wait_for_keeper(record)
            self._delays = 0 if time.monotonic() - began >= self._settings.steady else self._delays
            ending = unavailable(self.places, how_it_ended(record, self.places), hint=f"see {self.places.log_file}")
            self._fail(ending, driver, started=True)
            self._pause(driver)
        elif why == "outdated":
            self._process.replace(record)

    def _watch(self, record: ProcessRecord) -> str:
        """Until the process ends or has to; tells why: "ended", "outdated", "stopped"."""
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        launch = self._settings.launch
        with opened(record.process) as pidfd:
            if pidfd is None:
                return "ended"
            poller.register(pidfd, select.POLLIN)
            while not self._stop.is_set():
                if any(descriptor == pidfd for descriptor, _ in poller.poll(self._settings.tick * 1000)):
                    return "ended"
                if not is_alive(record.keeper):
                    rotate_log(self.places.log_file, launch.log_bytes, launch.log_parts)
                if self._process.to_replace(record):
                    return "outdated"
        return "stopped"

    # --- state ------------------------------------------------------------------------------------------------

    def _set(self, state: DriverState) -> None:
        with self._condition:
            self._state = state
            self._waits_for = ""
            if state is DriverState.READY:
                self._error = None
            self._condition.notify_all()
        self._changed(self.name)

    def _note(self, waits_for: str) -> None:
        self._waits_for = waits_for

    def _fail(
        self,
        error: VolumeHostError,
        driver: InstalledDriver | None = None,
        *,
        for_good: bool = False,
        started: bool = False,
    ) -> None:
        """Note a failure, with what was installed. Whoever waits learns of failed starts; after an end (``started``) it
        waits for the next.
        """
        with self._condition:
            self._failed_with = driver  # together with the state: whoever needs the driver compares it
            delay = min(self._settings.longest_delay, self._settings.first_delay * 2 ** min(self._delays, 20))
            self._delays += 1
            self._failures += not started
            self._error, self._state = error, DriverState.FAILED
            self._retry_at = time.monotonic() + (float("inf") if for_good else delay)
            self._condition.notify_all()
        logger.warning("a CSI driver failed: driver=%s retry_in=%s error=%s", self.name, self.retry_in, error)
        self._changed(self.name)

    def _pause(self, driver: InstalledDriver | None) -> None:
        """Until the next start is due, or what is installed has changed, or the host ends."""
        while not self._stop.is_set():
            remaining = self._retry_at - time.monotonic()
            if remaining <= 0:
                return
            self._look.wait(min(remaining, self._settings.tick))
            self._look.clear()
            if self._find() != driver:
                self._delays = 0
                return

    def _because(self, error: OSError) -> StorageDriverUnavailableError:
        where = f" ({os.fsdecode(error.filename)})" if error.filename else ""
        return unavailable(self.places, f"{os.strerror(error.errno) if error.errno else error}{where}")

    def _told(self, error: VolumeHostError) -> StorageDriverUnavailableError:
        """The error for one more caller, with the time of the next try."""
        retry = self.retry_in
        due = f"; it is started again in {retry:.1f} s" if retry is not None and retry >= 0.1 else ""
        return StorageDriverUnavailableError(
            f"{error.reason}{due}", driver=self.name, action=error.action, hint=error.hint
        )
