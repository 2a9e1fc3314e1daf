"""Runs calls that the kernel may never finish (a dead server, a stopped FUSE daemon) without waiting for ever.

Used wherever this room touches a filesystem that is not known to answer. A thread stuck in the kernel cannot be ended
by anybody, so the number of them is bounded and none keeps the process from ending.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

_IDLE_SECONDS: Final = 5.0
#: How long a call has been stuck, in seconds, when another about the same is begun at the earliest.
_TRY_AGAIN_SECONDS: Final = 30.0


class DeadlineExceededError(TimeoutError):
    """The call did not end in time; it may still be going on in the kernel."""


class TooManyStuckCallsError(DeadlineExceededError):
    """So many calls are stuck already that no further one is begun: certainly nothing happened."""


class StillStuckError(DeadlineExceededError):
    """An earlier call about the same has not come back, so that this one was not begun."""


def in_seconds(seconds: float) -> str:
    """How long something was waited for, in as many digits as people want to know: ``2 s``, ``1.8 s``, ``123 s``."""
    if seconds >= 9.5:
        return f"{seconds:.0f} s"
    return f"{seconds:.2g} s" if seconds >= 0.01 else "0 s"


class DeadlineRunner:
    """Runs calls in helper threads, one call per thread at a time, and waits for each at most as long as asked.

    Idle helpers are kept for a moment, since waking one costs a fraction of starting one. At most ``limit`` calls
    are in progress at once, the stuck ones included. What is stuck already is begun again only when it has been
    out for twice as long, so that whoever looks at a hung mount every second does not use them up: a week costs 14.
    """

    def __init__(self, limit: int = 256, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limit = limit
        self._slots = threading.Semaphore(limit)
        self._lock = threading.Lock()
        self._idle: deque[_Helper] = deque()
        self._working: dict[_Helper, float] = {}
        #: What each call that did not end in time is about.
        self._stuck: dict[_Helper, str] = {}
        self._pid = os.getpid()

    def run(
        self,
        function: Callable[..., T],
        *args: Any,
        timeout: float | None,
        what: str = "",
        about: str = "",
        when_stuck: Callable[[], str] | None = None,
        discard: Callable[[T], object] | None = None,
    ) -> T:
        """``function(*args)``, its result or its exception.

        :param timeout: in seconds; None waits for ever, and runs the call in the caller's own thread.
        :param what: names the call, in the log when it ends late too: ``stat /mnt/x``.
        :param about: what it asks; ``what`` unless something else is given. Calls about the same that are stuck keep
            others from being begun.
        :param when_stuck: called when it did not end in time; what it turned out to be about.
        :param discard: called with a result that came too late: closes a descriptor, for example.
        :raises DeadlineExceededError: it did not end in time.
        :raises StillStuckError: it was not begun, because an earlier one about the same has not come back.
        :raises TooManyStuckCallsError: it was not begun, because too many others do not end.
        """
        if timeout is None:
            return function(*args)
        about = about or what
        if self._stuck and about:
            self._refuse_what_is_stuck(about)
        until = time.monotonic() + timeout
        helper = self._take(what or getattr(function, "__name__", "a call"), timeout)
        helper.begin(function, args, discard)
        if not helper.wait(until - time.monotonic()):
            about = when_stuck() if when_stuck is not None else about
            with self._lock:
                if helper in self._working:
                    self._stuck[helper] = about
            raise DeadlineExceededError(f"no answer within {timeout:g} s")
        outcome, error = helper.outcome, helper.error
        helper.outcome = helper.error = None
        self.give_back(helper)
        if error is not None:
            try:
                raise error
            finally:
                # Without this the traceback holds this frame, which holds the error.
                del error
        return outcome  # type: ignore[no-any-return]

    def in_progress(self) -> list[tuple[str, float]]:
        """What is being run now, with its age in seconds, the oldest first."""
        now = self._clock()
        with self._lock:
            return sorted(((helper.what, now - since) for helper, since in self._working.items()), key=lambda x: -x[1])

    def _refuse_what_is_stuck(self, about: str) -> None:
        now = self._clock()
        with self._lock:
            ages = [now - self._working[helper] for helper, stuck in self._stuck.items() if stuck == about]
        if ages and min(ages) < max(_TRY_AGAIN_SECONDS, max(ages) / 2):
            raise StillStuckError(f"no answer for {max(ages):.0f} s to an earlier call")

    def _take(self, what: str, timeout: float) -> _Helper:
        if self._pid != os.getpid():
            self._forget_after_fork()
        if not self._slots.acquire(timeout=max(timeout, 0)):
            raise TooManyStuckCallsError(
                f"{self._limit} calls into the kernel have not come back; no other is begun within {timeout:g} s"
            )
        try:
            return self._take_helper(what)
        except BaseException:
            self._slots.release()
            raise

    def _take_helper(self, what: str) -> _Helper:
        namespace = _mount_namespace()
        with self._lock:
            # A thread keeps the mount namespace in which it was started: one of another sees other mounts.
            helper = next((idle for idle in reversed(self._idle) if idle.namespace == namespace), None)
            if helper is None:
                helper = _Helper(self, namespace)
                helper.start()
            else:
                self._idle.remove(helper)
            helper.what = what
            self._working[helper] = self._clock()
        return helper

    def give_back(self, helper: _Helper) -> None:
        """Make a helper available again; called by whoever learnt that its call has ended."""
        with self._lock:
            self._working.pop(helper, None)
            self._stuck.pop(helper, None)
            self._idle.append(helper)
        self._slots.release()

    def retire(self, helper: _Helper) -> bool:
        """Whether the idle helper may end: nobody has taken it in the meantime."""
        with self._lock:
            try:
                self._idle.remove(helper)
            except ValueError:
                return False
            return True

    def _forget_after_fork(self) -> None:
        # Threads do not survive a fork; neither may a lock that another thread held at that moment.
        self._slots = threading.Semaphore(self._limit)
        self._lock = threading.Lock()
        self._idle = deque()
        self._working = {}
        self._stuck = {}
        self._pid = os.getpid()


class _Helper:
    """One thread, parked on a lock between calls."""

    def __init__(self, runner: DeadlineRunner, namespace: int) -> None:
        self.namespace = namespace
        self.what = ""
        self.outcome: Any = None
        self.error: BaseException | None = None
        self.thread: threading.Thread | None = None
        self._runner = runner
        self._job: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
        self._discard: Callable[[Any], object] | None = None
        self._go = threading.Lock()
        self._go.acquire()
        self._done = threading.Lock()
        self._done.acquire()
        self._state = threading.Lock()
        self._finished = False
        self._abandoned = False

    def start(self) -> None:
        self.thread = threading.Thread(target=self._loop, name="volumehost-kernel-call", daemon=True)
        self.thread.start()

    def begin(
        self, function: Callable[..., Any], args: tuple[Any, ...], discard: Callable[[Any], object] | None
    ) -> None:
        self._job = (function, args)
        self._discard = discard
        self._finished = self._abandoned = False
        self._go.release()

    def wait(self, timeout: float) -> bool:
        """Whether the call ended in time; when not, the helper looks after itself from then on."""
        try:
            if self._done.acquire(timeout=max(timeout, 0)):
                return True
        except BaseException:
            # Interrupted while waiting, by Ctrl-C for example, maybe after the lock was taken.
            if not self._abandon():
                self._done.acquire(blocking=False)
                self._runner.give_back(self)
            raise
        # Between the wait and the lock the call may have ended after all.
        return not self._abandon() and self._done.acquire(blocking=False)

    def _abandon(self) -> bool:
        with self._state:
            self._abandoned = not self._finished
        return self._abandoned

    def _loop(self) -> None:
        while True:
            if not self._go.acquire(timeout=_IDLE_SECONDS):
                if self._runner.retire(self):
                    return
                self._go.acquire()
            self._run()

    def _run(self) -> None:
        function, args = self._job or (int, ())
        self._job = None
        try:
            self.outcome = function(*args)
        except BaseException as error:  # noqa: BLE001 - handed to the caller, who waits for it
            self.error = error
        with self._state:
            self._finished = True
            if not self._abandoned:
                self._done.release()
                return
        logger.warning("a call ended after its deadline: %s: %s", self.what, self.error or "succeeded")
        if self._discard is not None and self.error is None:
            self._discard(self.outcome)
        self.outcome = self.error = None
        self._runner.give_back(self)


def helper_of(frame: FrameType) -> threading.Thread | None:
    """The thread that does the call which this frame waits for; None when it does not wait here."""
    if frame.f_code is not DeadlineRunner.run.__code__:
        return None
    helper = frame.f_locals.get("helper")
    return helper.thread if isinstance(helper, _Helper) else None


def _mount_namespace() -> int:
    """Which mount namespace the calling thread is in; 0 where that cannot be known."""
    try:
        return os.stat("/proc/thread-self/ns/mnt").st_ino
    except OSError:
        return 0
