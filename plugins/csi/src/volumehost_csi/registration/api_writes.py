"""Repeating reads and writes of the API for as long as that can help (CSI-NIM-03 improved)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from volumehost.errors import AlreadyExistsError, ApiError, ConflictError, StoreError

T = TypeVar("T")

#: Attempts while somebody else writes the same object: each time one of the writers wins.
CONFLICT_ATTEMPTS = 16
#: Attempts while the API does not answer; the registration as a whole is repeated later.
UNAVAILABLE_ATTEMPTS = 4

_FIRST_PAUSE = 0.01
_UNAVAILABLE_FACTOR = 5.0
_CONFLICT_FACTOR = 1.5
_LONGEST_PAUSE = 0.5
_JITTER = 0.1


def repeated(attempt: Callable[[], T], *, pause: Callable[[float], object] = time.sleep) -> T:
    """The result of ``attempt``, which reads afresh and writes, made again after conflicts and failures of the API.

    What can never succeed (an invalid object, a label that collides) is not repeated.

    :raises ApiError: the last failure; it names the object.
    """
    conflicts = failures = 0
    while True:
        try:
            return attempt()
        except (ConflictError, AlreadyExistsError):
            conflicts += 1
            if conflicts >= CONFLICT_ATTEMPTS:
                raise
            seconds = _FIRST_PAUSE * _CONFLICT_FACTOR ** (conflicts - 1)
        except ApiError as error:
            failures += 1
            if failures >= UNAVAILABLE_ATTEMPTS or not isinstance(error, StoreError):
                raise
            seconds = _FIRST_PAUSE * _UNAVAILABLE_FACTOR ** (failures - 1)
        pause(min(seconds, _LONGEST_PAUSE) * (1 + random.uniform(0, _JITTER)))  # noqa: S311 - no secret
