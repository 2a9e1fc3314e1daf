"""How the demo tells what it does, checks its promises, and uses files as a program in a container would."""

from __future__ import annotations

from collections.abc import Callable

import click

from volumehost.errors import VolumeHostError


class BrokenPromiseError(VolumeHostError):
    """Something in the demo is not as it must be."""


class Telling:
    """Prints the steps of the demo."""

    def step(self, title: str) -> None:
        """A new step begins."""
        self.say(f"\n{title}\n")

    def ok(self, text: str) -> None:
        """A promise that was kept."""
        self.say(f"  ok  {text}")

    def text(self, text: str) -> None:
        """Something to read, indented."""
        self.say("\n".join(f"  {line}" if line else "" for line in text.rstrip("\n").split("\n")))

    def say(self, text: str) -> None:
        """A line."""
        click.echo(text)

    def check(self, holds: bool, otherwise: str) -> None:
        """See that a promise is kept.

        :raises BrokenPromiseError: it is not.
        """
        if not holds:
            raise BrokenPromiseError(
                otherwise,
                action="running the demo",
                subject="demo",
                hint="this is a defect, or something else works in the demo's directory",
            )


def write_file(path: str, content: bytes) -> None:
    """Write all of it, or raise what the kernel says."""
    with open(path, "wb", buffering=0) as file:
        view = memoryview(content)
        while view:
            view = view[file.write(view) :]


def read_file(path: str) -> bytes:
    """What is in the file."""
    with open(path, "rb") as file:
        return file.read()


def errno_of(action: Callable[[], None]) -> int:
    """The errno with which the action failed, 0 when it did not."""
    try:
        action()
    except OSError as error:
        return error.errno or 0
    return 0
