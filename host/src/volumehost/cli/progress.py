"""Shows on stderr what is being waited for: only on a terminal, only when it takes a moment, gone when it is over."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

#: Seconds after which a wait is worth showing.
_PATIENCE = 0.5


@contextmanager
def progress(lines: Callable[[], list[str]], *, verbosity: int = 0) -> Iterator[None]:
    """Show the lines, asked for anew a few times a second, while the block runs.

    :param verbosity: where log records go to the same terminal, nothing is drawn between them.
    """
    if verbosity or not sys.stderr.isatty():
        yield
        return
    shown = _Shown(lines)
    timer = threading.Timer(_PATIENCE, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        shown.stop()


class _Shown:
    """What is drawn, from the moment on that there is something to draw until the end."""

    def __init__(self, lines: Callable[[], list[str]]) -> None:
        self._lines = lines
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._live: Live | None = None
        self._over = False

    def start(self) -> None:
        """Begin to draw, unless it is over."""
        from rich.console import Console
        from rich.live import Live

        with self._lock:
            if not self._over:
                console = Console(stderr=True)
                self._live = Live(get_renderable=self._text, console=console, refresh_per_second=4, transient=True)
                self._live.start()

    def stop(self) -> None:
        """Take away what was drawn."""
        with self._lock:
            self._over = True
            if self._live is not None:
                self._live.stop()

    def _text(self) -> Text:
        """Without markup or colours: errors of drivers and plugins are among the lines."""
        from rich.text import Text

        from volumehost.cli.durations import format_duration
        from volumehost.cli.tables import printable

        waited = format_duration(time.monotonic() - self._began)
        return Text("\n".join([*map(printable, self._lines()), f"({waited})"]))
