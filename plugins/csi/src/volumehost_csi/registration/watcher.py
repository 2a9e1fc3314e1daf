"""Watches the registration directory and keeps the cache of desired sockets true (CSI-WATCH-01 to -14, BR-21, BR-24).

An event is only a reason to look: what counts is what lies on disk at that moment, so a removal that is told late, or
a pair of events in the wrong order, changes nothing that is still there. Where the kernel's watches are used up, the
directory is looked at every second instead.

The watcher has no thread; whoever calls :meth:`RegistrationDirectory.wait` lends it one. It never talks to a plugin.
"""

from __future__ import annotations

import itertools
import logging
import os
import select
import threading
import time
from collections.abc import Callable

from volumehost.errors import RootDirectoryError
from volumehost_csi.registration.caches import DesiredSocket, PathCache
from volumehost_csi.registration.inotify import (
    EXHAUSTED,
    IN_DELETE,
    IN_DELETE_SELF,
    IN_IGNORED,
    IN_ISDIR,
    IN_MOVE_SELF,
    IN_MOVED_FROM,
    IN_Q_OVERFLOW,
    IN_UNMOUNT,
    Event,
    Inotify,
)
from volumehost_csi.registration.scan import Found, is_hidden, look, marks_of

logger = logging.getLogger(__name__)

DIRECTORY_MODE = 0o755

#: Seconds between two looks without inotify (CSI-WATCH-13), and before a look that failed is repeated.
POLL_SECONDS = 1.0
#: Looks without inotify before it is tried again.
_LOOKS_BEFORE_INOTIFY = 60
#: A look may begin only after this many times the duration of the last: a storm of changes costs a tenth of a core.
_REST = 10

_LEFT = IN_DELETE | IN_MOVED_FROM
_ABOUT_ITSELF = IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT


