"""Where log records go: to stderr, as many as ``-v`` asks for. Every command sets this up before it runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from volumehost.cli.repeats import Repeats
from volumehost.cli.tables import printable

#: Verbosity to the lowest level shown. What fails as it may is told by the commands themselves, not in a log.
_LEVELS = {0: logging.ERROR, 1: logging.INFO}


class _Formatter(logging.Formatter):
    """One line for each record, and tracebacks only for those who ask for every detail."""

    def __init__(self, verbosity: int) -> None:
        moment = "%(asctime)s " if verbosity > 1 else ""
        super().__init__(f"{moment}%(levelname)s %(name)s: %(message)s")
        self._tracebacks = verbosity > 1

    def format(self, record: logging.LogRecord) -> str:
        """The line, unable to steer the terminal."""
        record.message = record.getMessage()
        record.asctime = self.formatTime(record) if self._tracebacks else ""
        line = printable(self.formatMessage(record))
        if not record.exc_info:
            return line
        if self._tracebacks:
            return "\n".join([line, *map(printable, self.formatException(record.exc_info).split("\n"))])
        kind, error, _ = record.exc_info
        return f"{line}: {kind.__name__ if kind else ''}: {printable(error)}"


@contextmanager
def logging_for(verbosity: int) -> Iterator[None]:
    """Send records to stderr: what must not happen at 0, what is done at 1, everything with tracebacks at 2.

    Up to 1 a record that comes again and again is shown once in ten minutes, with a count.

    What the process had set up before comes back at the end: a command may run inside another program.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter(verbosity))
    if verbosity < 2:
        handler.addFilter(Repeats())
    root = logging.getLogger()
    former = root.handlers[:], root.level
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS.get(verbosity, logging.DEBUG))
    try:
        yield
    finally:
        root.handlers[:] = former[0]
        root.setLevel(former[1])
