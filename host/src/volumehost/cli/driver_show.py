"""``volumehost drivers show``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from volumehost.cli.command import Command
from volumehost.cli.complete import driver_names
from volumehost.cli.driver_report import as_data, find_status, open_drivers
from volumehost.cli.durations import DurationType, format_duration
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.tables import format_fields, printable

if TYPE_CHECKING:
    from volumehost.storage_driver import DriverStatus


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost drivers show loop.csi.volumehost"),
        ("Start it, and ask it what it can do", "volumehost drivers show loop.csi.volumehost --start"),
    ),
)
@click.argument("name", shell_complete=driver_names)
@click.option("--start", is_flag=True, help="Start the driver if it does not run, and ask it itself.")
@click.option(
    "--timeout",
    type=DurationType(),
    default="1m",
    show_default=True,
    metavar="DURATION",
    help="How long to wait for it with --start.",
)
@shared_options("root-dir", "output")
@click.pass_obj
def show(settings: Settings, name: str, start: bool, timeout: float) -> None:
    """Show everything that is known of one driver.

    What a driver told when it last ran is remembered, so that it need not be started. One that is started by --start
    ends with the command, unless something else needs it.
    """
    with open_drivers(settings) as drivers:
        find_status(drivers.statuses(), name)
        if start:
            drivers.driver(name, timeout=timeout).capabilities()
        status = find_status(drivers.statuses(), name)
    if settings.output == "table":
        click.echo(_text(status), nl=False)
    elif settings.output == "name":
        click.echo(status.name)
    else:
        from volumehost.cli.output import echo_data

        echo_data(as_data(status), settings.output)


def _text(status: DriverStatus) -> str:
    now = time.time()
    topology = ", ".join(f"{key}={value}" for key, value in sorted(status.topology.items()))
    text = format_fields(
        (
            ("Name", status.name),
            ("State", status.state),
            ("Reason", status.error or None),
            ("Next try", f"in {format_duration(status.retry_at - now)}" if status.retry_at is not None else None),
            ("Origin", status.origin),
            ("Distribution", status.distribution or None),
            ("Version", status.version or None),
            ("Endpoint", status.endpoint or None),
            ("Process", status.pid),
            ("Uptime", format_duration(now - status.started_at) if status.started_at is not None else None),
            ("Restarts", status.restarts or None),
            ("Kept alive", "its mounts need it" if status.keep_alive else None),
            ("Node ID", status.node_id or None),
            ("Volumes per node", status.max_volumes or None),
            ("Topology", topology or None),
            ("Log file", status.log_file or None),
            ("Objects", status.manifest or None),
            ("Warning", "; ".join(status.warnings) or None),
        )
    )
    if status.capabilities is None:
        return text + "Capabilities: not known yet; --start asks the driver\n"
    for title, names in (
        ("Services", status.capabilities.plugin),
        ("Controller", status.capabilities.controller),
        ("Node", status.capabilities.node),
        ("Expansion", status.capabilities.expansion),
    ):
        if names:
            text += f"{title}:\n" + "".join(f"  {printable(each)}\n" for each in sorted(names))
    return text
