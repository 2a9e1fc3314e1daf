"""What the commands that run a daemon share: their log, and an end that nothing can hold up."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from volumehost.cli.errors import FAILED


@contextmanager
def telling(*rooms: str) -> Iterator[None]:
    """Without ``-v`` too the log tells warnings, and what these rooms (``volumehost.agent``) are at."""
    root, owns = logging.getLogger(), [logging.getLogger(name) for name in (*rooms, "volumehost.daemon")]
    if root.isEnabledFor(logging.WARNING):
        yield
        return
    root.setLevel(logging.WARNING)
    for own in owns:
        own.setLevel(logging.INFO)
    try:
        yield
    finally:
        for own in owns:
            own.setLevel(logging.NOTSET)


def leave(*, ended: bool) -> None:
    """End the process at once where something hangs, in the kernel perhaps, that Python would wait for."""
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if not ended or any(not thread.daemon for thread in others):
        logging.shutdown()
        sys.stderr.flush()
        os._exit(0 if ended else FAILED)
