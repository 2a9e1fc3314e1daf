"""KubernetesClient: an ApiClient whose objects are those of an API server, one request for each call."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import msgspec

from volumehost.api.client import ObjectList, WatchEvent
from volumehost.api.kinds import Kind, kind_of
from volumehost.api.kubernetes.asking import Asked, many, one, selector_query
from volumehost.api.kubernetes.caller import APPLY_PATCH, MERGE_PATCH, Caller
from volumehost.api.kubernetes.codec import ListMeta, read_heading, read_list, read_object
from volumehost.api.kubernetes.failures import read_status
from volumehost.api.kubernetes.outgoing import Outgoing, outgoing
from volumehost.api.kubernetes.paging import pages
from volumehost.api.kubernetes.remembered import Remembered
from volumehost.api.kubernetes.transport import Transport
from volumehost.api.kubernetes.watching import WatchSettings, watch_events
from volumehost.api.objects import KubeObject, ServiceAccount, TokenRequest
from volumehost.errors import AlreadyExistsError, ApiError, ConflictError, InvalidObjectError

T = TypeVar("T", bound=KubeObject)

#: How often a write that names no version is tried when others write too, and a generated name when it is taken.
_ATTEMPTS = 8


class KubernetesClient:
    """See :class:`volumehost.api.client.ApiClient`; made by :func:`volumehost.api.kubernetes.connect`.

    Besides the errors named there, every call raises one of the kinds of StoreError: ServerUnreachableError,
    ServerTimeoutError, UnauthorizedError, ForbiddenError, KindNotServedError, TooManyRequestsError, ServerFailedError.
    """

    def __init__(
        self, transport: Transport, *, caller: Caller | None = None, watches: WatchSettings | None = None
    ) -> None:
        #: Makes the requests.
        self.caller = caller or Caller(transport)
        #: How watches are kept alive.
        self.watches = watches or WatchSettings()
        self._remembered = Remembered()
        #: Where the server is, for messages: ``https://10.0.0.1:6443``.
        self.server = transport.config.server
        #: The namespace of the context, "default" where it has none: for commands that are given none.
        self.default_namespace = transport.config.namespace

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<KubernetesClient {self.server}>"

    def with_patience(self, seconds: float) -> Self:
        """The same client, closed with this one, whose calls wait less when the server asks for it."""
        other = copy.copy(self)
        other.caller = self.caller.with_patience(seconds)
        return other

    def close(self) -> None:
        """Let go of the connections; watches end, further calls raise StoreError."""
        self.caller.close()

    # --- reading ------------------------------------------------------------------------------------------------------

    def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """See ApiClient."""
        asked = one("get", kind, name, namespace)
        found: T = self._kept(asked.kind, self.caller.call(asked))
        return found

    def list(
        self,
        kind: type[T],
        namespace: str | None = None,
        labels: Mapping[str, str] | str | None = None,
        *,
        fields: str = "",
    ) -> ObjectList[T]:
        """See ApiClient; ``fields`` is a field selector (``spec.nodeName=worker-1``)."""
        asked = many("list", kind, namespace)
        items: list[T] = []
        version = ""

        def read(body: bytes) -> tuple[list[T], ListMeta]:
            return read_list(asked.kind, body)

        for part, version, first in pages(self.caller, asked, selector_query(labels, fields), read):  # noqa: B007
            items = part if first else items + part
        items.sort(key=lambda obj: (obj.metadata.namespace, obj.metadata.name))
        return ObjectList(items, version)

    def watch(
        self,
        kind: type[T],
        namespace: str | None = None,
        resource_version: str = "",
        *,
        stop: Callable[[], bool] | None = None,
        timeout: float | None = None,
        labels: Mapping[str, str] | str | None = None,
        fields: str = "",
    ) -> Iterator[WatchEvent[T]]:
        """See ApiClient. Whole seconds: a timeout is rounded up, since the server ends the stream."""
        asked = many("watch", kind, namespace)
        query = selector_query(labels, fields)

        def events() -> Iterator[WatchEvent[T]]:
            version = resource_version
            if not version:
                listed = self.list(kind, namespace, labels, fields=fields)
                for obj in listed.items:
                    yield WatchEvent("ADDED", obj)
                version = listed.resource_version
            yield from watch_events(self.caller, self.watches, asked, version, query, stop=stop, timeout=timeout)

        return events()

    # --- writing ------------------------------------------------------------------------------------------------------

    @overload
    def create(self, obj: T) -> T: ...
    @overload
    def create(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def create(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient."""
        item = outgoing(obj)
        asked = Asked("create", item.kind, item.namespace)
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._kept(item.kind, self.caller.call(asked, body=item.document))
            except AlreadyExistsError as error:
                if item.name:
                    raise _exists(item, error) from None
        return self._kept(item.kind, self.caller.call(asked, body=item.document))

    @overload
    def replace(self, obj: T) -> T: ...
    @overload
    def replace(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def replace(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient. Costs a read besides when the object was not read or written lately."""
        return self._put(outgoing(obj), "", None)

    @overload
    def replace_status(self, obj: T) -> T: ...
    @overload
    def replace_status(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def replace_status(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient."""
        item = outgoing(obj)
        _check_status(item.kind)
        return self._put(item, "status", None)

    def replace_over(self, obj: KubeObject | Mapping[str, Any], stored: bytes | None, subresource: str = "") -> Any:
        """As :meth:`replace` or :meth:`replace_status`, for a caller who knows the body of the state that was read."""
        item = outgoing(obj)
        if subresource:
            _check_status(item.kind)
        return self._put(item, subresource, stored)

    def patch(self, kind: type[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See ApiClient."""
        found: T = self._patch(one("patch", kind, name, namespace), patch)
        return found

    def patch_status(self, kind: type[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """Apply a JSON merge patch (``{"status": {...}}``) to the status and nothing else; return the new state."""
        asked = one("patch", kind, name, namespace, "status")
        _check_status(asked.kind)
        found: T = self._patch(asked, patch)
        return found

    def apply(self, document: Mapping[str, Any], manager: str) -> KubeObject:
        """See ServerSideApplier."""
        item = outgoing(document)
        if not item.name:
            raise InvalidObjectError(subject=item.kind.kind, problems=[("metadata.name", "Required value")])
        asked = Asked("patch", item.kind, item.namespace, item.name)
        query = {"fieldManager": manager, "force": "true"}
        found: KubeObject = self._kept(
            item.kind, self.caller.call(asked, query, body=item.document, content_type=APPLY_PATCH)
        )
        return found

    def delete(
        self,
        kind: type[T],
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> T:
        """See ApiClient. Costs a read besides when the object was not read or written lately."""
        asked = one("delete", kind, name, namespace)
        known = self._remembered.find(asked.kind, asked.namespace, name)
        if known is None:
            known = self.caller.call(one("get", kind, name, namespace))
        return self.delete_known(kind, name, namespace, uid=uid, resource_version=resource_version, known=known)

    def delete_known(
        self,
        kind: type[T],
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        known: bytes,
    ) -> T:
        """As :meth:`delete`, for a caller who knows the body of the last state: servers do not always give it."""
        asked = one("delete", kind, name, namespace)
        conditions = {"uid": uid, "resourceVersion": resource_version}
        wanted = {key: value for key, value in conditions.items() if value}
        body: dict[str, Any] | None = None
        if wanted:
            body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": wanted}
        answer = self.caller.call(asked, body=body)
        self._remembered.forget(asked.kind, asked.namespace, name)
        if read_status(answer) is not None:
            last: T = read_object(asked.kind, known)
            return last
        found: T = read_object(asked.kind, answer)
        if found.metadata.deletion_timestamp is not None:
            self._remembered.keep(asked.kind, read_heading(answer), answer)  # it is on its way, and still there
        return found

    def request_token(self, namespace: str, name: str, request: TokenRequest) -> TokenRequest:
        """Ask for a token of the service account; the answer is the request with its status.

        It has the shape of :data:`volumehost.hosts.tokens.Signer`.

        :raises ObjectNotFoundError: there is no such service account.
        """
        asked = one("create", ServiceAccount, name, namespace, "token")
        body = self.caller.call(asked, body=msgspec.to_builtins(request))
        found: TokenRequest = read_object(kind_of(TokenRequest), body)
        return found

    def body_of(self, obj: KubeObject) -> bytes | None:
        """The body that an object was read from a moment ago, None when it is not remembered any more."""
        metadata = obj.metadata
        return self._remembered.find(kind_of(type(obj)), metadata.namespace, metadata.name, metadata.resource_version)

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _put(self, item: Outgoing, subresource: str, stored: bytes | None) -> Any:
        """Send the whole object. The version that it names, or that of the stored state, is a condition."""
        if not item.name:
            raise InvalidObjectError(subject=item.kind.kind, problems=[("metadata.name", "Required value")])
        asked = Asked("update", item.kind, item.namespace, item.name, subresource)
        version = str(item.metadata.get("resourceVersion", ""))
        if version and item.complete:
            return self._kept(item.kind, self.caller.call(asked, body=item.document))
        if version and stored is None:
            stored = self._remembered.find(item.kind, item.namespace, item.name, version)
        for attempt in range(_ATTEMPTS):
            current = stored if stored is not None else self._current(item)
            stored = None
            try:
                return self._kept(item.kind, self.caller.call(asked, body=_over(item, current, asked)))
            except ConflictError:
                # Only who names no version means whatever state there is.
                if version or attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def _current(self, item: Outgoing) -> bytes:
        return self.caller.call(Asked("get", item.kind, item.namespace, item.name))

    def _patch(self, asked: Asked, patch: Mapping[str, Any]) -> Any:
        return self._kept(asked.kind, self.caller.call(asked, body=patch, content_type=MERGE_PATCH))

    def _kept(self, kind: Kind[Any], body: bytes) -> Any:
        """The object of a body, which is remembered for the next write."""
        found = read_object(kind, body)
        self._remembered.keep(kind, read_heading(body), body)
        return found


def _over(item: Outgoing, stored: bytes, asked: Asked) -> dict[str, Any]:
    document, heading = item.over(stored), read_heading(stored)
    metadata = dict(document["metadata"])
    version, uid = metadata.get("resourceVersion"), metadata.get("uid")
    if (version and version != heading.version) or (uid and uid != heading.uid):
        what = "is another object of that name" if uid and uid != heading.uid else "has changed since it was read"
        raise ConflictError(
            f"{asked.subject} {what}", action=asked.action, subject=asked.subject, hint="read it again and retry"
        )
    metadata["resourceVersion"], metadata["uid"] = heading.version, heading.uid
    return document | {"metadata": metadata}


def _check_status(kind: Kind[Any]) -> None:
    if not kind.has_status:
        raise ApiError(f"a {kind.kind} has no status of its own", subject=kind.kind)


def _exists(item: Outgoing, error: AlreadyExistsError) -> AlreadyExistsError:
    subject = item.kind.describe(item.name, item.namespace)
    return AlreadyExistsError(f"{subject} exists already", action=f"create {subject}", subject=subject, hint=error.hint)
