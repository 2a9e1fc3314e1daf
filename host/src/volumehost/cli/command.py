"""The click classes of the program: a command that shows examples, and a group that loads its commands when they run.

Used by every module of the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: Examples of a command: (what it does, the command line); no words go with the line above them.
Examples = Sequence[tuple[str, str]]


def write_examples(examples: Examples, formatter: click.HelpFormatter) -> None:
    """Write the section ``Examples`` of a help page; command lines are never wrapped."""
    if not examples:
        return
    with formatter.section("Examples"):
        for number, (words, line) in enumerate(examples):
            if words:
                if number:
                    formatter.write("\n")
                formatter.write_text(f"{words}:")
            formatter.write(f"{'':{formatter.current_indent + 2}}$ {line}\n")


class Command(click.Command):
    """A command whose help ends with examples."""

    def __init__(self, *args: Any, examples: Examples = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, with the logging that its options ask for until it has ended."""
        from volumehost.cli.logs import logging_for
        from volumehost.cli.options import Settings

        with logging_for(ctx.ensure_object(Settings).verbosity):
            return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the examples."""
        write_examples(self.examples, formatter)


class LazyGroup(click.Group):
    """A group with a static table of its commands, each loaded only when it is run or asked for its own help.

    :param table: command name to (``module:attribute``, short help), in the order of the help page.
    """

    def __init__(
        self, *args: Any, table: Mapping[str, tuple[str, str]], examples: Examples = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.table = dict(table)
        self.examples = tuple(examples)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names, in the table's order."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Load the command; None when there is none of that name."""
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry[0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown name is answered with the nearest ones."""
        name = args[0]
        if name not in self.table and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"no such command {name!r}{did_you_mean(name, self.table)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the section ``Commands`` from the table: nothing is loaded."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in self.table.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the examples."""
        write_examples(self.examples, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Command names from the table, then the group's options."""
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=words) for name, (_, words) in self.table.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [item for item in names if item.value.startswith(incomplete)] + options


def did_you_mean(name: str, known: Sequence[str] | Mapping[str, object]) -> str:
    """``; did you mean ...?`` when a known name is near, else nothing."""
    from difflib import get_close_matches

    near = get_close_matches(name.casefold(), list(known), n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""
