"""DriverProcess: the one process of an installed driver, as the hosts of a machine share it; for SupervisedDriver.

Whoever has ``start.lock`` starts it, the others find it running; it ends with the last host that needs it
(``users.lock``).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from volumehost.errors import StorageDriverError, StorageDriverUnavailableError
from volumehost_csi.drivers.installed import InstalledDriver
from volumehost_csi.drivers.launch import (
    LaunchSettings,
    end_process,
    how_it_ended,
    quoted_log,
    start_process,
    wait_for_keeper,
)
from volumehost_csi.drivers.locks import FileLock, locked
from volumehost_csi.drivers.places import DriverPlaces
from volumehost_csi.drivers.processes import is_alive, opened
from volumehost_csi.drivers.readiness import Waiting
from volumehost_csi.drivers.records import ProcessRecord, read_process

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SupervisionSettings:
    """Times in seconds: to become ready, the first and the longest delay before a start that follows a failure, how
    long a process has to run for its end to count as the first, between two looks at a process that runs, and how long
    the end of the host waits for that of a driver.
    """

    start_timeout: float = 60.0
    first_delay: float = 0.5
    longest_delay: float = 122.0
    steady: float = 60.0
    tick: float = 2.0
    close_timeout: float = 10.0
    launch: LaunchSettings = field(default_factory=LaunchSettings)


class DriverConnection(Protocol):
    """What a supervised driver asks of whoever registers drivers; called from its own thread."""

    def connect(self, record: ProcessRecord, waiting: Waiting) -> None:
        """Wait until the process serves, and register it.

        :raises StorageDriverError: the wait has ended without that, or it is not the driver that it should be.
        """
        ...

    def disconnect(self) -> None:
        """Take it out of the register; nothing happens when it is not in it."""
        ...

    def busy(self) -> bool:
        """Whether a call to it is on its way from here."""
        ...

    def mounts_need_it(self) -> bool:
        """Whether there are mounts that may need the process alive."""
        ...


class DriverProcess:
    """The process of one installed driver. For one thread; ``stop`` ends its waits.

    :param find: the driver as it is installed now, None when it is not.
    :param note: is told what a start waits for.
    """

    def __init__(
        self,
        places: DriverPlaces,
        find: Callable[[], InstalledDriver | None],
        connection: DriverConnection,
        *,
        node_name: str,
        settings: SupervisionSettings,
        stop: threading.Event,
        note: Callable[[str], None],
    ) -> None:
        self.places = places
        self._find = find
        self._connection = connection
        self._node_name = node_name
        self._settings = settings
        self._stop = stop
        self._note = note
        self._users = FileLock(places.users_lock)
        self._seen: tuple[int, ...] = ()

    def running(self) -> ProcessRecord | None:
        """What was recorded of it, None when it does not run."""
        record = read_process(self.places)
        return record if record is not None and record.alive else None

    def start_or_adopt(self, driver: InstalledDriver | None) -> ProcessRecord:
        """It runs, serves and is registered afterwards.

        :raises StorageDriverError: it does not, by the deadline for starts or at all.
        :raises OSError: it cannot be started.
        """
        deadline = time.monotonic() + self._settings.start_timeout
        self.places.prepare()
        if not self._users.held and not self._users.lock(deadline - time.monotonic(), shared=True, stop=self._stop):
            raise unavailable(self.places, "its last process is still ending")
        with locked(self.places.start_lock, deadline - time.monotonic(), stop=self._stop) as mine:
            if not mine:
                raise unavailable(self.places, "another process has been starting it all the time")
            record = self.running()
            if record is not None and self._outdated(record, driver) and self._alone():
                end_process(record, self.places, self._settings.launch)
            record = self.running()
            adopted = record is not None
            if record is None:
                if driver is None:
                    raise unavailable(self.places, "it is not installed any more")
                record = start_process(driver, self.places, self._node_name, self._settings.launch)
            self._seen = driver.identity if driver is not None else ()
            try:
                self._connect(record, deadline)
            except Exception:
                self._connection.disconnect()
                if not (adopted and record.keep_alive):  # mounts may still be served by what does not answer us
                    end_process(record, self.places, self._settings.launch)
                raise
            return record

    def _connect(self, record: ProcessRecord, deadline: float) -> None:
        with opened(record.process) as pidfd:
            try:
                if pidfd is None:
                    raise unavailable(self.places, "it has ended")
                self._connection.connect(record, Waiting(self.places.name, deadline, pidfd, self._stop, self._note))
            except StorageDriverError as error:
                if self._stop.is_set() or is_alive(record.process):
                    if not error.call:  # it does not even answer
                        error.reason += quoted_log(self.places, record.instance)
                    error.hint = error.hint or f"see {self.places.log_file}"
                    raise
                wait_for_keeper(record)
                raise unavailable(
                    self.places, how_it_ended(record, self.places), hint=f"see {self.places.log_file}"
                ) from error

    def to_replace(self, record: ProcessRecord) -> bool:
        """Whether another version has been installed since it was started, and it is free to be replaced by that."""
        driver = self._find()
        return (
            driver is not None
            and driver.identity != self._seen
            and self._outdated(record, driver)
            and not driver.problem
            and not self._connection.busy()
        )

    def _outdated(self, record: ProcessRecord, driver: InstalledDriver | None) -> bool:
        """Whether it was started from another installation, and can be replaced without harm to any mount."""
        if driver is None or record.identity == driver.identity:
            return False
        return not (record.keep_alive and self._connection.mounts_need_it())

    def replace(self, record: ProcessRecord) -> None:
        """End the process so that the next turn starts the version that is installed now."""
        with locked(self.places.start_lock, self._settings.start_timeout, stop=self._stop) as mine:
            running = self.running()
            if mine and running is not None and running.instance == record.instance:
                logger.info("a CSI driver was installed anew and is restarted: driver=%s", self.places.name)
                end_process(record, self.places, self._settings.launch)

    def _alone(self) -> bool:
        """Whether no other host needs the driver. Hosts of different environments must not fight over its version."""
        alone = self._users.try_lock()
        return self._users.lock(self._settings.start_timeout, shared=True, stop=self._stop) and alone

    def let_go(self) -> None:
        """This host needs it no more: end it when nobody does."""
        self._connection.disconnect()
        record = self.running()
        try:
            if record is None or not self._users.held or self._stays(record):
                return
            seconds = self._settings.close_timeout
            if self._users.try_lock():  # nobody else: until it has ended nobody can begin to use it
                end_process(record, self.places, self._settings.launch, patience=seconds)
            else:
                # Another host has it, or the keeper, which looked in this very moment: then it is ending, and this
                # waits for that.
                self._users.lock(seconds, shared=True)
        finally:
            self._users.release()

    def _stays(self, record: ProcessRecord) -> bool:
        """Whether it is left to the next host, for its mounts. Uninstalled and without any it has no next one."""
        return record.keep_alive and (self._find() is not None or self._connection.mounts_need_it())


def unavailable(places: DriverPlaces, reason: str, *, hint: str = "") -> StorageDriverUnavailableError:
    """The error for a driver that cannot be had."""
    return StorageDriverUnavailableError(
        reason, driver=places.name, action=f"starting the CSI driver {places.name}", hint=hint
    )
