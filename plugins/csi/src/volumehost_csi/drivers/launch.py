"""Starts the process of an installed driver through its keeper, finds one that runs, and ends it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from volumehost.errors import StorageDriverUnavailableError
from volumehost_csi.drivers import keeper
from volumehost_csi.drivers.installed import InstalledDriver
from volumehost_csi.drivers.logs import log_tail
from volumehost_csi.drivers.places import DriverPlaces
from volumehost_csi.drivers.processes import boot_id, group_members, identify, send_signal, wait_for_end
from volumehost_csi.drivers.records import ProcessRecord, read_ending, read_process
from volumehost_csi.failures import without_secrets

logger = logging.getLogger(__name__)

#: In the environment of a driver and of all that it starts: names the one process of it.
INSTANCE_VARIABLE = "VOLUMEHOST_DRIVER_INSTANCE"

#: Seconds that a keeper has to get going: it is a Python without site, which starts in some hundredths.
_KEEPER_SECONDS = 30.0

#: Keepers that this process started and has not waited for: until then nobody else gets their numbers.
_keepers: set[int] = set()

#: The program of a driver's process. The directories come after its own path: only what it lacks is looked for there.
_PROGRAM = """\
import sys
from importlib import import_module
name, module, function, *path = sys.argv[1:]
sys.argv[:] = [name]
sys.path.extend(entry for entry in path if entry not in sys.path)
target = import_module(module)
for part in function.split("."):
    target = getattr(target, part)
sys.exit(target())
"""


@dataclass(frozen=True, slots=True)
class LaunchSettings:
    """Times in seconds, sizes in bytes: from SIGTERM to SIGKILL, one part of the log, and how many old parts."""

    grace: float = 30.0
    log_bytes: int = 4 << 20
    log_parts: int = 3


def start_process(
    driver: InstalledDriver, places: DriverPlaces, node_name: str, settings: LaunchSettings
) -> ProcessRecord:
    """Start the driver's process; returns once it is written down, not when it serves. ``start.lock`` is held.

    :raises StorageDriverUnavailableError: it cannot be started.
    """
    action = f"starting the CSI driver {driver.name}"
    try:
        start = _Start(driver, places, places.socket(), node_name, _end_last(places), settings)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(start.endpoint)
        code = _spawn_keeper(start)
    except OSError as error:
        where = f" ({os.fsdecode(error.filename)})" if error.filename else ""
        raise StorageDriverUnavailableError(
            f"{os.strerror(error.errno) if error.errno else error}{where}", driver=driver.name, action=action
        ) from error
    record = read_process(places)
    if code is not None or record is None or record.instance != start.instance:
        raise StorageDriverUnavailableError(
            f"its keeper ended with {describe_status(code or 0)}{quoted_log(places, start.instance)}",
            driver=driver.name,
            action=action,
            hint=f"see {places.log_file}",
        )
    logger.info(
        "started a CSI driver: driver=%s distribution=%s pid=%d", driver.name, driver.origin, record.process.pid
    )
    return record


def end_process(
    record: ProcessRecord, places: DriverPlaces, settings: LaunchSettings, *, patience: float | None = None
) -> None:
    """End the driver with its whole group: SIGTERM, and SIGKILL when the grace is over. Waits for the end.

    :param patience: wait no longer than so many seconds: the keeper sees to the rest without this host.
    """
    if send_signal(record.keeper, signal.SIGTERM):
        if patience is not None and not wait_for_end(record.keeper, patience):
            logger.warning("a CSI driver takes its time to end: driver=%s pid=%d", places.name, record.process.pid)
            return
        if not wait_for_end(record.keeper, settings.grace + 2 * keeper.TICK + 2):
            send_signal(record.keeper, signal.SIGKILL)
            wait_for_end(record.keeper, 2)
        _reap(record.keeper.pid)
    if send_signal(record.process, signal.SIGTERM) and not wait_for_end(record.process, settings.grace):
        send_signal(record.process, signal.SIGKILL)
        wait_for_end(record.process, 2)
    _end_group(record)
    logger.info("ended a CSI driver: driver=%s pid=%d", places.name, record.process.pid)


def wait_for_keeper(record: ProcessRecord) -> None:
    """After the driver's end: until its keeper has told how, which takes no time."""
    wait_for_end(record.keeper, 2)
    _reap(record.keeper.pid)


def how_it_ended(record: ProcessRecord, places: DriverPlaces) -> str:
    """``it ended with exit status 3``, with the last lines of its log."""
    ending = read_ending(places, record.instance)
    words = describe_status(ending.status) if ending is not None else "an unknown status (its keeper was killed)"
    return f"it ended with {words}{quoted_log(places, record.instance)}"


