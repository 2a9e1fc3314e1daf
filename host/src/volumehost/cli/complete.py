"""What the shell is offered beside commands and options: kinds, names, namespaces, plugins.

A completion must never disturb the command line that is being typed: it writes nothing, changes nothing, and on any
error offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps

import click
from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completer(offers: Callable[[click.Context], Iterable[tuple[str, str]]]) -> Completer:
    """A click completion from a function that yields (value, help); errors offer nothing."""

    @wraps(offers)
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 - click's signature
        try:
            return [CompletionItem(value, help=words) for value, words in offers(ctx) if value.startswith(incomplete)]
        except Exception:  # noqa: BLE001 - nobody wants a traceback in the middle of a command line
            return []

    return complete


@completer
def plugin_names(ctx: click.Context) -> Iterable[tuple[str, str]]:  # noqa: ARG001 - a completer's signature
    """Names of plugins, with their distributions."""
    from volumehost.cli.plugin_report import inspect_plugins, origin_of

    return [(status.name, origin_of(status)) for status in inspect_plugins().plugins()]
