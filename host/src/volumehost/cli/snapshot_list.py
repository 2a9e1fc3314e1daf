"""``volumehost snapshot list``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from volumehost.cli.api_choice import open_for_reading
from volumehost.cli.columns import since
from volumehost.cli.command import Command
from volumehost.cli.complete import driver_names
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.snapshot_report import snapshot_data, state_of
from volumehost.cli.tables import format_table
from volumehost.errors import SpecError

if TYPE_CHECKING:
    from volumehost.api.objects import VolumeSnapshot
    from volumehost.storage_driver import DriverSnapshot

#: How long a driver may take to start and to answer, in seconds.
_PATIENCE = 30.0


@click.command(
    "list",
    cls=Command,
    examples=(
        ("", "volumehost snapshot list"),
        ("What a driver has, whoever took it", "volumehost snapshot list --driver csi.example.com"),
    ),
)
@click.option("-A", "--all-namespaces", is_flag=True, help="Snapshots of every namespace.")
@click.option("--driver", metavar="DRIVER", shell_complete=driver_names, help="Ask this driver what snapshots it has.")
@shared_options("root-dir", "cluster", "node-name", "output", "namespace")
@click.pass_obj
def list_snapshots(settings: Settings, driver: str | None, *, all_namespaces: bool) -> None:
    """List snapshots, or what a storage driver has.

    With --driver the driver is asked, and started for that if need be: it lists every snapshot that it has, with the
    object that stands for it here, if there is one.
    """
    if driver is not None:
        _list_of_driver(settings, driver)
        return
    from volumehost.api.objects import VolumeSnapshot

    with open_for_reading(settings) as store:
        snapshots = store.list(VolumeSnapshot, None if all_namespaces else settings.namespace).items
    if settings.output == "table":
        if not snapshots:
            where = "" if all_namespaces else f" in the namespace {settings.namespace}"
            click.echo(f"No snapshots found{where}.", err=True)
            return
        click.echo(_table(snapshots, with_namespace=all_namespaces), nl=False)
    elif settings.output == "name":
        for each in snapshots:
            click.echo(f"volumesnapshot/{each.metadata.name}")
    else:
        from volumehost.cli.output import echo_data

        echo_data({"snapshots": [snapshot_data(each) for each in snapshots]}, settings.output)


def _table(snapshots: Sequence[VolumeSnapshot], *, with_namespace: bool) -> str:
    headers = ("namespace", "name", "claim", "size", "class", "age", "state")
    first = 0 if with_namespace else 1
    return format_table(headers[first:], [_row(each)[first:] for each in snapshots])


def _row(snapshot: VolumeSnapshot) -> tuple[object, ...]:
    return (
        snapshot.metadata.namespace,
        snapshot.metadata.name,
        snapshot.spec.source.persistent_volume_claim_name,
        snapshot.status.restore_size,
        snapshot.spec.volume_snapshot_class_name,
        since(snapshot.status.creation_time),
        state_of(snapshot),
    )


def _list_of_driver(settings: Settings, name: str) -> None:
    from volumehost.cli.driver_report import find_status, open_drivers

    known, secrets = _known_here(settings, name)
    with open_drivers(settings) as drivers:
        find_status(drivers.statuses(), name)
        driver = drivers.driver(name, timeout=_PATIENCE)
        found = list(driver.list_snapshots(secrets, timeout=_PATIENCE))
    data = [_driver_data(each, known.get(each.handle, "")) for each in found]
    if settings.output == "table":
        if not data:
            click.echo(f"Driver {name} has no snapshots.", err=True)
            return
        rows = [
            (each["handle"], each["volume"], each["size"], since(each["createdAt"]), _word(each), each["snapshot"])
            for each in data
        ]
        click.echo(format_table(("handle", "volume", "size", "age", "state", "snapshot"), rows), nl=False)
    elif settings.output == "name":
        for each in data:
            click.echo(each["handle"])
    else:
        from volumehost.cli.output import echo_data

        echo_data({"driver": name, "snapshots": data}, settings.output)


def _word(data: dict[str, Any]) -> str:
    return "ready" if data["ready"] else "not ready"


def _known_here(settings: Settings, driver: str) -> tuple[dict[str, str], dict[str, str]]:
    """For each handle of the driver the snapshot that stands for it, and the secrets for asking the driver."""
    from volumehost.api.objects import VolumeSnapshotClass, VolumeSnapshotContent
    from volumehost.control.secrets import read_secret
    from volumehost.control.snapshots.snapshot_class import list_secret

    known: dict[str, str] = {}
    with open_for_reading(settings) as store:
        for content in store.list(VolumeSnapshotContent).items:
            reference, handle = content.spec.volume_snapshot_ref, content.status.snapshot_handle
            if content.spec.driver == driver and handle:
                known[handle] = f"{reference.namespace}/{reference.name}"
        for each in store.list(VolumeSnapshotClass).items:
            secret = None
            with suppress(SpecError):  # one that depends on the snapshot says nothing here
                secret = list_secret(each, "") if each.driver == driver else None
            if secret is not None:
                return known, read_secret(store, secret)
    return known, {}


def _driver_data(snapshot: DriverSnapshot, here: str) -> dict[str, Any]:
    from volumehost.sdk.quantity import Quantity

    created = datetime.fromtimestamp(snapshot.creation_time, UTC).isoformat() if snapshot.creation_time else ""
    return {
        "handle": snapshot.handle,
        "volume": snapshot.source_volume,
        "size": str(Quantity.of(snapshot.size_bytes)) if snapshot.size_bytes else "",
        "createdAt": created,
        "ready": snapshot.ready_to_use,
        "snapshot": here,
    }
