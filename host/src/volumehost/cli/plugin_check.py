"""``volumehost plugins check``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from volumehost.cli.command import Command
from volumehost.cli.complete import plugin_names
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.plugin_report import as_data, inspect_plugins, origin_of, state_of, tell_of_unmatched
from volumehost.cli.plugin_show import select
from volumehost.cli.streams import plugins_print_to_stderr
from volumehost.cli.tables import format_table, printable

if TYPE_CHECKING:
    from volumehost.errors import MultiplePluginsMatchedError, VolumeHostError
    from volumehost.loader.status import PluginStatus


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost plugins check"),
        ("Only what one distribution brings", "volumehost plugins check volumehost-hostpath"),
    ),
)
@click.argument("distribution", metavar="[DIST]", required=False, shell_complete=plugin_names)
@shared_options("output")
@click.pass_context
def check(ctx: click.Context, distribution: str | None) -> None:
    """Check that plugins load and behave; say what to do if not.

    Every plugin is loaded, initialised as on a node (in an empty directory), asked about every kind of volume, and
    shut down. DIST limits the check to a distribution, or to a plugin. Exits with 1 when any of them failed.
    """
    settings = ctx.ensure_object(Settings)
    statuses, conflicts = _examined(settings)
    if distribution is not None:
        statuses = select(statuses, distribution)
        names = {status.name for status in statuses}
        conflicts = [conflict for conflict in conflicts if names.intersection(conflict.names)]
    failed = [status for status in statuses if status.error is not None]
    _print(settings, statuses, [*(each.error for each in failed if each.error), *conflicts])
    if failed or conflicts:
        ctx.exit(1)


def _examined(settings: Settings) -> tuple[list[PluginStatus], list[MultiplePluginsMatchedError]]:
    from volumehost.hosts.config import HostConfig
    from volumehost.hosts.trial_host import trial_host
    from volumehost.loader.examination import examine

    with plugins_print_to_stderr(), trial_host(HostConfig.for_root_dir(settings.root), settings.node_name) as host:
        manager = inspect_plugins(host)
        try:
            conflicts = examine(manager)
            tell_of_unmatched(manager)
            return manager.plugins(), conflicts
        finally:
            manager.close()


def _advice(plugin: str) -> str:
    from volumehost.loader.trust import ENV_DISABLE

    return f"ask the author of the plugin; until it is repaired, exclude it: {ENV_DISABLE}={plugin}"


def _print(settings: Settings, statuses: list[PluginStatus], problems: list[VolumeHostError]) -> None:
    if settings.output == "table":
        rows = [
            ("ok" if each.error is None else "FAILED", each.name, origin_of(each), state_of(each)) for each in statuses
        ]
        click.echo(format_table(("result", "name", "distribution", "state"), rows), nl=False)
        for problem in problems:
            click.echo(f"\n{printable(problem.action or problem.subject)}:\n  {printable(problem.reason)}")
            click.echo(f"  to do: {printable(problem.hint or _advice(problem.subject))}")
        if not statuses:
            click.echo("No volume plugins are installed.", err=True)
    elif settings.output == "name":
        for status in statuses:
            if status.error is not None:
                click.echo(status.name)
    else:
        from volumehost.cli.output import echo_data

        shown = [{"plugin": problem.subject, "reason": problem.reason, "hint": problem.hint} for problem in problems]
        data = {"ok": not problems, "problems": shown, "plugins": [as_data(status) for status in statuses]}
        echo_data(data, settings.output)
