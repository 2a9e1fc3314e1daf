"""Keeps a log readable while the same thing goes wrong again and again: such records are counted, not shown (BR-53)."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

#: How long a record's repetitions are only counted, in seconds.
QUIET_SECONDS: Final = 600.0

_REMEMBERED: Final = 1000


@dataclass(slots=True)
class _Shown:
    """When a record was shown, and how often it came again since."""

    at: float
    again: int = 0


class Repeats(logging.Filter):
    """Lets a record pass once in ten minutes; the next one that passes tells how many there were in between."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._shown: OrderedDict[tuple[str, int, str, str], _Shown] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is to be shown; one that came again meanwhile says so."""
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - the handler tells of a record that cannot be formatted
            return True
        error = repr(record.exc_info[1]) if record.exc_info else ""
        key, now = (record.name, record.levelno, message, error), self._clock()
        with self._lock:
            shown = self._shown.get(key)
            if shown is not None and now - shown.at < QUIET_SECONDS:
                shown.again += 1
                return False
            self._shown[key] = _Shown(now)
            self._shown.move_to_end(key)
            if len(self._shown) > _REMEMBERED:
                self._shown.popitem(last=False)
        if shown is not None and shown.again:
            times = "once more" if shown.again == 1 else f"{shown.again} times more"
            record.msg, record.args = f"{message} (and {times} in the last {(now - shown.at) / 60:.0f} min)", ()
        return True
