"""Informers: one kind of object kept up to date by a list and a watch. Used by CachedClient and by listers.

The ``kubernetes`` client has an informer too; it asks again without a pause when a watch fails, does not tell when it
has synced nor what an object was before, decodes into generated models, and may be stopped only without a limit.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from volumehost.api.kinds import kind_of
from volumehost.api.kubernetes.asking import many, selector_query
from volumehost.api.kubernetes.backoff import Backoff
from volumehost.api.kubernetes.bulk import without_collecting
from volumehost.api.kubernetes.change_log import ChangeLog
from volumehost.api.kubernetes.client import KubernetesClient
from volumehost.api.kubernetes.codec import read_object
from volumehost.api.kubernetes.gate import RequestGate
from volumehost.api.kubernetes.object_cache import Difference, ObjectCache
from volumehost.api.kubernetes.reflecting import list_bodies
from volumehost.api.kubernetes.scope import scope
from volumehost.api.kubernetes.watching import WatchStream
from volumehost.api.objects import KubeObject
from volumehost.errors import (
    ApiError,
    ForbiddenError,
    GoneError,
    KindNotServedError,
    ServerTimeoutError,
    StoreError,
    TooManyRequestsError,
)

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=KubeObject)

#: A stream that lived so long was a good one: the next may begin at once (seconds).
_GOOD_SECONDS = 5.0
#: The pause when a kind is not allowed or not there: somebody has to change that first (seconds).
_DENIED = (ForbiddenError, KindNotServedError)
_DENIED_FIRST, _DENIED_MOST = 5.0, 60.0


@dataclass(frozen=True, slots=True)
class Watched(Generic[T]):
    """What is kept up to date: a kind, in one namespace or all, and selectors in Kubernetes' syntax.

    ``Watched(Pod, fields="spec.nodeName=worker-1")``, ``Watched(Node, fields="metadata.name=worker-1")``.
    """

    kind: type[T]
    namespace: str | None = None
    labels: str = ""
    fields: str = ""


#: Called with (old, new): (None, new) for an object that has come, (old, None) for one that has gone.
Handler = Callable[[T | None, T | None], None]


class Informer(Generic[T]):
    """Keeps the watched objects; tells handlers what changes. Threads: one of its own, which calls the handlers.

    A lost watch goes on from where it was; after 410 Gone the objects are listed again, and what changed meanwhile is
    told as changes, deletions too (BR-75).

    :param gate: shared by informers of one server, so that they wait together while it refuses.
    :param log: shared likewise, where watches of several kinds are answered from it.
    """

    def __init__(
        self,
        client: KubernetesClient,
        watched: Watched[T],
        *,
        gate: RequestGate | None = None,
        log: ChangeLog | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.watched = watched
        self.log = log or ChangeLog()
        self.in_scope = scope(watched.namespace, watched.labels, watched.fields)
        self.kind = kind_of(watched.kind)
        self.cache = ObjectCache(self.kind, self.log, self.in_scope)
        self._client = client
        self._asked = many("watch", watched.kind, watched.namespace)
        self._query = selector_query(watched.labels, watched.fields)
        self._gate = gate or RequestGate()
        self._clock = clock
        self._backoff, self._denied = Backoff(client.watches.retry), Backoff(_DENIED_FIRST, _DENIED_MOST)
        self._handlers: list[Handler[T]] = []
        self._telling = threading.RLock()
        self._stopping = threading.Event()
        self._synced = threading.Event()
        self._thread: threading.Thread | None = None
        self._stream: WatchStream | None = None
        self._listed = self._opened = self._silent = self._expected = False
        #: Since when what is kept may be old, and what was raised last; together, so that what is old says why.
        self._old: tuple[float | None, ApiError | None] = clock(), None
        #: Whether something in between may hold back answers until they end, so that only short ones come at all.
        self._held_back = False
        #: When a watch that has just failed had heard something last.
        self._heard: float | None = None

    # --- for its users ------------------------------------------------------------------------------------------------

    def add_handler(self, handler: Handler[T]) -> None:
        """Have changes told: first (None, object) for each present one, on this thread, then each change.

        What a handler raises is logged.
        """
        with self._telling:
            with self.log.changed:
                bodies = self.cache.bodies(own=False)
            self._handlers.append(handler)
            for body in bodies:
                self._tell([handler], Difference(None, body))

    def start(self) -> None:
        """Begin; returns at once."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name=f"volumehost-informer-{self.kind.plural}", daemon=True
            )
            self._thread.start()

    def stop(self, timeout: float = 5.0) -> bool:
        """End the watch and its thread; waits at most ``timeout`` seconds; whether the thread has ended."""
        self.stop_soon()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(max(0.0, timeout))
        return not thread.is_alive()

    def stop_soon(self) -> None:
        """Have it end, without waiting for that."""
        self._stopping.set()
        stream = self._stream
        if stream is not None:
            stream.close()
        with self.log.changed:
            self.log.announce()

    @property
    def stopped(self) -> bool:
        """Whether it was told to end."""
        return self._stopping.is_set()

    @property
    def has_synced(self) -> bool:
        """Whether the first list is in and was told to the handlers."""
        return self._synced.is_set()

    def wait_for_sync(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for that; whether it is so."""
        return self._synced.wait(max(0.0, timeout))

    @property
    def stale_since(self) -> float | None:
        """Since when (``time.monotonic``) what is kept may be old; None while the watch is alive."""
        return self._old[0]

    @property
    def error(self) -> ApiError | None:
        """What was raised last, None while it is live."""
        return self._old[1]

    @property
    def problem(self) -> str:
        """Why it is not live, "" when it is."""
        since, error = self._old
        if since is None:
            return ""
        return str(error) if error is not None else "it has not begun yet"

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object as it is known, a copy of the caller's own; None when there is none."""
        with self.log.changed:
            body = self.cache.get((namespace, name))
        return None if body is None else self.read(body)

    def list(self, namespace: str = "") -> list[T]:
        """All, or those of a namespace, sorted by namespace and name."""
        with self.log.changed:
            bodies = self.cache.bodies(namespace)
        with without_collecting():
            return [self.read(body) for body in bodies]

    def read(self, body: bytes) -> T:
        """The object of one of the cache's bodies."""
        found: T = read_object(self.kind, body)
        return found

    # --- on the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (turn := self._wait_for_turn()) is not None:
            pause = 0.0
            try:
                self._opened = self._silent = self._expected = False
                if not self._listed:
                    self._list()
                pause = self._watch()
            except ApiError as error:
                if self.stopped or self._client.caller.closed:
                    break
                pause = self._failed(error)
                if self._opened and not isinstance(error, GoneError):
                    self._gate.doubt()
                denied = isinstance(error, _DENIED)
                if self._gate.refused(turn, error) and not self._opened and not denied:
                    pause = 0.0  # the gate makes it wait, and lets it go on as soon as another one succeeds
            except Exception as error:
                logger.exception("the informer of %s failed, it begins anew", self.kind.plural)
                self._listed = False
                pause = self._failed(StoreError(f"{type(error).__name__}: {error}", action=self._asked.action))
            self._stopping.wait(pause)

    def _wait_for_turn(self) -> int | None:
        """As the gate's; a watch that ended in good order and is not begun anew for now makes what is kept old."""
        refusal = self._gate.refusal
        if refusal is not None:
            since, error = self._old
            self._old = since if since is not None else self._clock(), error or refusal
        return self._gate.wait_for_turn(self._stopping)

    def _list(self) -> None:
        began = self._clock()
        with self.log.changed:
            mark = self.cache.begin_list()
        bodies, version = list_bodies(
            self._client.caller, many("list", self.watched.kind, self.watched.namespace), self._query
        )
        self._gate.answered()
        with self._telling:
            with self.log.changed:
                differences = self.cache.replace(bodies, version, mark)
                self.log.announce()
            self._listed = True
            for difference in differences:
                self._tell(self._handlers, difference)
        since, error = self._old
        if since is not None:
            self._old = began, error
        self._synced.set()

    def _watch(self) -> float:
        """Follow one stream to its end; the pause that is due then."""
        stream = self._stream = WatchStream(self._client.caller, self._client.watches, self._asked, self._clock)
        if self.stopped:
            stream.close()
        began, heard = self._clock(), False
        first_byte = self._client.watches.first_byte

        def opened() -> None:
            self._held_back = self._held_back and self._clock() - began > first_byte / 4
            self._went_live()

        seconds = first_byte / 2 if self._held_back else None
        try:
            for event in stream.events(self.cache.version, self._query, seconds=seconds, opened=opened):
                heard = True
                if event.type not in {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}:
                    continue
                with self._telling:
                    with self.log.changed:
                        difference = self.cache.apply(event)
                        self.log.announce()
                    if difference is not None:
                        self._tell(self._handlers, difference)
        except ApiError as error:
            self._heard, self._silent = stream.last_heard, stream.silent
            self._held_back = self._held_back or (isinstance(error, ServerTimeoutError) and not stream.opened)
            self._expected = stream.opened and not stream.reported and self._clock() - began >= _GOOD_SECONDS
            if stream.reported and not isinstance(error, TooManyRequestsError):
                # It may fail at this place again and again, as with an object that the server cannot read.
                self._listed = False
            raise
        finally:
            self._stream = None
            self._opened = stream.opened
            if stream.opened:
                self._gate.went_dead()
            if self._clock() - began >= _GOOD_SECONDS:
                self._backoff.reset()
        if self._clock() - began >= _GOOD_SECONDS:
            return 0.0
        # Servers end streams after minutes: one that ends at once is not well, though it says so politely.
        return self._backoff.next() if not heard else random.uniform(0.1, 0.5)  # noqa: S311 - spreads load

    def _went_live(self) -> None:
        self._gate.went_live()
        self._old = None, None
        self._denied.reset()

    def _failed(self, error: ApiError) -> float:
        """Note the failure; the pause that is due: none after a silence, which was long enough."""
        since, former = self._old
        if isinstance(error, GoneError):
            self._listed = False
            logger.info("the watch of %s fell behind: they are listed anew", self.kind.plural)
        elif self._silent or self._expected:
            # What stands in between ends connections after minutes, too. What matters is whether the next one begins.
            logger.debug("the watch of %s is begun anew: %s", self.kind.plural, error)
        else:
            log = logger.debug if str(error) == str(former) else logger.warning
            log("%s are not kept up to date for now: %s", self.kind.plural, error)
        if since is None:
            since = self._heard if self._heard is not None else self._clock()
        self._old, self._heard = (since, error), None
        if isinstance(error, _DENIED):
            return self._denied.next()
        return 0.0 if self._silent else self._backoff.next()

    def _tell(self, handlers: Sequence[Handler[T]], difference: Difference) -> None:
        for handler in handlers:
            try:
                # Each gets objects of its own; one that cannot be read keeps nobody from hearing of the others.
                handler(*(None if body is None else self.read(body) for body in (difference.old, difference.new)))
            except Exception:
                logger.exception("a handler of %s failed", self.kind.plural)
