"""Pods from several sources, told to one volume manager. Nothing is unwanted before all sources have told theirs.

Each pod is worked on by a worker of its own, so that a plugin or an API that does not answer for one holds up no other.
"""

from __future__ import annotations

import enum
import logging
import random
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from volumehost.errors import VolumeHostError
from volumehost.node.execution.lanes import lane_of_pod

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.node.manager import VolumeManager

logger = logging.getLogger(__name__)

#: Seconds until what failed for a pod is tried again: the first time, and at most.
RETRY_SECONDS: Final = 0.25
RETRY_MAXIMUM_SECONDS: Final = 30.0

#: How long the first look at each pod is waited for before what no pod wants is unmounted, in seconds (POP-01).
FIRST_LOOK_SECONDS: Final = 10.0


class PodSource(Protocol):
    """Where pods come from. Tells a :class:`PodSources` of them, from a thread of its own."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    def start(self, sources: PodSources) -> None:
        """Begin to tell; returns at once."""
        ...

    def stop(self) -> None:
        """Tell nothing any more; returns at once."""
        ...

    def look_again(self) -> None:
        """Look at everything anew, soon."""
        ...

    def prepare(self, pod: Pod) -> Pod | None:
        """Called on a worker before the pod is mounted; returns it as it is now, None when it is not wanted any more.

        :raises VolumeHostError: it cannot be mounted now; it is tried again.
        """
        ...

    def ended(self, pod: Pod) -> None:
        """Called on a worker after the end of a pod was recorded; must not raise."""
        ...

    def problems(self) -> list[str]:
        """What keeps it from telling all its pods, one line each; empty when nothing does."""
        ...

    def problem_of(self, pod: Pod) -> str:
        """What keeps it from telling what has become of the pod, "" when nothing does."""
        ...

    def keeps(self, pod: Pod) -> str:
        """Why the pod does not end because somebody asks for it, and what would end it; "" when it does."""
        ...


class Wish(enum.Enum):
    """What a source wants for a pod."""

    MOUNT = "mount"
    #: What is mounted stays; nothing is begun.
    KEEP = "keep"
    END = "end"


@dataclass(slots=True)
class _Entry:
    """One pod. ``dirty``: its wish has not been acted upon; ``busy``: a worker is at it; ``turn`` counts the wishes."""

    source: PodSource
    pod: Pod
    wish: Wish
    dirty: bool = True
    busy: bool = False
    turn: int = 0
    retries: int = 0
    problem: str = ""


class PodSources:
    """Hands on to the manager what the sources tell. Safe for threads."""

    def __init__(self, manager: VolumeManager, sources: Sequence[PodSource]) -> None:
        self._manager = manager
        self._sources = sources
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._untold = {source.name for source in sources}
        self._first: set[str] = set()
        self._complete = self._stopped = False

    def start(self) -> None:
        """Have the sources tell from now on."""
        status = self._manager.parts.status
        status.note_of, status.notes = self.note_of, lambda: list(self.problems())
        self._manager.ending.kept_by = self.kept_by
        for source in self._sources:
            source.start(self)

    def stop(self) -> None:
        """Have them tell nothing any more; what they still tell is passed over."""
        self._stopped = True
        for source in self._sources:
            source.stop()

    def look_again(self) -> None:
        """Have all sources look at everything anew."""
        for source in self._sources:
            source.look_again()

    # --- for the sources --------------------------------------------------------------------------------------------

    def want(self, source: PodSource, pod: Pod) -> None:
        """The pod's volumes are wanted here, as it is now."""
        self._wish(source, pod, Wish.MOUNT)

    def keep(self, source: PodSource, pod: Pod) -> None:
        """The pod is known: what is mounted for it stays."""
        self._wish(source, pod, Wish.KEEP)

    def end(self, source: PodSource, pod: Pod) -> None:
        """The pod's workload has ended, by a positive word (BR-51)."""
        self._wish(source, pod, Wish.END)

    def told(self, source: PodSource) -> None:
        """The source has told all pods that it has."""
        with self._lock:
            if source.name not in self._untold:
                return
            self._untold.discard(source.name)
            all_told = not self._untold
            if all_told:
                self._first = {uid for uid, entry in self._entries.items() if entry.dirty or entry.busy}
        if all_told:
            logger.info("all pods are known: %d", len(self._entries))
            self._manager.parts.later(FIRST_LOOK_SECONDS, self._be_complete)
            self._looked_at("")

    # --- questions --------------------------------------------------------------------------------------------------

    @property
    def complete(self) -> bool:
        """Whether all sources have told their pods, and each was looked at."""
        return self._complete

    def problems(self) -> Iterator[str]:
        """Why not, one line for each source."""
        with self._lock:
            untold = set(self._untold)
        for source in self._sources:
            problems = source.problems()
            for problem in problems:
                yield f"{source.name}: {problem}"
            if source.name in untold and not problems:
                yield f"{source.name} has not told its pods yet"

    def note_of(self, pod_uid: str) -> str:
        """Why the pod's wish could not be acted upon, or what its source cannot tell of it; "" for neither."""
        entry = self._entries.get(pod_uid)
        return "" if entry is None else entry.problem or entry.source.problem_of(entry.pod)

    def kept_by(self, pod_uid: str) -> str:
        """Why the pod does not end because somebody asks for it; "" when it does."""
        entry = self._entries.get(pod_uid)
        return "" if entry is None or entry.wish is Wish.END else entry.source.keeps(entry.pod)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _wish(self, source: PodSource, pod: Pod, wish: Wish) -> None:
        uid = pod.metadata.uid
        with self._lock:
            if self._stopped:
                return
            entry = self._entries.get(uid)
            if entry is None:
                entry = self._entries[uid] = _Entry(source, pod, wish)
            else:
                entry.source, entry.pod, entry.wish, entry.dirty = source, pod, wish, True
            entry.turn, entry.retries = entry.turn + 1, 0
            turn = entry.turn
        self._manager.parts.later(0, lambda: self._work(uid, entry, turn), lane=lane_of_pod(pod))

    def _work(self, uid: str, entry: _Entry, turn: int) -> None:
        """Act upon the wish of one pod, unless another has come since, until it is done or has to be tried again."""
        with self._lock:
            if entry.busy or entry.turn != turn:
                return
            entry.busy = True
        while True:
            with self._lock:
                if self._stopped or not entry.dirty:
                    entry.busy = False
                    break
                entry.dirty = False
                source, pod, wish = entry.source, entry.pod, entry.wish
            try:
                self._act(source, pod, wish)
            except VolumeHostError as error:
                self._failed(uid, entry, error)
                break
            except Exception as error:
                logger.exception("pod %s/%s cannot be worked on", pod.metadata.namespace, pod.metadata.name)
                self._failed(uid, entry, error)
                break
            entry.problem, entry.retries = "", 0
            with self._lock:
                if wish is Wish.END and not entry.dirty:
                    self._entries.pop(uid, None)
        self._looked_at(uid)

    def _act(self, source: PodSource, pod: Pod, wish: Wish) -> None:
        metadata = pod.metadata
        if wish is Wish.END:
            self._manager.end_pod(metadata.uid, metadata.namespace, metadata.name)
            source.ended(pod)
        elif wish is Wish.MOUNT:
            prepared = source.prepare(pod)
            if prepared is not None:
                self._manager.sync_pod(prepared, at_once=False)

    def _failed(self, uid: str, entry: _Entry, error: Exception) -> None:
        """Try again later, or now when there is another wish."""
        metadata, text = entry.pod.metadata, str(error)
        log = logger.debug if text == entry.problem else logger.warning
        with self._lock:
            delay = 0.0 if entry.dirty else min(RETRY_SECONDS * 2 ** min(entry.retries, 16), RETRY_MAXIMUM_SECONDS)
            entry.problem, entry.dirty, entry.busy = text, True, False
            entry.retries += 1
            turn = entry.turn
        if self._stopped:
            return
        log("pod %s/%s waits, tried again in %.1f s: %s", metadata.namespace, metadata.name, delay, text)
        delay *= random.uniform(1.0, 1.2)  # noqa: S311 - spreads retries, guards nothing
        self._manager.parts.later(delay, lambda: self._work(uid, entry, turn), lane=lane_of_pod(entry.pod))

    def _looked_at(self, uid: str) -> None:
        """A pod was looked at: when it was the last one of those told first, what belongs to none may go."""
        with self._lock:
            self._first.discard(uid)
            due = not self._untold and not self._first
        if due:
            self._be_complete()

    def _be_complete(self) -> None:
        with self._lock:
            if self._complete or self._stopped:
                return
            self._complete = True
            known = [entry.pod for entry in self._entries.values() if entry.wish is not Wish.END]
        self._manager.set_known_pods(known)
