"""CachedClient: an ApiClient whose reads of watched kinds come from informers. Used by the daemons."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar, cast, overload

from volumehost.api.client import ObjectList, WatchEvent
from volumehost.api.convert import to_json
from volumehost.api.defaults import DEFAULT_NAMESPACE
from volumehost.api.kinds import kind_of
from volumehost.api.kubernetes.bulk import without_collecting
from volumehost.api.kubernetes.cached_watch import CachedWatch
from volumehost.api.kubernetes.change_log import is_later
from volumehost.api.kubernetes.client import KubernetesClient
from volumehost.api.kubernetes.codec import read_heading
from volumehost.api.kubernetes.gate import RequestGate
from volumehost.api.kubernetes.informer import Informer, Watched
from volumehost.api.kubernetes.informer_set import InformerSet, await_sync
from volumehost.api.kubernetes.scope import selected_name
from volumehost.api.objects import KubeObject, ObjectMeta, TokenRequest
from volumehost.api.selectors import parse_selector
from volumehost.errors import ApiError, ConflictError, ObjectNotFoundError, StoreError

T = TypeVar("T", bound=KubeObject)
_R = TypeVar("_R")

#: How long a read waits for the first list of its kind, in seconds.
SYNC_PATIENCE_SECONDS = 5.0
#: How long a call waits when the server asks for patience, in seconds.
CALL_PATIENCE_SECONDS = 2.0


class CachedClient:
    """An ApiClient and MultiKindWatcher: reads and watches of the watched kinds cost no request, all else goes through.

    Of a kind that is watched with selectors, ``list`` and ``watch`` give what the selectors select and nothing else;
    ``get`` of another object goes through. What was written with this client is read back at once. While the server
    cannot be reached, reads answer with what was known and :attr:`stale_since` says since when; before the first list
    is in they wait a little and then raise StoreError. While the server refuses everything, calls that would go
    through fail at once most of the time with its last error: all together ask it at most every few seconds.

    :param client: stays the caller's.
    :param watched: what to keep; one entry for a kind.
    :param patience: seconds that a read waits for the first list of its kind.
    """

    def __init__(
        self,
        client: KubernetesClient,
        watched: Sequence[Watched[Any]],
        *,
        patience: float = SYNC_PATIENCE_SECONDS,
        gate: RequestGate | None = None,
    ) -> None:
        # Beyond this the gate has everybody wait together.
        self._client = client.with_patience(CALL_PATIENCE_SECONDS)
        self._patience = patience
        self._gate = gate or RequestGate()
        self._informers = InformerSet(self._client, watched, self._gate)
        self._log = self._informers.log

    def __repr__(self) -> str:
        return f"<CachedClient {self._client.server}: {', '.join(kind.__name__ for kind in self._informers.kinds)}>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def server(self) -> str:
        """Where the server is, for messages."""
        return self._client.server

    # --- the informers ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to list and watch; returns at once."""
        self._informers.start()

    def stop(self, timeout: float = 5.0) -> bool:
        """End the watches, own ones and those handed out; whether all threads ended within ``timeout`` seconds."""
        return self._informers.stop(timeout)

    def informer(self, kind: type[T]) -> Informer[T]:
        """The informer of a watched kind, for handlers and listers.

        :raises KeyError: the kind is not watched.
        """
        informer = self._informers.find(kind)
        if informer is None:
            raise KeyError(kind)
        return informer

    @property
    def has_synced(self) -> bool:
        """Whether every watched kind has been listed."""
        return self._informers.has_synced

    def wait_for_sync(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for that; whether it is so."""
        return self._informers.wait_for_sync(timeout)

    @property
    def stale_since(self) -> float | None:
        """Since when (``time.monotonic``) one of the kinds may be old; None while all are live."""
        return self._informers.stale_since

    def stale_kinds(self) -> dict[type[KubeObject], str]:
        """The kinds that may be old, and why."""
        return self._informers.stale_kinds()

    # --- reading ------------------------------------------------------------------------------------------------------

    def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """See ApiClient."""
        informer = self._informers.find(kind)
        if informer is None:
            return self._through(lambda: self._client.get(kind, name, namespace))
        self._wait_until_synced(informer)
        known = kind_of(kind)
        namespace = (namespace or DEFAULT_NAMESPACE) if known.namespaced else ""
        found: T | None = informer.get(name, namespace)
        if found is not None:
            return found
        watched = informer.watched
        everything = not watched.labels and (
            not watched.fields or selected_name(watched.labels, watched.fields) == name
        )
        if not everything or watched.namespace not in {None, "", namespace}:
            return self._through(lambda: self._client.get(kind, name, namespace))
        subject = known.describe(name, namespace)
        raise ObjectNotFoundError(f"there is no {subject}", subject=subject)

    def list(
        self, kind: type[T], namespace: str | None = None, labels: Mapping[str, str] | str | None = None
    ) -> ObjectList[T]:
        """See ApiClient."""
        selector = parse_selector(labels)
        informer = self._informers.covering(kind, namespace)
        if informer is None:
            return self._through(lambda: self._client.list(kind, namespace, labels))
        self._wait_until_synced(informer)
        with self._log.changed:
            version = informer.cache.version
            bodies = informer.cache.bodies((namespace or "") if informer.kind.namespaced else "")
        with without_collecting():
            items = (informer.read(body) for body in bodies)
            return ObjectList([obj for obj in items if selector.matches(obj.metadata.labels)], version)

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
        informer = self._informers.covering(kind, namespace)
        if informer is None:
            return self._client.watch(kind, namespace, resource_version, stop=stop, timeout=timeout)
        return self._watch(informer, namespace, resource_version, stop, timeout)

    def watch_kinds(
        self,
        kinds: Sequence[type[KubeObject]],
        *,
        stop: Callable[[], bool] | None = None,
        timeout: float | None = None,
    ) -> Iterator[WatchEvent[Any]]:
        """See MultiKindWatcher. Kinds that are not watched are watched from then on."""
        deadline = None if timeout is None else time.monotonic() + timeout
        informers = [self._informers.ensure(kind) for kind in kinds]
        for informer in informers:
            if not await_sync(informer, stop, deadline):
                return
        left = None if deadline is None else deadline - time.monotonic()
        yield from CachedWatch(self._log, informers, "", stop, left).from_present(mark=True)

    def _watch(
        self,
        informer: Informer[Any],
        namespace: str | None,
        version: str,
        stop: Callable[[], bool] | None,
        timeout: float | None,
    ) -> Iterator[WatchEvent[Any]]:
        deadline = None if timeout is None else time.monotonic() + timeout
        if not await_sync(informer, stop, deadline):
            return
        left = None if deadline is None else deadline - time.monotonic()
        space = (namespace or "") if informer.kind.namespaced else ""
        watch = CachedWatch(self._log, [informer], space, stop, left)
        if not version:
            yield from watch.from_present(mark=False)
            return
        with self._log.changed:
            number, after = self._place(informer, version)
        if number is not None:
            yield from watch.from_number(number, after=after)
            return
        watched = informer.watched
        yield from self._client.watch(
            watched.kind,
            namespace or watched.namespace,
            version,
            stop=stop,
            timeout=left,
            labels=watched.labels,
            fields=watched.fields,
        )

    def _place(self, informer: Informer[Any], version: str) -> tuple[int | None, str]:
        """Where in the log the changes after a version begin, and which of them to leave out. Under the lock."""
        latest = informer.cache.version
        if version == latest:
            return self._log.end, ""
        if is_later(version, latest):
            # Made by an own write that the watch has not told yet, or nothing that can be known here.
            return (self._log.end, version) if informer.cache.wrote_lately(version) else (None, "")
        return self._log.find(informer.kind, version), ""

    def _wait_until_synced(self, informer: Informer[Any]) -> None:
        """Wait a little for the first list.

        :raises StoreError: it is not in; the reason.
        """
        deadline = time.monotonic() + self._patience
        if not await_sync(informer, None, deadline):
            raise StoreError(
                f"{informer.kind.plural} have not been listed yet",
                action=f"read {informer.kind.plural} of {self._client.server}",
                subject=informer.kind.kind,
                hint="try again",
            )

    # --- writing ------------------------------------------------------------------------------------------------------

    @overload
    def create(self, obj: T) -> T: ...
    @overload
    def create(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def create(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient."""
        return self._wrote(self._through(lambda: self._client.create(obj)))

    @overload
    def replace(self, obj: T) -> T: ...
    @overload
    def replace(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def replace(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient. One request for a watched kind; after a conflict the state there is read as it is then."""
        return self._replace(obj)

    @overload
    def replace_status(self, obj: T) -> T: ...
    @overload
    def replace_status(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def replace_status(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient. As :meth:`replace`."""
        return self._replace(obj, "status")

    def patch(self, kind: type[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See ApiClient."""
        return self._wrote(self._through(lambda: self._client.patch(kind, name, patch, namespace)))

    def patch_status(self, kind: type[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See KubernetesClient."""
        return self._wrote(self._through(lambda: self._client.patch_status(kind, name, patch, namespace)))

    def delete(
        self,
        kind: type[T],
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> T:
        """See ApiClient. One request for a watched kind."""
        informer = self._informers.find(kind)
        space = (namespace or DEFAULT_NAMESPACE) if kind_of(kind).namespaced else ""
        known: bytes | None = None
        if informer is not None:
            with self._log.changed:
                known = informer.cache.get((space, name))

        def call() -> T:
            conditions: dict[str, str | None] = {"uid": uid, "resource_version": resource_version}
            if known is None:
                return self._client.delete(kind, name, namespace, **conditions)
            return self._client.delete_known(kind, name, namespace, **conditions, known=known)

        found = self._through(call)
        if not _ends(found.metadata):
            return self._wrote(found)
        if informer is not None:
            last = to_json(found).encode()
            with self._log.changed:
                informer.cache.removed(last)
        return found

    def request_token(self, namespace: str, name: str, request: TokenRequest) -> TokenRequest:
        """See KubernetesClient."""
        return self._through(lambda: self._client.request_token(namespace, name, request))

    def _through(self, function: Callable[[], _R]) -> _R:
        return cast("_R", self._gate.call(function))

    def _replace(self, obj: KubeObject | Mapping[str, Any], subresource: str = "") -> Any:
        try:
            return self._wrote(self._through(lambda: self._client.replace_over(obj, self._body_of(obj), subresource)))
        except ConflictError:
            # Whoever decides anew must not do so by what the watch has not told yet, over and over.
            if isinstance(obj, KubeObject) and self._informers.find(type(obj)) is not None:
                with suppress(ApiError):
                    self._wrote(
                        self._through(lambda: self._client.get(type(obj), obj.metadata.name, obj.metadata.namespace))
                    )
            raise

    def _wrote(self, obj: T) -> T:
        """Have the state read back by whoever asks next."""
        informer = self._informers.find(type(obj))
        if informer is not None:
            body = self._client.body_of(obj)
            note = informer.cache.removed if _has_gone(obj.metadata) else informer.cache.wrote
            with self._log.changed:
                if body is not None:
                    note(body)
        return obj

    def _body_of(self, obj: KubeObject | Mapping[str, Any]) -> bytes | None:
        """The body of the state that an object was made from, as far as the informers know it."""
        informer = self._informers.find(type(obj)) if isinstance(obj, KubeObject) else None
        if informer is None or not isinstance(obj, KubeObject):
            return None
        metadata = obj.metadata
        space = (metadata.namespace or DEFAULT_NAMESPACE) if informer.kind.namespaced else ""
        with self._log.changed:
            body = informer.cache.get((space, metadata.name))
        if body is None or (metadata.resource_version and read_heading(body).version != metadata.resource_version):
            return None
        return body


def _ends(metadata: ObjectMeta) -> bool:
    """Whether nothing holds an object that is to be deleted."""
    return not (metadata.finalizers or metadata.deletion_grace_period_seconds)


def _has_gone(metadata: ObjectMeta) -> bool:
    """Whether a write was the last of the object's: it took the last finalizer, and the answer does not say so."""
    return metadata.deletion_timestamp is not None and _ends(metadata)
