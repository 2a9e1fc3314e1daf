"""Shows something again whenever it changes: in place on a terminal, one block after the other anywhere else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

import click

T = TypeVar("T")

#: How often it is looked, in seconds: what changes is written by other processes, which tell nobody.
LOOK_SECONDS = 0.5


def watch(
    read: Callable[[], T],
    text: Callable[[T], str],
    identity: Callable[[T], object],
    rows: Callable[[T], str] = lambda _found: "",
    gap: str = "\n",
) -> None:
    """Show ``text(read())`` until the user interrupts, which is the ordinary end.

    :param identity: what has to change for a new block where that cannot be drawn in place; ages change all the time.
    :param rows: of the lines those that are cut where a terminal is too narrow; the others go on in the next line.
    :param gap: between two blocks.
    """
    try:
        if sys.stdout.isatty():
            _in_place(read, text, rows)
        else:
            _block_by_block(read, text, identity, gap)
    except KeyboardInterrupt:
        return


def _in_place(read: Callable[[], T], text: Callable[[T], str], rows: Callable[[T], str]) -> None:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    pause = threading.Event()
    with Live(auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        while True:
            found = read()
            cut = frozenset(rows(found).splitlines())
            lines = (
                Text(line, no_wrap=line in cut, overflow="ellipsis" if line in cut else "fold")
                for line in text(found).splitlines()
            )
            live.update(Group(*lines), refresh=True)
            pause.wait(LOOK_SECONDS)


def _block_by_block(read: Callable[[], T], text: Callable[[T], str], identity: Callable[[T], object], gap: str) -> None:
    pause = threading.Event()
    last: object = None
    first = True
    while True:
        found = read()
        now = identity(found)
        if first or now != last:
            click.echo(text(found) if first else gap + text(found), nl=False)
            sys.stdout.flush()
        first, last = False, now
        pause.wait(LOOK_SECONDS)
