"""Gives a process that was started without standard streams the null device in their place; ``main`` calls it.

Without that, the first file that is opened, a store perhaps, gets the number of a standard stream, and whatever writes
there writes into it.
"""

from __future__ import annotations

import os
import sys


def open_missing_streams() -> None:
    """Open the null device at every standard descriptor that is closed, and as every standard stream that is None."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number, which is this one, as those below it are open now.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - they stay open to the end
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
