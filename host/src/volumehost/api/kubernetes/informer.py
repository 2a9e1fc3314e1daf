"""Informers: one kind of object kept up to date by a list and a watch. Used by CachedClient and by listers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from volumehost.api.kubernetes.client import KubernetesClient
from volumehost.api.objects import KubeObject

T = TypeVar("T", bound=KubeObject)


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
    """

    def __init__(self, client: KubernetesClient, watched: Watched[T]) -> None:
        raise NotImplementedError

    def add_handler(self, handler: Handler[T]) -> None:
        """Have changes told: first (None, object) for each present one, then each change. Errors are logged."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin; returns at once."""
        raise NotImplementedError

    def stop(self, timeout: float = 5.0) -> bool:
        """End the watch and its thread; waits at most ``timeout`` seconds; whether the thread has ended."""
        raise NotImplementedError

    @property
    def has_synced(self) -> bool:
        """Whether the first list is in and was told to the handlers."""
        raise NotImplementedError

    def wait_for_sync(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for that; whether it is so."""
        raise NotImplementedError

    @property
    def stale_since(self) -> float | None:
        """Since when (``time.monotonic``) what is kept may be old; None while the watch is alive."""
        raise NotImplementedError

    @property
    def problem(self) -> str:
        """Why it is not live, "" when it is."""
        raise NotImplementedError

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object as it is known, a copy of the caller's own; None when there is none."""
        raise NotImplementedError

    def list(self) -> list[T]:
        """All, sorted by namespace and name."""
        raise NotImplementedError
