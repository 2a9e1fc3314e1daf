"""What VolumeAttachments said a moment ago: one look at an attachment serves all steps of an operation.

In a cluster each look is a request. The attacher fills it when it looks whether a volume is attached; staging and
publishing, which follow at once, take the publish context from it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

#: How long what was seen serves, in seconds: staging may have to make a filesystem first.
SECONDS: Final = 120.0


class SeenAttachments:
    """Safe for threads.

    :param clock: monotonic, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[float, Mapping[str, str]]] = {}

    def put(self, name: str, metadata: Mapping[str, str]) -> None:
        """The attachment of that name is there, with this metadata."""
        now = self._clock()
        with self._lock:
            self._seen = {known: each for known, each in self._seen.items() if now - each[0] < SECONDS}
            self._seen[name] = now, dict(metadata)

    def get(self, name: str) -> Mapping[str, str] | None:
        """The metadata that it had a moment ago, a copy; None when it has to be looked at."""
        with self._lock:
            at, metadata = self._seen.get(name, (float("-inf"), {}))
        return dict(metadata) if self._clock() - at < SECONDS else None

    def forget(self, name: str) -> None:
        """It is not there, or not attached."""
        with self._lock:
            self._seen.pop(name, None)
