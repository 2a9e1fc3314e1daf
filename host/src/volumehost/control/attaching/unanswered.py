"""Calls that nobody waits for any more, and that may still be at work at their driver; for the attacher."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from volumehost.errors import StorageDriverError

#: What the host says itself when a driver has not answered in time, or the connection broke.
_UNANSWERED = ("DEADLINE_EXCEEDED", "CANCELLED", "UNAVAILABLE", "")


class UnansweredPublishes:
    """Remembers until when a ControllerPublishVolume may yet take effect: as long again as it was waited for.

    An unpublish within that time may be overtaken by the publish that it undoes, and is repeated after it. Nothing is
    remembered of a call that was answered, and nothing over a restart. Safe for threads.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._until: dict[str, float] = {}

    @contextmanager
    def watched(self, uid: str) -> Iterator[None]:
        """While the volume of the attachment with that uid is published."""
        began = self._clock()
        try:
            yield
        except StorageDriverError as error:
            if error.code in _UNANSWERED:
                ended = self._clock()
                with self._lock:
                    self._until[uid] = ended + (ended - began)
            raise
        self.forget(uid)

    def seconds_left(self, uid: str) -> float:
        """How long a publish of it may yet take effect; 0 when none can."""
        with self._lock:
            return max(0.0, self._until.get(uid, 0.0) - self._clock())

    def forget(self, uid: str) -> None:
        """The attachment is gone, or a later call was answered."""
        with self._lock:
            self._until.pop(uid, None)
