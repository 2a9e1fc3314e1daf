"""Keeps the standard streams apart from what else there is: ``main`` and the commands that run plugins use it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

_STDOUT, _STDERR = 1, 2


def open_missing_streams() -> None:
    """Open the null device at every standard descriptor that is closed, and as every standard stream that is None.

    Without that, the first file that is opened, a store perhaps, gets the number of a standard stream, and whatever
    writes there writes into it.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number, which is this one, as those below it are open now.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - they stay open to the end
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


@contextmanager
def plugins_print_to_stderr() -> Iterator[None]:
    """While the block runs, what plugins and the programs that they start print goes to stderr.

    stdout is the result of the command, which programs read; the command prints it after the block.
    """
    sys.stdout.flush()
    kept = os.dup(_STDOUT)
    try:
        os.dup2(_STDERR, _STDOUT)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, _STDOUT)
        os.close(kept)
