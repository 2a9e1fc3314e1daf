"""``volumehost completion``: the script that a shell evaluates to complete commands, kinds, names and plugins."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from volumehost.cli import COMPLETE_VARIABLE
from volumehost.cli.command import Command
from volumehost.cli.options import shared_options

SHELLS = ("bash", "zsh", "fish")


@click.command(
    cls=Command,
    examples=(
        ("For this session", 'eval "$(volumehost completion bash)"'),
        ("For every session of fish", "volumehost completion fish > ~/.config/fish/completions/volumehost.fish"),
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@shared_options()
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    Beside commands and options it completes what is there: kinds, names of objects, namespaces and plugins.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"this version of click cannot complete for {shell}", ctx)
    root = ctx.find_root()
    # The base class's: that of bash starts a bash first, only to warn of old ones.
    click.echo(ShellComplete.source(kind(root.command, {}, root.info_name or "volumehost", COMPLETE_VARIABLE)))
