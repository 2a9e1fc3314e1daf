"""Locks between hosts on files that stay: the kernel lets go of them with the process that held them, however it ends.

``users.lock`` of a driver is held shared by every host that needs it: who can have it exclusively knows that nobody
does. ``start.lock`` is held by the one host that is starting, replacing or recording the driver.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator

#: Seconds between two looks at a lock that another process holds, which announces nothing.
_PAUSE = 0.02


class FileLock:
    """One flock. Not for use by two threads at once."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1

    @property
    def held(self) -> bool:
        """Whether this object holds it, shared or exclusively."""
        return self._descriptor >= 0

    def try_lock(self, *, shared: bool = False) -> bool:
        """Take it without waiting, or change how it is held; whether that worked.

        A change that does not work may have lost the lock altogether: the object then holds nothing.

        :raises OSError: the file cannot be opened.
        """
        if not self.held:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(self._path, flags, 0o600)
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            return False
        return True

    def lock(self, timeout: float, *, shared: bool = False, stop: threading.Event | None = None) -> bool:
        """Take it within ``timeout`` seconds; whether that worked. ``stop`` ends the wait early."""
        deadline = time.monotonic() + timeout
        pause = stop or threading.Event()
        while not self.try_lock(shared=shared):
            if time.monotonic() >= deadline or pause.wait(_PAUSE):
                return False
        return True

    def release(self) -> None:
        """Let go of it; nothing happens when it is not held."""
        if self.held:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


@contextlib.contextmanager
def locked(path: str, timeout: float, *, stop: threading.Event | None = None) -> Iterator[bool]:
    """Hold the lock exclusively for the block, when it can be had within ``timeout`` seconds: the value tells."""
    lock = FileLock(path)
    try:
        yield lock.lock(timeout, stop=stop)
    finally:
        lock.release()
