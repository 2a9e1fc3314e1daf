"""``volumehost plugins list``."""

from __future__ import annotations

import click

from volumehost.cli.command import Command
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.plugin_report import as_data, inspect_plugins, state_of, tell_of_unmatched
from volumehost.cli.tables import format_table


@click.command(
    "list",
    cls=Command,
    examples=(
        ("", "volumehost plugins list"),
        ("Names alone, for a script", "volumehost plugins list -o name"),
        ("Without one that makes trouble", "VOLUMEHOST_PLUGINS_DISABLE=acme-volumes volumehost plugins list"),
    ),
)
@shared_options("output")
@click.pass_obj
def list_plugins(settings: Settings) -> None:
    """List the installed volume plugins and how they are.

    A plugin is active, denied by the trust policy or an environment switch, failed with its cause, in conflict with
    another of its name, or set aside because it misbehaved. Denied plugins are not imported.
    """
    manager = inspect_plugins()
    tell_of_unmatched(manager)
    statuses = manager.plugins()
    if settings.output == "table":
        rows = [
            (status.name, status.distribution, status.version, _short(status.interfaces), state_of(status))
            for status in statuses
        ]
        if not rows:
            click.echo("No volume plugins are installed.", err=True)
            return
        click.echo(format_table(("name", "distribution", "version", "interfaces", "state"), rows), nl=False)
    elif settings.output == "name":
        for status in statuses:
            click.echo(status.name)
    else:
        from volumehost.cli.output import echo_data

        echo_data({"plugins": [as_data(status) for status in statuses]}, settings.output)


def _short(interfaces: tuple[str, ...]) -> str:
    """Interfaces without the words that all share; the base, which all have, is left out."""
    return ",".join(name.removesuffix("VolumePlugin") for name in interfaces if name != "VolumePlugin")