def how_it_failed(record: ProcessRecord | None, places: DriverPlaces) -> str:
    """What was wrong with a process that has ended by itself, "" when it was ended, or is not known to have failed."""
    ending = read_ending(places, record.instance) if record is not None else None
    if record is None or ending is None or ending.ended_by or not ending.status:
        return ""
    return f"its last process failed: {how_it_ended(record, places)}"


def describe_status(status: int) -> str:
    """``exit status 3`` or ``signal SIGKILL``."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def quoted_log(places: DriverPlaces, instance: str, lines: int = 5) -> str:
    """The last lines that this process printed, for an error's text, without what looks secret (BR-74); "" for none."""
    tail = log_tail(places.log_file, lines, instance=instance)
    return without_secrets("; it printed last: " + " | ".join(tail), ()) if tail else ""


@dataclass(frozen=True, slots=True)
class _Start:
    """One start of a driver."""

    driver: InstalledDriver
    places: DriverPlaces
    endpoint: str
    node_name: str
    restarts: int
    settings: LaunchSettings
    instance: str = field(default_factory=lambda: os.urandom(16).hex())

    def job(self) -> Mapping[str, object]:
        """What the keeper is to do."""
        driver, places = self.driver, self.places
        arguments = (driver.name, driver.module, driver.function, *_path(driver))
        return {
            "instance": self.instance,
            "program": [sys.executable, "-P", "-c", _PROGRAM, *arguments],
            "directory": places.data_directory,
            "keep_alive": driver.keep_alive,
            "grace": self.settings.grace,
            "log": places.log_file,
            "log_bytes": self.settings.log_bytes,
            "log_parts": self.settings.log_parts,
            "users_lock": places.users_lock,
            "process_file": places.process_file,
            "exit_file": places.exit_file,
            "record": {
                "endpoint": self.endpoint,
                "distribution": driver.distribution,
                "version": driver.version,
                "identity": list(driver.identity),
                "keep_alive": driver.keep_alive,
                "host_pid": os.getpid(),
                "restarts": self.restarts,
            },
        }

    def environment(self) -> Mapping[str, str]:
        """That of the driver: this process's own, and what it is promised."""
        return {
            **os.environ,
            "CSI_ENDPOINT": f"unix://{self.endpoint}",
            "KUBE_NODE_NAME": self.node_name,
            "VOLUMEHOST_DRIVER_NAME": self.driver.name,
            "VOLUMEHOST_DRIVER_DATA_DIR": self.places.data_directory,
            "PYTHONUNBUFFERED": "1",
            INSTANCE_VARIABLE: self.instance,
        }


def _spawn_keeper(start: _Start) -> int | None:
    """Start the keeper and wait until it has written down the driver; its exit status when it ended instead."""
    read_end, write_end = os.pipe()
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        try:
            pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", keeper.__file__, json.dumps(start.job())],
                start.environment(),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, write_end, 0),
                    (os.POSIX_SPAWN_OPEN, 1, start.places.log_file, flags, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
            )
        finally:
            os.close(write_end)
        _keepers.add(pid)
        poller = select.poll()
        poller.register(read_end, select.POLLIN)
        if poller.poll(_KEEPER_SECONDS * 1000) and os.read(read_end, 1) == b"g":
            return None
    finally:
        os.close(read_end)
    _keepers.discard(pid)
    started = identify(pid)
    if started is not None and not wait_for_end(started, 1):
        send_signal(started, signal.SIGKILL)
        wait_for_end(started, 2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _path(driver: InstalledDriver) -> list[str]:
    """Where this host finds modules: the driver may have been found in a directory that only this process knows."""
    return [entry for entry in dict.fromkeys((driver.location, *sys.path)) if os.path.isabs(entry)]


def _end_last(places: DriverPlaces) -> int:
    """End what is left of the last process's group: its leader may have been killed together with its keeper.

    Returns how often in a row the driver has ended by itself, up to now.
    """
    last = read_process(places)
    if last is None:
        return 0
    _end_group(last)
    ending = read_ending(places, last.instance)
    by_itself = ending is None or not ending.ended_by
    return last.restarts + 1 if by_itself and last.process.boot_id == boot_id() else 0


def _end_group(record: ProcessRecord) -> None:
    mark = f"{INSTANCE_VARIABLE}={record.instance}".encode()
    deadline = time.monotonic() + 5
    while members := group_members(record.process.pid, mark):
        for member in members:
            send_signal(member, signal.SIGKILL)
            wait_for_end(member, 1)
        if time.monotonic() > deadline:
            logger.warning("processes of a CSI driver do not end: pids=%s", [member.pid for member in members])
            return


def _reap(pid: int) -> None:
    """Take the exit status of a keeper that this process started. The number of any other may be another child's."""
    if pid in _keepers:
        _keepers.discard(pid)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
