"""``volumehost version``."""

from __future__ import annotations

import platform

import click

from volumehost._version import __version__
from volumehost.cli.command import Command
from volumehost.cli.options import Settings, shared_options


@click.command(
    cls=Command,
    examples=(("", "volumehost version"), ("For a program", "volumehost version -o json")),
)
@shared_options("output")
@click.pass_obj
def version(settings: Settings) -> None:
    """Print the version."""
    if settings.output in {"table", "name"}:
        click.echo(f"volumehost {__version__}" if settings.output == "table" else __version__)
        return
    from volumehost.cli.output import echo_data

    echo_data({"version": __version__, "python": platform.python_version()}, settings.output)
