"""``volumehost drivers logs``."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator

import click

from volumehost.cli.command import Command
from volumehost.cli.complete import driver_names
from volumehost.cli.driver_report import find_status, open_drivers
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.tables import printable
from volumehost.errors import NotAvailableOnHostError

#: Seconds between two looks at a log that is followed.
_PAUSE = 0.2
#: A line that is longer is shown in parts, in bytes.
_LONGEST_LINE = 1 << 16


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost drivers logs csi.example.com -n 50"),
        ("And what comes from now on", "volumehost drivers logs csi.example.com -f"),
    ),
)
@click.argument("name", shell_complete=driver_names)
@click.option("-f", "--follow", is_flag=True, help="Go on printing what is added, until interrupted.")
@click.option("-n", "--lines", type=click.IntRange(min=0), metavar="NUMBER", help="Only so many last lines.")
@shared_options("root-dir")
@click.pass_obj
def logs(settings: Settings, name: str, follow: bool, lines: int | None) -> None:
    """Print what an installed driver has logged.

    Everything that its process printed, oldest first, as far as it is kept.
    """
    with open_drivers(settings) as drivers:
        status = find_status(drivers.statuses(), name)
    if not status.log_file:
        raise NotAvailableOnHostError(
            "it is not started by this host",
            action=f"reading the log of the driver {name}",
            subject=name,
            hint="whoever starts it keeps its log",
        )
    end = 0
    found: deque[str] = deque(maxlen=lines)
    for path in _parts(status.log_file):
        end = 0
        for line in _lines(path):
            found.append(line.decode("utf-8", "replace"))
            end += len(line)
    for text in found:
        click.echo(printable(text.removesuffix("\n")))
    if follow:
        _follow(status.log_file, end)


def _parts(path: str) -> list[str]:
    """The files of a log, oldest first."""
    number, old = 1, []
    while os.path.exists(f"{path}.{number}"):
        old.append(f"{path}.{number}")
        number += 1
    return [*reversed(old), path]


def _lines(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            while line := file.readline(_LONGEST_LINE):
                yield line
    except FileNotFoundError:
        return


def _follow(path: str, position: int) -> None:
    """Print what is added. A log that got shorter was moved aside, and begins again."""
    pause = threading.Event()
    while True:
        try:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_size < position:
                    position = 0
                file.seek(position)
                while line := file.readline(_LONGEST_LINE):
                    if not line.endswith(b"\n") and len(line) < _LONGEST_LINE:
                        break  # the rest is still to come
                    position += len(line)
                    click.echo(printable(line.decode("utf-8", "replace").removesuffix("\n")))
        except FileNotFoundError:
            position = 0
        pause.wait(_PAUSE)
