"""Listers and an informer factory over informers (``host_services.Lister``, ``host_services.InformerFactory``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from volumehost.api.kubernetes.cached_client import CachedClient
from volumehost.api.kubernetes.informer import Informer
from volumehost.api.objects import KubeObject
from volumehost.api.selectors import parse_selector
from volumehost.errors import ObjectNotFoundError

T = TypeVar("T", bound=KubeObject)


class CachedLister(Generic[T]):
    """Reads one kind of cluster-scoped object from an informer."""

    def __init__(self, informer: Informer[T]) -> None:
        self._informer = informer

    def get(self, name: str) -> T:
        """:raises ObjectNotFoundError: there is none of that name."""
        found = self._informer.get(name)
        if found is None:
            subject = self._informer.kind.describe(name)
            raise ObjectNotFoundError(f"there is no {subject}", subject=subject)
        return found

    def list(self, selector: Mapping[str, str] | None = None) -> Sequence[T]:
        """All whose labels match."""
        wanted = parse_selector(selector)
        return [obj for obj in self._informer.list() if wanted.matches(obj.metadata.labels)]


class CachedInformerFactory:
    """Starts and stops the informers of a CachedClient."""

    def __init__(self, client: CachedClient) -> None:
        self._client = client

    def start(self) -> None:
        """Begin to watch."""
        self._client.start()

    def wait_for_cache_sync(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds until every kind has been listed; whether it has."""
        return self._client.wait_for_sync(timeout)

    def stop(self) -> None:
        """End every watch."""
        self._client.stop()
