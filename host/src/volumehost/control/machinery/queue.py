"""The queue of keys that controllers have to look at: each at most once at a time, failed ones after a backoff.

A key that comes up again while it is being worked on is worked on once more afterwards, so that no change is missed.
"""

from __future__ import annotations

import copy
import heapq
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from volumehost.control.machinery.controller import Controller, Key
from volumehost.errors import (
    ConflictError,
    DeletedVolumeInUseError,
    StorageDriverError,
    StorageDriverUnavailableError,
    error_chain,
)

#: By how much each delay is longer than the one before, and the longest, in seconds (CSI-EXA-10).
FACTOR = 2.0
MAXIMUM_DELAY = 300.0
#: The longest delay while a driver is not there, in seconds, and for how many attempts: it may be about to start. Later
#: too its coming is heard of.
DRIVER_DELAY = 5.0
DRIVER_ATTEMPTS = 12
#: How often in a row a write may meet a newer state before that counts as a failure.
CONFLICTS = 10
#: How long to wait for a driver that is busy with another call for the same volume, in seconds (BR-39).
BUSY_DELAY = 1.0
#: So many resource versions are remembered of an item.
_MOST_VERSIONS = 256
#: The longest delay while what is to be deleted is in use, in seconds: the end of a use is not always heard of (BR-48).
IN_USE_DELAY = 15.0


class Item(NamedTuple):
    """One key of one controller."""

    controller: Controller
    key: Key


class News(NamedTuple):
    """A change: whether it is looked at although a backoff is not over, and whether former failures no longer count."""

    urgent: bool
    fresh: bool

    def also(self, other: News) -> News:
        """This one and another."""
        return News(self.urgent or other.urgent, self.fresh or other.fresh)


@dataclass(slots=True)
class Record:
    """What is known of an item; times are those of the queue's clock, in seconds.

    ``news``: what changed while it ran, by resource version; ``wrote``: the versions that its failed attempts wrote
    themselves. ``due_at`` is when it comes again by itself, None when only a change brings it back.
    """

    queued: bool = False
    running: bool = False
    news: dict[str, News] = field(default_factory=dict, repr=False)
    wrote: frozenset[str] = frozenset()
    due_at: float | None = None
    conflicts: int = 0
    attempts: int = 0
    delay: float = 0.0
    error: BaseException | None = None
    ticket: int = field(default=0, repr=False)


