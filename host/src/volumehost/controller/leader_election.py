"""Leader election on a Lease: of several controllers one works, another takes over when it is gone.

The daemon calls it. No clock of another machine is believed: a lease counts as abandoned when no renewal of it was seen
for its duration, by the own monotonic clock. A leader's :class:`Term` ends by itself ``renew_deadline`` seconds after
the last renewal that succeeded was *begun*, which is earlier than anybody else can see the lease abandoned.
"""

from __future__ import annotations

import copy
import logging
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from volumehost.errors import AlreadyExistsError, ApiError, ConflictError, ObjectNotFoundError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Lease

logger = logging.getLogger(__name__)

#: Kubernetes' own values, in seconds.
LEASE_DURATION: Final = 15.0
RENEW_DEADLINE: Final = 10.0
RETRY_PERIOD: Final = 2.0
#: By what part of it a pause is longer at most, so that candidates do not ask all at once.
JITTER: Final = 1.2
#: The longest pause of a candidate while the API cannot be asked, in seconds.
LONGEST_PAUSE: Final = 30.0


def seconds_since_boot() -> float:
    """A clock that also counts while the machine sleeps: a leader that wakes up knows that its term is over."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """Which lease, and as whom; times are seconds.

    :param identity: who this candidate is; no two processes may have the same one.
    :raises ValueError: the times cannot work: a term has to end before others can take over.
    """

    namespace: str
    name: str
    identity: str
    duration: float = LEASE_DURATION
    renew_deadline: float = RENEW_DEADLINE
    retry_period: float = RETRY_PERIOD

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry_period * JITTER > 0:
            raise ValueError("the lease's duration must exceed the renew deadline, and that 1.2 times the retry period")


@dataclass(slots=True)
class Term:
    """The time for which this process is the leader. Safe for threads.

    It ends by :meth:`end`, or by itself when it is not extended in time; it never comes to life again.
    """

    clock: Callable[[], float]
    _valid_until: float
    _reason: str = ""
    _ended: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def valid(self) -> bool:
        """Whether this process is the leader still."""
        with self._changed:
            return self._is_valid()

    @property
    def reason(self) -> str:
        """Why it ended, "" while it has not."""
        with self._changed:
            return "" if self._is_valid() else self._reason or "the lease could not be renewed in time"

    def extend(self, until: float) -> None:
        """A renewal has succeeded."""
        with self._changed:
            if self._is_valid():
                self._valid_until = max(self._valid_until, until)
                self._changed.notify_all()

    def end(self, reason: str) -> None:
        """It is over."""
        with self._changed:
            if self._is_valid():
                self._ended, self._reason = True, reason
            self._changed.notify_all()

    def poke(self) -> None:
        """Have :meth:`wait_ended` ask again."""
        with self._changed:
            self._changed.notify_all()

    def wait_ended(self, unless: Callable[[], bool] = lambda: False) -> None:
        """Return when it has ended, or ``unless`` says yes, which is asked after :meth:`poke`."""
        with self._changed:
            while self._is_valid() and not unless():
                self._changed.wait(max(0.0, self._valid_until - self.clock()))

    def wait(self, seconds: float) -> bool:
        """Wait at most ``seconds``; whether it has ended."""
        deadline = self.clock() + seconds
        with self._changed:
            while self._is_valid():
                left = deadline - self.clock()
                if left <= 0:
                    return False
                self._changed.wait(min(left, max(0.0, self._valid_until - self.clock())))
            return True

    def _is_valid(self) -> bool:
        if not self._ended and self.clock() >= self._valid_until:
            self._ended = True
            self._changed.notify_all()
        return not self._ended


class LeaderElector:
    """One candidate. :meth:`acquire` and :meth:`keep` are for one thread at a time, :meth:`stop` for any.

    :param api: asks the server each time, not a cache.
    :param clock: in seconds; goes on while the machine sleeps, and never back.
    :param wall_clock: for what is shown to people in the Lease; nothing is decided by it.
    """

    def __init__(
        self,
        api: ApiClient,
        settings: LeaseSettings,
        *,
        clock: Callable[[], float] = seconds_since_boot,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._api = api
        self._settings = settings
        self._clock = clock
        self._wall_clock = wall_clock
        self._stopping = threading.Event()
        #: The last state of the lease, and when it was first seen so.
        self._observed: Lease | None = None
        self._observed_at = clock()
        #: Who leads as far as is known, "" for nobody; and why the lease cannot be had, "" where it is another's.
        self.leader = ""
        self.problem = ""

    def acquire(self) -> Term | None:
        """Wait until this process is the leader; None when told to stop before."""
        settings, failures = self._settings, 0
        logger.info("waiting to be the leader: lease=%s/%s as=%s", settings.namespace, settings.name, settings.identity)
        while not self._stopping.is_set():
            began = self._clock()
            try:
                mine = self._try()
            except ApiError as error:
                failures += 1
                self._note(f"the lease {settings.namespace}/{settings.name} cannot be had: {error}")
            else:
                failures = 0
                self._note("")
                if mine:
                    logger.info("leading: lease=%s/%s as=%s", settings.namespace, settings.name, settings.identity)
                    return Term(self._clock, began + settings.renew_deadline)
            pause = settings.retry_period * random.uniform(1, JITTER)  # noqa: S311 - spreads candidates, guards nothing
            self._stopping.wait(min(pause * 2 ** max(0, failures - 1), max(LONGEST_PAUSE, settings.retry_period)))
        return None

    def keep(self, term: Term) -> None:
        """Renew the lease until the term ends."""
        settings = self._settings
        while not term.wait(settings.retry_period):
            began = self._clock()
            try:
                mine = self._try()
            except ApiError as error:
                self._note(f"the lease {settings.namespace}/{settings.name} cannot be renewed: {error}")
                continue
            self._note("")
            if mine:
                term.extend(began + settings.renew_deadline)
            else:
                term.end(f"{self.leader or 'somebody else'} took the lease")

    def release(self) -> None:
        """Give the lease back, so that nobody has to wait for it; only once nothing is written any more."""
        lease = self._observed
        if lease is None or lease.spec.holder_identity != self._settings.identity:
            return
        lease.spec.holder_identity = ""
        lease.spec.lease_duration_seconds = 1
        lease.spec.renew_time = self._now()
        try:
            self._api.replace(lease)
        except ApiError as error:
            logger.warning("the lease was not given back, others have to wait for its end: %s", error)
        self._observed = None

    def stop(self) -> None:
        """Have :meth:`acquire` return."""
        self._stopping.set()

    # --- the lease ------------------------------------------------------------------------------------------------

    def _try(self) -> bool:
        """Take or renew the lease; whether it is held now. A lost race is no error.

        :raises ApiError: the API does not answer as it should.
        """
        from volumehost.api.objects import Lease

        known = self._observed
        if known is not None and known.spec.holder_identity == self._settings.identity:
            try:
                return self._write(known)
            except (ConflictError, ObjectNotFoundError):
                pass  # somebody has changed it: look
        try:
            lease = self._api.get(Lease, self._settings.name, self._settings.namespace)
        except ObjectNotFoundError:
            return self._create()
        self._observe(lease)
        holder = lease.spec.holder_identity or ""
        self.leader = holder
        if holder not in ("", self._settings.identity) and not self._is_abandoned(lease):
            return False
        try:
            return self._write(lease)
        except (ConflictError, ObjectNotFoundError):
            return False

    def _is_abandoned(self, lease: Lease) -> bool:
        """Whether no renewal was seen for as long as its holder said."""
        duration = lease.spec.lease_duration_seconds or self._settings.duration
        return self._clock() - self._observed_at >= duration

    def _create(self) -> bool:
        from volumehost.api.objects import Lease, ObjectMeta

        settings = self._settings
        lease = Lease(metadata=ObjectMeta(name=settings.name, namespace=settings.namespace))
        self._claim(lease, transitions=0)
        try:
            self._observe(self._api.create(lease))
        except AlreadyExistsError:
            return False
        self.leader = settings.identity
        return True

    def _write(self, lease: Lease) -> bool:
        """Write the lease as held; it must not have changed since it was seen."""
        lease = copy.deepcopy(lease)
        if lease.spec.holder_identity == self._settings.identity:
            lease.spec.renew_time = self._now()
            lease.spec.lease_duration_seconds = self._seconds()
        else:
            self._claim(lease, transitions=(lease.spec.lease_transitions or 0) + 1)
        self._observe(self._api.replace(lease))
        self.leader = self._settings.identity
        return True

    def _claim(self, lease: Lease, transitions: int) -> None:
        lease.spec.holder_identity = self._settings.identity
        lease.spec.lease_duration_seconds = self._seconds()
        lease.spec.acquire_time = lease.spec.renew_time = self._now()
        lease.spec.lease_transitions = transitions

    def _observe(self, lease: Lease) -> None:
        former = self._observed
        if former is None or former.metadata.resource_version != lease.metadata.resource_version:
            self._observed_at = self._clock()
        self._observed = lease

    def _seconds(self) -> int:
        return math.ceil(self._settings.duration)  # never sooner than the own term is over

    def _now(self) -> str:
        return datetime.fromtimestamp(self._wall_clock(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _note(self, problem: str) -> None:
        if problem and problem != self.problem:
            logger.warning(problem)
        elif self.problem and not problem:
            logger.info("the lease can be had again")
        self.problem = problem
