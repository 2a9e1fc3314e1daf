"""Whether a thread computes or waits for somebody; the worker pool asks before it has others join in.

The kernel tells for how long a thread ran, and for how long it could have run and did not get a processor. The rest of
the time it waited.
"""

from __future__ import annotations

import contextlib
import os
import time

#: Threads compute when all of them together have waited for less than this part of the time.
_MOST_WAITING = 0.5
#: Of a shorter time nothing can be told, in seconds.
_LEAST_SECONDS = 0.002


class Computing:
    """Looks at threads by their kernel ids. Not safe for threads by itself."""

    def __init__(self) -> None:
        #: When each was looked at last, and for how many seconds it had run or wanted to by then.
        self._seen: dict[int, tuple[float, float]] = {}
        self._found = False
        #: What the kernel tells of each; kept open, since to open it takes longer than all the rest.
        self._files: dict[int, int] = {}

    def begin(self, thread: int) -> None:
        """Look at a thread that begins to work."""
        if thread not in self._files:
            with contextlib.suppress(OSError):
                self._files[thread] = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        wanted = self._wanted_seconds(thread)
        if wanted is not None:
            self._seen[thread] = time.monotonic(), wanted

    def end(self, thread: int) -> None:
        """The thread does not work any more, for now."""
        self._seen.pop(thread, None)

    def forget(self, thread: int) -> None:
        """The thread ends."""
        self.end(thread)
        file = self._files.pop(thread, None)
        if file is not None:
            os.close(file)

    def any(self) -> bool:
        """Whether those that work have computed since they were looked at last; not where the kernel does not tell.

        What each did counts together: several that contend for the interpreter wait for each other most of the time,
        and it is busy all the same.
        """
        now, part, looked = time.monotonic(), 0.0, False
        for thread, (since, before) in list(self._seen.items()):
            if now - since < _LEAST_SECONDS:
                continue
            wanted = self._wanted_seconds(thread)
            if wanted is None:
                del self._seen[thread]
                continue
            self._seen[thread] = now, wanted
            part += (wanted - before) / (now - since)
            looked = True
        if looked:
            self._found = part > 1 - _MOST_WAITING
        return self._found and bool(self._seen)

    def _wanted_seconds(self, thread: int) -> float | None:
        file = self._files.get(thread)
        if file is None:
            return None
        try:
            ran, waited, _ = os.pread(file, 100, 0).split()
            return (int(ran) + int(waited)) / 1e9
        except (OSError, ValueError):
            return None
