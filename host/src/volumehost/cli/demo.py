"""``volumehost demo``."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from volumehost.cli.command import Command
from volumehost.cli.options import shared_options


@click.command(cls=Command, examples=(("", "volumehost demo"),))
@shared_options()
def demo() -> None:
    """Mount a pod's volumes for real, use them, and clean up.

    Needs nothing but the right to mount: works in a directory of its own, shows what the kernel says of each volume,
    writes data and reads it back, tries the limit of the one in memory, and proves that nothing is left. Then a CSI
    driver provisions the volume of a claim, which is mounted, expanded while it is used, and deleted. Exits with 1 when
    anything is not as promised.
    """
    from volumehost.cli.demo_claims import ClaimTour, missing_distributions
    from volumehost.cli.demo_place import demo_place
    from volumehost.cli.demo_tour import Tour
    from volumehost.mount.privileges import check_mount_privileges

    check_mount_privileges()
    with _termination_as_interrupt(), demo_place() as place:
        Tour(place).run()
        missing = missing_distributions()
        if missing:
            click.echo(f"\nCSI is not shown: pip install {' '.join(missing)}")
        else:
            ClaimTour(place).run()
        click.echo("\nAll as promised. $DEMO is removed.")


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, so that what it cleans up is cleaned up."""

    def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a signal handler's signature
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
