"""From changes of the API to keys: one thread watches every kind that a controller cares for."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from volumehost.api.client import ApiClient, MultiKindWatcher, WatchEvent
from volumehost.control.machinery.controller import Controller, Key
from volumehost.control.machinery.queue import Item, WorkQueue
from volumehost.errors import ApiError, GoneError, KindNotServedError

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject

logger = logging.getLogger(__name__)

#: How often everything is looked at, to heal what no event told of, in seconds.
RESYNC_SECONDS = 600.0
#: How long after a watch failed it is tried again, in seconds: the first time, and at most; chance adds up to a half.
RETRY_SECONDS = 1.0
RETRY_MAXIMUM_SECONDS = 30.0

#: Annotations and finalizers with this prefix are the controllers' own notes: a change of them is no news to anybody.
_OWN_PREFIX = "volumehost.io/"

#: What tells changes of an object's status from others: uid, generation, whether it is being deleted, the rest.
_Fingerprint = tuple[str, int, bool, int]
#: The fingerprint of each object when it was last seen.
_Memory = dict[tuple[type["KubeObject"], Key], _Fingerprint]
#: Keys to be looked at: whether a backoff is cut short, whether it begins anew, and the version of what changed.
_Found = list[tuple[Item, bool, bool, str]]


class ChangeFeed:
    """Feeds a queue, and remembers of each object only enough to tell what kind of change it was."""

    def __init__(self, api: ApiClient, controllers: Sequence[Controller], queue: WorkQueue) -> None:
        self._api = api
        self._queue = queue
        self._routes: dict[type[KubeObject], list[tuple[Controller, Callable[[Any], Any]]]] = {}
        for controller in controllers:
            for kind, affects in controller.watches().items():
                self._routes.setdefault(kind, []).append((controller, affects))
        self._stop = threading.Event()
        #: Whether each kind is watched for itself, so that trouble with one does not hold up the others.
        self._apart = not isinstance(api, MultiKindWatcher) or getattr(api, "watches_apart", False)
        self._position = -1
        #: Why each kind cannot be watched now.
        self._problems: dict[type[KubeObject], ApiError] = {}
        #: Called after each change was handed on.
        self.changed: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Begin to watch, in a thread (one for each kind where the API cannot watch several at once)."""
        groups = [[kind] for kind in self._routes] if self._apart else [list(self._routes)]
        for kinds in groups:
            threading.Thread(target=self._run, args=(kinds,), name="volumehost-control-watch", daemon=True).start()

    def stop(self) -> None:
        """Watch no more; the threads end within a moment."""
        self._stop.set()

    def problems(self) -> dict[type[KubeObject], ApiError]:
        """The kinds that cannot be watched now, and why."""
        return dict(self._problems)

    def caught_up(self) -> bool:
        """Whether everything written before this call was handed on; True where that cannot be known."""
        if self._apart:
            return self._position >= 0
        from volumehost.api.objects import CSIDriver

        return self._position >= int(self._api.list(CSIDriver).resource_version)

    # --- on the thread ----------------------------------------------------------------------------------------------

    def _run(self, kinds: Sequence[type[KubeObject]]) -> None:
        memory: _Memory = {}
        delay = RETRY_SECONDS
        while not self._stop.is_set():
            before, memory = memory, {}
            # Nothing is begun before all that there is was seen: what is only told late would look like a change.
            present: _Found | None = []
            try:
                for event in self._events(kinds):
                    delay = RETRY_SECONDS
                    if self._problems:
                        self._well_again(kinds)
                    if event.type != "ADDED" and present is not None:
                        self._begin_with(present)
                        present = None
                    self._hand_on(event, memory, before, present)
                    if event.type == "BOOKMARK":
                        before = {}
                    if self._stop.is_set():
                        return
            except GoneError:
                logger.info("the watch fell behind: everything is looked at anew")
            except ApiError as error:
                if self._stop.is_set():
                    return
                self._note(kinds, error)
                self._stop.wait(delay * random.uniform(1, 1.5))  # noqa: S311 - spreads retries, guards nothing
                delay = min(2 * delay, RETRY_MAXIMUM_SECONDS)
            except Exception:
                # A controller's ``affects`` raised: without the watch nothing would ever be done again.
                logger.exception("a change could not be handed on: everything is looked at anew")
                self._stop.wait(RETRY_SECONDS)

    def _note(self, kinds: Sequence[type[KubeObject]], error: ApiError) -> None:
        """What has been said is not said again; and that the API has no such kind is no trouble."""
        known = self._problems.get(kinds[0])
        if known is None or str(known) != str(error):
            log = logger.info if isinstance(error, KindNotServedError) else logger.warning
            log("watching failed, it is tried again: %s", error)
        self._problems.update(dict.fromkeys(kinds, error))

    def _well_again(self, kinds: Sequence[type[KubeObject]]) -> None:
        for kind in kinds:
            if self._problems.pop(kind, None) is not None:
                logger.info("watching %s goes on", kind.__name__)

    def _events(self, kinds: Sequence[type[KubeObject]]) -> Iterator[WatchEvent[Any]]:
        """The present state, then changes, until everything is due to be looked at again."""
        if isinstance(self._api, MultiKindWatcher):
            return self._api.watch_kinds(kinds, stop=self._stop.is_set, timeout=RESYNC_SECONDS)
        return self._listed_and_watched(kinds[0])

    def _listed_and_watched(self, kind: type[KubeObject]) -> Iterator[WatchEvent[Any]]:
        """The same of an API that does not tell where the present state ends: it is listed first."""
        listed = self._api.list(kind)
        yield from (WatchEvent("ADDED", each) for each in listed.items)
        mark = kind()
        mark.metadata.resource_version = listed.resource_version
        yield WatchEvent("BOOKMARK", mark)
        yield from self._api.watch(
            kind, resource_version=listed.resource_version, stop=self._stop.is_set, timeout=RESYNC_SECONDS
        )

    def _begin_with(self, present: _Found) -> None:
        for item, urgent, fresh, version in present:
            self._queue.add(item, urgent=urgent, fresh=fresh, version=version)

    def _hand_on(self, event: WatchEvent[Any], memory: _Memory, before: _Memory, present: _Found | None) -> None:
        version = event.object.metadata.resource_version
        if event.type != "BOOKMARK":
            found = self._affect(event, memory, before)
            if present is not None:
                present += found
            else:
                self._begin_with(found)
        if version.isdigit() and (event.type == "BOOKMARK" or self._position >= 0):
            self._position = max(self._position, int(version))
        self.changed()

    def _affect(self, event: WatchEvent[Any], memory: _Memory, before: _Memory) -> _Found:
        """The keys affected. ``before`` is what was remembered when everything began to be told anew."""
        obj = event.object
        kind, own = type(obj), Key.of(obj)
        now = _fingerprint(obj)
        last = memory.get((kind, own)) or before.get((kind, own))
        if event.type == "DELETED":
            memory.pop((kind, own), None)
        else:
            memory[kind, own] = now
        found: _Found = []
        for controller, affects in self._routes.get(kind, ()):
            for key in affects(obj):
                primary = kind is controller.kind and key == own
                urgent = now != last or event.type == "DELETED" or (not primary and event.type == "MODIFIED")
                fresh = primary and (last is None or now[:3] != last[:3])
                found.append((Item(controller, key), urgent, fresh, obj.metadata.resource_version))
        return found


def _fingerprint(obj: KubeObject) -> _Fingerprint:
    metadata = obj.metadata
    annotations = frozenset(item for item in metadata.annotations.items() if not item[0].startswith(_OWN_PREFIX))
    finalizers = tuple(name for name in metadata.finalizers if not name.startswith(_OWN_PREFIX))
    rest = (frozenset(metadata.labels.items()), annotations, finalizers)
    return metadata.uid, metadata.generation, metadata.deletion_timestamp is not None, hash(rest)