class WorkQueue:
    """Hands out items; safe for threads.

    :param clock: monotonic, in seconds.
    :param first_delay: how long a key waits after its first failure, in seconds. A change that comes while a run
        fails brings the key back after that time too.
    :param jitter: what part of a delay is added to it, anew each time: what failed together is not retried together.
    """

    def __init__(
        self, clock: Callable[[], float], first_delay: float, *, jitter: Callable[[], float] = lambda: 0.0
    ) -> None:
        self._jitter = jitter
        self._clock = clock
        self._first_delay = first_delay
        self._condition = threading.Condition(threading.Lock())
        self._ready: deque[Item] = deque()
        self._later: list[tuple[float, int, Item]] = []
        self._records: dict[Item, Record] = {}
        self._tickets = itertools.count(1)
        self._idle = 0
        #: How often :meth:`add` was called.
        self.added = 0
        self._stopping = False

    def add(self, item: Item, *, urgent: bool = True, fresh: bool = False, version: str = "") -> None:
        """Something about the item changed.

        :param urgent: look at it now even when it waits for its next attempt.
        :param fresh: what is wanted changed, so that its failures no longer count (BR-53).
        :param version: the resource version of what changed. One that a failed attempt at the item wrote itself is no
            news to it, whenever that is told.
        """
        with self._condition:
            if self._stopping:
                return
            self.added += 1
            record = self._records.setdefault(item, Record())
            news = News(urgent, fresh)
            if record.running:
                if not version:  # somebody asks: who waits from now on has not seen the former failures
                    self._take_note(record, news)
                if version not in record.news and len(record.news) >= _MOST_VERSIONS:
                    version = ""
                record.news[version] = record.news.get(version, news).also(news)
            elif version not in record.wrote:
                self._take_note(record, news)
                if not record.queued and (urgent or record.error is None):
                    self._enqueue(item, record)

    def take(self, timeout: float | None) -> Item | None:
        """Wait for an item and mark it as running; None after ``timeout`` seconds, and once the queue is stopped."""
        deadline = None if timeout is None else self._clock() + timeout
        with self._condition:
            self._idle += 1
            try:
                while not self._stopping:
                    now = self._clock()
                    self._promote(now)
                    if self._ready:
                        item = self._ready.popleft()
                        record = self._records[item]
                        record.queued, record.running, record.due_at = False, True, None
                        record.news = {}
                        return item
                    if deadline is not None and now >= deadline:
                        return None
                    ends = [self._later[0][0]] if self._later else []
                    ends += [deadline] if deadline is not None else []
                    self._condition.wait(min(ends) - now if ends else None)
                return None
            finally:
                self._idle -= 1

    def finish(
        self,
        item: Item,
        *,
        after: float | None = None,
        error: BaseException | None = None,
        wrote: frozenset[str] = frozenset(),
    ) -> None:
        """The item was worked on: ``after`` seconds it is to come again, or it failed.

        :param wrote: the resource versions that this attempt has written.
        """
        with self._condition:
            record = self._records[item]
            record.running = False
            record.wrote = record.wrote | wrote if error is not None else frozenset()
            if len(record.wrote) > _MOST_VERSIONS:
                record.wrote = wrote
            news = [each for version, each in record.news.items() if version not in record.wrote]
            for each in news:
                self._take_note(record, each)
            again = any(each.urgent or error is None for each in news)
            if isinstance(error, ConflictError) and record.conflicts < CONFLICTS:
                record.conflicts += 1
                self._enqueue(item, record)
            elif error is not None:
                self._failed(item, record, error)
            else:
                record.attempts, record.delay, record.error, record.conflicts = 0, 0.0, None, 0
                if after is not None:
                    self._schedule(item, record, after)
            if again and not record.queued:
                if record.error is None:
                    self._enqueue(item, record)
                elif record.delay > self._first_delay:
                    self._schedule(item, record, self._first_delay)
            if not (record.queued or record.due_at is not None or record.error is not None):
                del self._records[item]
            self._condition.notify_all()

    def wake(self, concerns: Callable[[BaseException], bool]) -> None:
        """Look now at every item whose last error ``concerns`` says yes to."""
        with self._condition:
            for item, record in list(self._records.items()):
                if record.error is not None and not record.queued and concerns(record.error):
                    if record.running:
                        record.news[""] = News(urgent=True, fresh=False)
                    else:
                        self._enqueue(item, record)

    def stop(self) -> None:
        """Hand out nothing more."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()

    def wait_drained(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds until nothing runs; whether that is so."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._running(), timeout)

    @property
    def needs_taker(self) -> bool:
        """Whether nobody waits, or fewer than there are items ready."""
        with self._condition:
            return len(self._ready) >= self._idle

    def idle(self) -> bool:
        """Whether nothing runs and nothing is due."""
        with self._condition:
            self._promote(self._clock())
            return not self._ready and not self._running()

    def record(self, item: Item) -> Record | None:
        """What is known of the item; None when it is at rest. A copy."""
        with self._condition:
            record = self._records.get(item)
            return None if record is None else copy.copy(record)

    def failures(self) -> Iterator[tuple[Item, Record]]:
        """The items whose last attempt failed, with copies of what is known of them."""
        with self._condition:
            found = [(item, copy.copy(record)) for item, record in self._records.items() if record.error is not None]
        return iter(found)

    # --- inside the condition ---------------------------------------------------------------------------------------

    @staticmethod
    def _take_note(record: Record, news: News) -> None:
        if news.fresh:
            record.attempts, record.delay = 0, 0.0

    def _running(self) -> bool:
        return any(record.running for record in self._records.values())

    def _enqueue(self, item: Item, record: Record) -> None:
        record.queued, record.due_at = True, None
        record.ticket = 0
        self._ready.append(item)
        self._condition.notify()

    def _schedule(self, item: Item, record: Record, seconds: float) -> None:
        record.due_at = self._clock() + seconds
        record.ticket = next(self._tickets)
        heapq.heappush(self._later, (record.due_at, record.ticket, item))

    def _promote(self, now: float) -> None:
        """Move what has become due to what is ready; entries that were overtaken are dropped."""
        while self._later and self._later[0][0] <= now:
            _, ticket, item = heapq.heappop(self._later)
            record = self._records.get(item)
            if record is not None and record.ticket == ticket and not record.queued and not record.running:
                self._enqueue(item, record)

    def _failed(self, item: Item, record: Record, error: BaseException) -> None:
        record.error = error
        record.attempts += 1
        record.delay = min(record.delay * FACTOR, MAXIMUM_DELAY) if record.delay else self._first_delay
        chain = list(error_chain(error))
        is_away = any(isinstance(link, StorageDriverUnavailableError) for link in chain)
        if is_away and record.attempts <= DRIVER_ATTEMPTS:
            record.delay = min(record.delay, DRIVER_DELAY)
        elif any(isinstance(link, StorageDriverError) and link.code == "ABORTED" for link in chain):
            record.delay = BUSY_DELAY
        elif any(isinstance(link, DeletedVolumeInUseError) for link in chain):
            record.delay = min(record.delay, IN_USE_DELAY)
        self._schedule(item, record, record.delay * (1 + self._jitter()))
