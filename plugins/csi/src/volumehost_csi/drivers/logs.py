"""Reads the log of a driver, which its keeper writes and moves aside: the last lines, and new ones as they come."""

from __future__ import annotations

import os

from volumehost_csi.drivers.keeper import LOG_MARK

#: As much of the end of a log as is looked at for its last lines, in bytes.
_TAIL_BYTES = 256 << 10


def log_tail(path: str, lines: int, *, instance: str = "") -> list[str]:
    """The last lines of a log, without line ends; of one process of the driver when ``instance`` is given.

    A log that cannot be read has none.
    """
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    if instance:
        mark = f"{LOG_MARK}{instance}"
        begin = next((number for number in range(len(text) - 1, -1, -1) if text[number].startswith(mark)), -1)
        text = text[begin + 1 :]
    return [line for line in text if line.strip()][-lines:] if lines > 0 else []
