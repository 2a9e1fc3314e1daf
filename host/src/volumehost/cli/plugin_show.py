"""``volumehost plugins show``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from volumehost.cli.command import Command
from volumehost.cli.complete import plugin_names
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.plugin_report import as_data, file_of, inspect_plugins
from volumehost.cli.tables import format_fields
from volumehost.errors import PluginNotFoundError

if TYPE_CHECKING:
    from volumehost.loader.status import PluginStatus


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost plugins show kubernetes.io/empty-dir"),
        ("All plugins of a distribution", "volumehost plugins show volumehost-hostpath"),
    ),
)
@click.argument("name", shell_complete=plugin_names)
@shared_options("output")
@click.pass_obj
def show(settings: Settings, name: str) -> None:
    """Show everything that is known of one plugin.

    NAME is the plugin's, its entry point's or its distribution's.
    """
    found = select(inspect_plugins().plugins(), name)
    if settings.output == "table":
        click.echo("\n".join(_text(status) for status in found), nl=False)
    elif settings.output == "name":
        for status in found:
            click.echo(status.name)
    else:
        from volumehost.cli.output import echo_data

        data = [as_data(status) for status in found]
        echo_data(data[0] if len(data) == 1 else {"plugins": data}, settings.output)


def select(statuses: Sequence[PluginStatus], name: str) -> list[PluginStatus]:
    """Those with this name, else those of the entry point, else those of the distribution, of this name.

    :raises PluginNotFoundError: there are none.
    """
    for attribute in ("name", "entry_point", "distribution"):
        found = [status for status in statuses if getattr(status, attribute) == name]
        if found:
            return found
    known = ", ".join(status.name for status in statuses) or "none"
    raise PluginNotFoundError(
        f"no volume plugin, entry point or distribution is called {name}",
        subject=name,
        hint=f"installed plugins: {known}",
    )


def _text(status: PluginStatus) -> str:
    newer = status.installed_version
    text = format_fields(
        (
            ("Name", status.name),
            ("State", status.state),
            ("Reason", status.detail or None),
            ("To do", (status.error.hint if status.error is not None else "") or None),
            ("Distribution", status.distribution or None),
            ("Version", status.version or None),
            ("Installed version", newer or None),
            ("Entry point", f"{status.entry_point} = {status.value}" if status.entry_point else None),
            ("Location", status.location or None),
            ("File", file_of(status) or None),
            ("In use by", ", ".join(status.users) or None),
        )
    )
    for title, items in (("Interfaces", status.interfaces), ("Hooks", status.hooks), ("Notes", status.notes)):
        if items:
            text += f"{title}:\n" + "".join(f"  {item}\n" for item in items)
    return text
