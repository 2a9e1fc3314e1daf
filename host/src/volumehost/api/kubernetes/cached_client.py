"""CachedClient: an ApiClient whose reads of watched kinds come from informers. Used by the daemons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from volumehost.api.client import ObjectList, WatchEvent
from volumehost.api.kubernetes.client import KubernetesClient
from volumehost.api.kubernetes.informer import Informer, Watched
from volumehost.api.objects import KubeObject, TokenRequest

T = TypeVar("T", bound=KubeObject)


class CachedClient:
    """An ApiClient and MultiKindWatcher: reads and watches of the watched kinds cost no request, all else goes through.

    Of a kind that is watched with selectors, ``list`` and ``watch`` give what the selectors select and nothing else;
    ``get`` of another object goes through. What was written with this client is read back at once. While the server
    cannot be reached, reads answer with what was known and :attr:`stale_since` says since when; before the first list
    is in they wait a little and then raise StoreError. While the server refuses everything, calls that would go
    through fail at once most of the time with its last error: all together ask it at most every few seconds.

    :param client: stays the caller's.
    :param watched: what to keep; one entry for a kind.
    """

    def __init__(self, client: KubernetesClient, watched: Sequence[Watched[Any]]) -> None:
        raise NotImplementedError

    def start(self) -> None:
        """Begin to list and watch; returns at once."""
        raise NotImplementedError

    def stop(self, timeout: float = 5.0) -> bool:
        """End the watches, own ones and those handed out; whether all threads ended within ``timeout`` seconds."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def informer(self, kind: type[T]) -> Informer[T]:
        """The informer of a watched kind, for handlers and listers.

        :raises KeyError: the kind is not watched.
        """
        raise NotImplementedError

    @property
    def has_synced(self) -> bool:
        """Whether every watched kind has been listed."""
        raise NotImplementedError

    def wait_for_sync(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for that; whether it is so."""
        raise NotImplementedError

    @property
    def stale_since(self) -> float | None:
        """Since when (``time.monotonic``) one of the kinds may be old; None while all are live."""
        raise NotImplementedError

    def stale_kinds(self) -> dict[type[KubeObject], str]:
        """The kinds that may be old, and why."""
        raise NotImplementedError

    def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """See ApiClient."""
        raise NotImplementedError

    def list(
        self, kind: type[T], namespace: str | None = None, labels: Mapping[str, str] | str | None = None
    ) -> ObjectList[T]:
        """See ApiClient."""
        raise NotImplementedError

    @overload
    def create(self, obj: T) -> T: ...
    @overload
    def create(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def create(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient."""
        raise NotImplementedError

    @overload
    def replace(self, obj: T) -> T: ...
    @overload
    def replace(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def replace(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient. One request for a watched kind."""
        raise NotImplementedError

    @overload
    def replace_status(self, obj: T) -> T: ...
    @overload
    def replace_status(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def replace_status(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient. One request for a watched kind."""
        raise NotImplementedError

    def patch(self, kind: type[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See ApiClient."""
        raise NotImplementedError

    def patch_status(self, kind: type[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See KubernetesClient."""
        raise NotImplementedError

    def delete(
        self,
        kind: type[T],
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> T:
        """See ApiClient."""
        raise NotImplementedError

    def watch(
        self,
        kind: type[T],
        namespace: str | None = None,
        resource_version: str = "",
        *,
        stop: Callable[[], bool] | None = None,
        timeout: float | None = None,
    ) -> Iterator[WatchEvent[T]]:
        """See ApiClient. From a version that is remembered it costs no request; from another one it goes through."""
        raise NotImplementedError

    def watch_kinds(
        self,
        kinds: Sequence[type[KubeObject]],
        *,
        stop: Callable[[], bool] | None = None,
        timeout: float | None = None,
    ) -> Iterator[WatchEvent[Any]]:
        """See MultiKindWatcher. Kinds that are not watched are watched from then on."""
        raise NotImplementedError

    def request_token(self, namespace: str, name: str, request: TokenRequest) -> TokenRequest:
        """See KubernetesClient."""
        raise NotImplementedError
