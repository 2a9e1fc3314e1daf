"""Pods from several sources, told to one volume manager. Nothing is unwanted before all sources have told theirs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from volumehost.errors import VolumeHostError

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.node.manager import VolumeManager

logger = logging.getLogger(__name__)


class PodSource(Protocol):
    """Where pods come from. Tells a :class:`PodSources` of them, from a thread of its own."""

    name: str

    def start(self, sources: PodSources) -> None:
        """Begin to tell."""
        ...

    def stop(self) -> None:
        """Tell nothing any more; returns at once."""
        ...


class PodSources:
    """Hands on to the manager what the sources tell. Safe for threads."""

    def __init__(self, manager: VolumeManager, sources: Sequence[PodSource]) -> None:
        self._manager = manager
        self._sources = sources
        self._lock = threading.Lock()
        self._known: dict[str, Pod] = {}
        self._stopped = False
        self._untold = {source.name for source in sources}

    def start(self) -> None:
        """Have the sources tell from now on."""
        for source in self._sources:
            source.start(self)

    def stop(self) -> None:
        """Have them tell nothing any more; what they still tell is passed over."""
        self._stopped = True
        for source in self._sources:
            source.stop()

    @property
    def untold(self) -> list[str]:
        """The sources that have not told all their pods yet."""
        with self._lock:
            return sorted(self._untold)

    # --- for the sources --------------------------------------------------------------------------------------------

    def want(self, pod: Pod) -> None:
        """The pod's volumes are wanted here."""
        self.keep(pod)
        if self._stopped:
            return
        try:
            self._manager.sync_pod(pod)
        except VolumeHostError as error:
            logger.warning("pod %s/%s cannot be mounted now: %s", pod.metadata.namespace, pod.metadata.name, error)

    def keep(self, pod: Pod) -> None:
        """The pod is known: what is mounted for it stays."""
        with self._lock:
            self._known[pod.metadata.uid] = pod

    def end(self, pod: Pod) -> None:
        """The pod's workload has ended, by a positive word (BR-51)."""
        with self._lock:
            self._known.pop(pod.metadata.uid, None)
        if not self._stopped:
            self._manager.end_pod(pod.metadata.uid, pod.metadata.namespace, pod.metadata.name)

    def told(self, source: PodSource) -> None:
        """The source has told all pods that it has."""
        with self._lock:
            if source.name not in self._untold:
                return
            self._untold.discard(source.name)
            if self._untold:
                return
            known = list(self._known.values())
        if not self._stopped:
            self._manager.set_known_pods(known)