class RegistrationDirectory:
    """One watched directory. :meth:`wake` may be called from any thread, everything else from one.

    :param path: it is made when it is not there.
    :param desired: is kept true to what lies there.
    :param inotify: makes an inotify instance; what it raises decides whether the directory is polled.
    """

    def __init__(
        self,
        path: str,
        desired: PathCache[DesiredSocket],
        *,
        inotify: Callable[[], Inotify] = Inotify,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self.path = os.path.abspath(path)
        #: What is left out or slower than it should be, "" when nothing is.
        self.problem = ""
        self._desired = desired
        self._new_inotify = inotify
        self._poll_seconds = poll_seconds
        self._inotify: Inotify | None = None
        self._watches: dict[int, str] = {}
        self._generations = itertools.count(1)
        self._left: set[str] = set()
        self._next_look: float | None = None
        self._rest_until = 0.0
        self._polls = 0
        self._wake_fd = -1
        self._wake_lock = threading.Lock()

    @property
    def polling(self) -> bool:
        """Whether it is looked at from time to time because inotify cannot be had."""
        return self._inotify is None

    def open(self) -> None:
        """Make the directory, watch it and take in what lies there.

        :raises RootDirectoryError: it cannot be made or read (CSI-WATCH-01).
        """
        try:
            os.makedirs(self.path, mode=DIRECTORY_MODE, exist_ok=True)
            self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._look()
        except OSError as error:
            self.close()
            raise RootDirectoryError(
                str(error.strerror or error),
                action=f"watching for CSI drivers that register in {self.path}",
                subject=self.path,
                hint="it must be a directory that this host can write to",
            ) from error

    def close(self) -> None:
        """Let go of everything; what the cache holds stays."""
        self._drop_inotify()
        with self._wake_lock:
            if self._wake_fd >= 0:
                os.close(self._wake_fd)
            self._wake_fd = -1

    def wake(self) -> None:
        """End a wait, the present one or the next."""
        with self._wake_lock:
            if self._wake_fd >= 0:
                os.eventfd_write(self._wake_fd, 1)

    def wait(self, timeout: float | None) -> None:
        """Wait until the directory was looked at again, :meth:`wake` was called, or ``timeout`` seconds are over."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            now = time.monotonic()
            if self._next_look is not None and now >= self._next_look:
                self._look_again()
                return
            ends = [moment for moment in (deadline, self._next_look) if moment is not None]
            ready = self._poll(max(0.0, min(ends) - now) if ends else None)
            if self._wake_fd in ready:
                os.eventfd_read(self._wake_fd)
                return
            if self._inotify is not None and self._inotify.fd in ready:
                self._take_events(self._inotify)
            now = time.monotonic()
            if (
                deadline is not None
                and now >= deadline
                and not (self._next_look is not None and now >= self._next_look)
            ):
                return

    def _poll(self, seconds: float | None) -> set[int]:
        poll = select.poll()
        poll.register(self._wake_fd, select.POLLIN)
        if self._inotify is not None:
            poll.register(self._inotify.fd, select.POLLIN)
        # Rounded up: a wait of nought milliseconds just before the moment would spin.
        return {fd for fd, _ in poll.poll(None if seconds is None else int(seconds * 1000) + 1)}

    # --- events ---------------------------------------------------------------------------------------------

    def _take_events(self, inotify: Inotify) -> None:
        try:
            concerned = [event for event in inotify.read() if self._concerns_us(event)]
        except OSError as error:
            logger.warning("the events of %s cannot be read, it is looked through instead: %s", self.path, error)
            self._drop_inotify()
            concerned = []
            self._look_in(0)
        if concerned:
            self._look_in(0)

    def _concerns_us(self, event: Event) -> bool:
        """Whether the event may change which sockets there are; most entries of a data directory do not."""
        if event.mask & IN_Q_OVERFLOW:
            return True
        directory = self._watches.get(event.watch)
        if directory is None:
            return False
        if event.mask & _ABOUT_ITSELF or not event.name:
            return True
        if is_hidden(event.name):
            return False
        if event.mask & IN_ISDIR:
            return True
        path = f"{directory}/{event.name}"
        if event.mask & _LEFT and self._desired.get(path) is not None:
            # Whatever lies there when we look is another socket, even if it has the same inode number.
            self._left.add(path)
        return self._desired.get(path) is not None or marks_of(path) is not None

    # --- looking --------------------------------------------------------------------------------------------

    def _look_in(self, seconds: float) -> None:
        moment = max(time.monotonic() + seconds, self._rest_until)
        self._next_look = moment if self._next_look is None else min(self._next_look, moment)

    def _look_again(self) -> None:
        try:
            self._look()
        except OSError as error:
            # Nothing is known now, so nothing is taken for gone (CSI-WATCH-09 improved).
            self._note(f"{self.path} cannot be read: {error.strerror}")
            self._look_in(self._poll_seconds)

    def _look(self) -> None:
        self._next_look = None
        self._have_inotify()
        started = time.monotonic()
        watches: dict[int, str] = {}
        try:
            found = look(self.path, lambda directory: self._watch(directory, watches))
        except FileNotFoundError:
            os.mkdir(self.path, DIRECTORY_MODE)  # Not its parents: the whole root directory may have been taken away.
            found = look(self.path, lambda directory: self._watch(directory, watches))
        self._keep_watches(watches, found)
        left, self._left = self._left, set()
        self._desired.replace_all({path: self._socket(path, found, left) for path in found.sockets})
        self._rest_until = time.monotonic() + _REST * (time.monotonic() - started)
        slow = "inotify cannot be had, it is looked at every second" if self.polling else ""
        self._note("; ".join(filter(None, (found.incomplete, slow))))
        if found.failed or self.polling:
            self._look_in(self._poll_seconds)

    def _socket(self, path: str, found: Found, left: set[str]) -> DesiredSocket:
        marks, known = found.sockets[path], self._desired.get(path)
        if known is not None and known.marks == marks and path not in left:
            return known
        return DesiredSocket(path, marks, next(self._generations))

    def _note(self, problem: str) -> None:
        if problem and problem != self.problem:
            logger.warning("the registration directory %s: %s", self.path, problem)
        self.problem = problem

    # --- inotify --------------------------------------------------------------------------------------------

    def _have_inotify(self) -> None:
        """Get an instance if there is none; try again only from time to time."""
        if self._inotify is not None:
            return
        self._polls += 1
        if self._polls % _LOOKS_BEFORE_INOTIFY != 1:
            return
        try:
            self._inotify = self._new_inotify()
        except OSError as error:
            logger.debug("no inotify for %s: %s", self.path, error)

    def _watch(self, directory: str, watches: dict[int, str]) -> None:
        if self._inotify is None:
            return
        try:
            watches[self._inotify.watch(directory, follow=directory == self.path)] = directory
        except OSError as error:
            if error.errno not in EXHAUSTED:
                raise
            logger.debug("no watch for %s: %s", directory, error)
            self._drop_inotify()

    def _keep_watches(self, watches: dict[int, str], found: Found) -> None:
        """Watch what was looked through, nothing else."""
        if self._inotify is None:
            return
        wanted = set(found.directories)
        kept = {number: directory for number, directory in watches.items() if directory in wanted}
        for number in (self._watches.keys() | watches.keys()) - kept.keys():
            self._inotify.unwatch(number)
        self._watches = kept

    def _drop_inotify(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
            self._polls = 1
        self._watches = {}
