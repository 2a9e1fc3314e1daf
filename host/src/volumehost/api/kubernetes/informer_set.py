"""The informers of one client: begun, waited for and ended together. Used by ``cached_client``."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from volumehost.api.kubernetes.change_log import ChangeLog
from volumehost.api.kubernetes.client import KubernetesClient
from volumehost.api.kubernetes.gate import RequestGate
from volumehost.api.kubernetes.informer import Informer, Watched
from volumehost.api.objects import KubeObject
from volumehost.errors import StoreError

T = TypeVar("T", bound=KubeObject)

_LOOK_SECONDS = 0.1


class InformerSet:
    """One informer for each kind, all with one log and one back-off. Safe for threads."""

    def __init__(self, client: KubernetesClient, watched: Sequence[Watched[Any]], gate: RequestGate) -> None:
        self.log = ChangeLog()
        self._client = client
        self._gate = gate
        self._lock = threading.Lock()
        self._informers: dict[type[KubeObject], Informer[Any]] = {}
        self._started = False
        for one in watched:
            self._add(one)

    @property
    def kinds(self) -> list[type[KubeObject]]:
        """The kinds that are watched."""
        return list(self._informers)

    def find(self, kind: type[KubeObject]) -> Informer[Any] | None:
        """The informer of a kind, None when it is not watched."""
        return self._informers.get(kind)

    def covering(self, kind: type[KubeObject], namespace: str | None) -> Informer[Any] | None:
        """The informer that has all of a namespace, or all there is."""
        informer = self._informers.get(kind)
        if informer is None:
            return None
        watched = informer.watched.namespace
        return informer if not watched or not namespace or watched == namespace else None

    def ensure(self, kind: type[KubeObject]) -> Informer[Any]:
        """The informer of the kind, a new one when there is none yet."""
        with self._lock:
            informer = self._informers.get(kind) or self._add(Watched(kind))
            started = self._started
        if started:
            informer.start()
        return informer

    def start(self) -> None:
        """Begin to list and watch; returns at once."""
        with self._lock:
            self._started = True
            informers = list(self._informers.values())
        for informer in informers:
            informer.start()

    def stop(self, timeout: float) -> bool:
        """End all; whether all threads ended within ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        with self._lock:
            informers = list(self._informers.values())
        for informer in informers:
            informer.stop_soon()
        ended = [informer.stop(deadline - time.monotonic()) for informer in informers]
        return all(ended)

    @property
    def has_synced(self) -> bool:
        """Whether every watched kind has been listed."""
        return all(informer.has_synced for informer in list(self._informers.values()))

    def wait_for_sync(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for that; whether it is so."""
        deadline = time.monotonic() + timeout
        return all(informer.wait_for_sync(deadline - time.monotonic()) for informer in list(self._informers.values()))

    @property
    def stale_since(self) -> float | None:
        """Since when one of the kinds may be old; None while all are live."""
        since = [informer.stale_since for informer in list(self._informers.values())]
        return min((one for one in since if one is not None), default=None)

    def stale_kinds(self) -> dict[type[KubeObject], str]:
        """The kinds that may be old, and why."""
        informers = list(self._informers.items())
        return {kind: problem for kind, informer in informers if (problem := informer.problem)}

    def _add(self, watched: Watched[Any]) -> Informer[Any]:
        informer = Informer(self._client, watched, gate=self._gate, log=self.log)
        self._informers[watched.kind] = informer
        return informer


def await_sync(informer: Informer[Any], stop: Callable[[], bool] | None, deadline: float | None) -> bool:
    """Wait for the first list; False when time is over or it is not wanted any more.

    :raises StoreError: it cannot be read; the reason.
    """
    while not informer.wait_for_sync(_LOOK_SECONDS):
        error = informer.error
        if isinstance(error, StoreError):
            raise copy.copy(error)
        if informer.stopped or (stop is not None and stop()):
            return False
        if deadline is not None and time.monotonic() >= deadline:
            return False
    return True
