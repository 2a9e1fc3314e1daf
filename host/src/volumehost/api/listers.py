"""Listers and the informer factory over an ApiClient. A NodeHost hands them to plugins.

The embedded store answers a read in microseconds, so these ask it each time and are never stale. A backend that needs
a cache in between brings its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from volumehost.api.client import ApiClient
from volumehost.api.objects import CSIDriver, KubeObject
from volumehost.errors import ApiError

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=KubeObject)

_RETRY_SECONDS = 0.2


class StoreLister(Generic[T]):
    """Reads one kind of cluster-scoped object (``host_services.Lister``)."""

    def __init__(self, client: ApiClient, kind: type[T]) -> None:
        self._client = client
        self._kind = kind

    def get(self, name: str) -> T:
        """The object of that name.

        :raises ObjectNotFoundError: there is none.
        """
        return self._client.get(self._kind, name)

    def list(self, selector: Mapping[str, str] | None = None) -> Sequence[T]:
        """All whose labels match."""
        return self._client.list(self._kind, labels=selector).items


class StoreInformerFactory:
    """An informer factory without caches (``host_services.InformerFactory``): synced once the API can be read."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._stopped = threading.Event()

    def start(self) -> None:
        """Nothing to begin: listers read through."""

    def wait_for_cache_sync(self, timeout: float) -> bool:
        """Whether the API can be read; asked again until it can or ``timeout`` seconds are over."""
        attempts = max(1, int(timeout / _RETRY_SECONDS))
        for _ in range(attempts):
            if self._stopped.is_set():
                return False
            try:
                self._client.list(CSIDriver)
            except ApiError as error:
                logger.warning("the API cannot be read yet: %s", error)
            else:
                return True
            self._stopped.wait(min(timeout, _RETRY_SECONDS))
        return False

    def stop(self) -> None:
        """End a wait."""
        self._stopped.set()
