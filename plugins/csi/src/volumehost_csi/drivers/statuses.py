"""What is known of a driver without starting it: from what runs here, from its records, from what is installed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.storage_driver import DriverOrigin, DriverState, DriverStatus
from volumehost_csi.drivers.readiness import connect_problem
from volumehost_csi.drivers.records import read_facts, read_process

if TYPE_CHECKING:
    from volumehost.storage_driver import DriverCapabilities
    from volumehost_csi.drivers.installed import InstalledDriver
    from volumehost_csi.drivers.places import DriverPlaces
    from volumehost_csi.drivers.records import DriverFacts, ProcessRecord
    from volumehost_csi.drivers.supervised import SupervisedDriver
    from volumehost_csi.registration.attempts import SocketStatus
    from volumehost_csi.registration.store import DriverInstance


@dataclass(frozen=True, slots=True)
class Known:
    """What this host holds of one driver; everything may be absent but its places.

    ``health`` is that of the registration, ``socket`` the status of a registration socket that gave this name.
    """

    places: DriverPlaces
    installed: InstalledDriver | None = None
    supervised: SupervisedDriver | None = None
    instance: DriverInstance | None = None
    capabilities: DriverCapabilities | None = None
    vendor_version: str = ""
    health: tuple[DriverState, str] = (DriverState.READY, "")
    endpoint: str = ""
    socket: SocketStatus | None = None
    stale_labels: tuple[str, ...] = ()


def _last_failure(known: Known, last: ProcessRecord | None) -> str:
    if last is None:
        return ""
    from volumehost_csi.drivers.launch import how_it_failed

    return how_it_failed(last, known.places)


def status_of(known: Known) -> DriverStatus:
    """The status of one driver."""
    facts = read_facts(known.places)
    last = read_process(known.places)
    record = last if last is not None and last.alive else None
    if known.instance is not None:
        origin = known.instance.origin
    elif known.installed is not None or record is not None:
        origin = DriverOrigin.INSTALLED
    else:
        origin = DriverOrigin.COMMAND if known.endpoint else DriverOrigin.SOCKET
    last_failure = _last_failure(known, last) if origin is DriverOrigin.INSTALLED and record is None else ""
    state, error, retry_at = _state(known, record, facts, last_failure)
    info = known.instance.node_info if known.instance is not None else None
    installed = known.installed if origin is DriverOrigin.INSTALLED else None
    return DriverStatus(
        name=known.places.name,
        origin=origin,
        state=state,
        endpoint=_endpoint(known, record),
        version=_version(record, installed, known.vendor_version or facts.version),
        distribution=record.distribution if record else installed.distribution if installed else "",
        pid=record.process.pid if record else None,
        started_at=record.started_at if record else None,
        restarts=record.restarts if record else 0,
        node_id=info.node_id if info is not None else facts.node_id,
        max_volumes=info.max_volumes if info is not None else facts.max_volumes,
        topology=info.topology if info is not None else facts.topology,
        capabilities=known.capabilities or facts.capabilities,
        error=error,
        retry_at=retry_at,
        keep_alive=record.keep_alive if record else installed.keep_alive if installed else False,
        log_file=known.places.log_file if origin is DriverOrigin.INSTALLED else "",
        manifest=installed.manifest() if installed else "",
        warnings=_warnings(known),
    )


def _warnings(known: Known) -> tuple[str, ...]:
    found = []
    if known.stale_labels:
        labels = ", ".join(known.stale_labels)
        found.append(f"its topology has changed and left labels on the node: {labels}; remove what nothing needs")
    if known.socket is not None and known.socket.notification:
        found.append(f"its registrar could not be told: {known.socket.notification}")  # CSI-RAPI-13, improved
    return tuple(found)


def status_of_misnamed(name: str, installed: InstalledDriver | None, socket: SocketStatus | None) -> DriverStatus:
    """The status of something with a name that no driver can have: it has no record, and gets no path of its own."""
    if installed is not None:
        return DriverStatus(
            name,
            DriverOrigin.INSTALLED,
            DriverState.FAILED,
            version=installed.version,
            distribution=installed.distribution,
            error=str(installed.unavailable()),
        )
    error = socket.error if socket is not None else ""
    return DriverStatus(
        name, DriverOrigin.SOCKET, DriverState.FAILED, error=error, retry_at=socket.retry_at if socket else None
    )


def _state(
    known: Known, record: ProcessRecord | None, facts: DriverFacts, last_failure: str
) -> tuple[DriverState, str, float | None]:
    """State, what is wrong, and when it is tried again."""
    if known.instance is not None:
        return *known.health, None
    supervised = known.supervised
    if supervised is not None and supervised.state in {DriverState.STARTING, DriverState.FAILED}:
        retry = supervised.retry_in
        retry_at = time.time() + retry if retry is not None else None
        return supervised.state, supervised.error, retry_at
    if known.socket is not None and known.socket.error:
        return DriverState.FAILED, known.socket.error, known.socket.retry_at
    if known.installed is not None and known.installed.problem:
        return DriverState.FAILED, str(known.installed.unavailable()), None
    if record is not None:  # of another host
        ready = facts.asked_at >= record.started_at
        return (DriverState.READY if ready else DriverState.STARTING), facts.error, None
    if known.socket is not None:
        return DriverState.STARTING, "", None
    if known.endpoint and known.installed is None:  # of somebody who told this command where it serves
        problem = connect_problem(known.endpoint)
        reason = f"nothing answers at {known.endpoint}: {problem}" if problem else facts.error
        return (DriverState.FAILED if reason else DriverState.READY), reason, None
    error = last_failure or facts.error
    return (DriverState.FAILED if error else DriverState.STOPPED), error, None


def _endpoint(known: Known, record: ProcessRecord | None) -> str:
    if known.instance is not None:
        return known.instance.endpoint
    if record is not None:
        return record.endpoint
    return known.endpoint or (known.socket.endpoint if known.socket is not None else "")


def _version(record: ProcessRecord | None, installed: InstalledDriver | None, told: str) -> str:
    """The distribution's version where there is one: that of what runs, else of what would."""
    if record is not None:
        newer = installed.version if installed is not None and installed.identity != record.identity else ""
        return f"{record.version} (newer installed: {newer})" if newer and newer != record.version else record.version
    return installed.version if installed is not None else told
