"""The marker ``ready`` beside a volume that says that its set-up ran to the end once (UTIL-01).

A marker proves nothing about the present: check that the volume is still there as well (is it mounted, is it a
directory), and take a missing marker as "the last steps may not have run".
"""

from __future__ import annotations

import logging
import os
import stat

from volumehost.sdk.directories import make_directories

logger = logging.getLogger(__name__)

READY_FILE = "ready"

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def is_ready(directory: str) -> bool:
    """Whether ``<directory>/ready`` is a regular file; any problem counts as no."""
    try:
        return stat.S_ISREG(os.lstat(f"{directory}/{READY_FILE}").st_mode)
    except OSError:
        return False


def set_ready(directory: str) -> None:
    """Create the directory (0750, with parents) and the marker; a failure is only logged.

    Losing the marker costs a repeated set-up, never a wrong one.
    """
    path = f"{directory}/{READY_FILE}"
    try:
        try:
            os.close(os.open(path, _CREATE, 0o640))
        except FileNotFoundError:
            make_directories(directory)
            os.close(os.open(path, _CREATE, 0o640))
    except OSError as error:
        logger.warning("marking %s as ready failed: %s", directory, error)
