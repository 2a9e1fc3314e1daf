"""``volumehost drivers list``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from volumehost.cli.command import Command
from volumehost.cli.driver_report import as_data, open_drivers, state_of
from volumehost.cli.durations import format_duration
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.tables import format_table, printable

if TYPE_CHECKING:
    from volumehost.storage_driver import DriverStatus


@click.command(
    "list",
    cls=Command,
    examples=(("", "volumehost drivers list"), ("Names alone, for a script", "volumehost drivers list -o name")),
)
@shared_options("root-dir", "output")
@click.pass_obj
def list_drivers(settings: Settings) -> None:
    """List the storage drivers and how they are.

    Drivers are installed by pip, registered by command, or have put a socket into the registration directory. None is
    started: a stopped driver starts when a volume needs it.
    """
    with open_drivers(settings) as drivers:
        statuses, problems = drivers.statuses(), drivers.problems()
    if settings.output in {"table", "name"}:
        for problem in problems:
            click.echo(f"warning: {printable(problem)}", err=True)
    if settings.output == "table":
        if not statuses:
            click.echo("There are no storage drivers.", err=True)
            return
        click.echo(
            format_table(("name", "origin", "version", "uptime", "restarts", "state"), map(_row, statuses)), nl=False
        )
    elif settings.output == "name":
        for status in statuses:
            click.echo(status.name)
    else:
        from volumehost.cli.output import echo_data

        echo_data({"drivers": [as_data(status) for status in statuses], "problems": problems}, settings.output)


def _row(status: DriverStatus) -> tuple[object, ...]:
    uptime = format_duration(time.time() - status.started_at) if status.started_at is not None else ""
    return status.name, status.origin, status.version, uptime, status.restarts, state_of(status)
