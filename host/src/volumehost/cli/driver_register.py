"""``volumehost drivers register`` and ``unregister``."""

from __future__ import annotations

import os

import click

from volumehost.cli.command import Command
from volumehost.cli.complete import driver_names
from volumehost.cli.driver_report import as_data, find_status, open_drivers
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.tables import printable


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost drivers register csi.example.com /run/acme/csi.sock"),
        ("As the driver itself was told", "volumehost drivers register csi.example.com unix:///run/acme/csi.sock"),
    ),
)
@click.argument("name")
@click.argument("endpoint", type=click.Path())
@shared_options("root-dir", "output")
@click.pass_obj
def register(settings: Settings, name: str, endpoint: str) -> None:
    """Register a driver that serves at an endpoint.

    NAME is the driver's own name. ENDPOINT is the path of its unix socket. The driver must answer now; it is remembered
    until 'unregister'.
    """
    where = endpoint if ":" in endpoint else os.path.abspath(endpoint)
    with open_drivers(settings) as drivers:
        status = drivers.register(name, where)
    if settings.output == "table":
        click.echo(f"driver {printable(status.name)} registered at {printable(status.endpoint)}")
    elif settings.output == "name":
        click.echo(status.name)
    else:
        from volumehost.cli.output import echo_data

        echo_data(as_data(status), settings.output)


@click.command(cls=Command, examples=(("", "volumehost drivers unregister csi.example.com"),))
@click.argument("name", shell_complete=driver_names)
@shared_options("root-dir")
@click.pass_obj
def unregister(settings: Settings, name: str) -> None:
    """Forget a driver that was registered by command.

    Its mounts stay. To take them away the driver has to be registered again.
    """
    with open_drivers(settings) as drivers:
        find_status(drivers.statuses(), name)
        drivers.unregister(name)
    click.echo(f"driver {printable(name)} unregistered")
