"""What the ``drivers`` commands share: the drivers behind the installed plugins, and their status as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from volumehost.cli.streams import plugins_print_to_stderr
from volumehost.errors import NotAvailableOnHostError, ObjectNotFoundError
from volumehost.loader.storage_drivers import INSTALL_HINT, CombinedStorageDrivers, storage_drivers_of

if TYPE_CHECKING:
    from volumehost.cli.options import Settings
    from volumehost.storage_driver import DriverStatus


@contextmanager
def open_drivers(settings: Settings) -> Iterator[CombinedStorageDrivers]:
    """The drivers of the root directory, by the plugins that are installed; ends what it started.

    The command's own output has to wait for the end of the block.

    :raises NotAvailableOnHostError: no installed plugin fronts drivers.
    :raises RootDirectoryError: this user may not read it.
    """
    from volumehost.cli.plugin_report import inspect_plugins
    from volumehost.hosts.root_dir import check_readable, resolve_root_dir
    from volumehost.hosts.standalone_host import StandaloneHost

    # Without an API: what is asked here is for people, and nobody else is to be told.
    root = resolve_root_dir(settings.root)
    check_readable(root)
    host = StandaloneHost(root, node_name=settings.node_name)
    with plugins_print_to_stderr():
        manager = inspect_plugins(host)
        host.plugin_manager = manager
        try:
            drivers = CombinedStorageDrivers(storage_drivers_of(manager.loaded_plugins()))
            if not drivers:
                raise NotAvailableOnHostError(
                    "no installed plugin fronts storage drivers", action="looking for drivers", hint=INSTALL_HINT
                )
            yield drivers
        finally:
            manager.close()


def find_status(statuses: Sequence[DriverStatus], name: str) -> DriverStatus:
    """The driver of that name.

    :raises ObjectNotFoundError: there is none.
    """
    for status in statuses:
        if status.name == name:
            return status
    known = ", ".join(status.name for status in statuses) or "none"
    raise ObjectNotFoundError(
        f"there is no storage driver {name}", subject=name, hint=f"known drivers: {known}; pip installs more"
    )


def state_of(status: DriverStatus) -> str:
    """The state with its reason, on one line."""
    return f"{status.state}: {status.error}" if status.error else str(status.state)


def as_data(status: DriverStatus) -> dict[str, Any]:
    """The status as plain data: the documented shape of a driver in JSON and YAML. Times are RFC 3339."""
    capabilities = status.capabilities
    return {
        "name": status.name,
        "origin": str(status.origin),
        "state": str(status.state),
        "error": status.error,
        "retryAt": _time(status.retry_at),
        "distribution": status.distribution,
        "version": status.version,
        "endpoint": status.endpoint,
        "pid": status.pid,
        "startedAt": _time(status.started_at),
        "restarts": status.restarts,
        "keepAlive": status.keep_alive,
        "nodeID": status.node_id,
        "maxVolumes": status.max_volumes,
        "topology": dict(status.topology),
        "capabilities": None
        if capabilities is None
        else {
            "plugin": sorted(capabilities.plugin),
            "expansion": sorted(capabilities.expansion),
            "controller": sorted(capabilities.controller),
            "node": sorted(capabilities.node),
        },
        "logFile": status.log_file,
        "manifest": status.manifest,
        "warnings": list(status.warnings),
    }


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
