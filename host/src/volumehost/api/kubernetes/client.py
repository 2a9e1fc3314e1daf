"""KubernetesClient: an ApiClient whose objects are those of an API server, one request for each call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, overload

from volumehost.api.client import ObjectList, WatchEvent
from volumehost.api.objects import KubeObject, TokenRequest

T = TypeVar("T", bound=KubeObject)


class KubernetesClient:
    """See :class:`volumehost.api.client.ApiClient`; made by :func:`volumehost.api.kubernetes.connect`.

    Besides the errors named there, every call raises one of the kinds of StoreError: ServerUnreachableError,
    ServerTimeoutError, UnauthorizedError, ForbiddenError, KindNotServedError, TooManyRequestsError, ServerFailedError.
    """

    #: Where the server is, for messages: ``https://10.0.0.1:6443``.
    server: str
    #: The namespace of the context, "default" where it has none: for commands that are given none.
    default_namespace: str

    def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """See ApiClient."""
        raise NotImplementedError

    def list(
        self,
        kind: type[T],
        namespace: str | None = None,
        labels: Mapping[str, str] | str | None = None,
        *,
        fields: str = "",
    ) -> ObjectList[T]:
        """See ApiClient; ``fields`` is a field selector (``spec.nodeName=worker-1``)."""
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
        """See ApiClient. Costs a read besides when the object was not read or written lately."""
        raise NotImplementedError

    @overload
    def replace_status(self, obj: T) -> T: ...
    @overload
    def replace_status(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def replace_status(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient."""
        raise NotImplementedError

    def patch(self, kind: type[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See ApiClient."""
        raise NotImplementedError

    def patch_status(self, kind: type[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """Apply a JSON merge patch (``{"status": {...}}``) to the status and nothing else; return the new state."""
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
        labels: Mapping[str, str] | str | None = None,
        fields: str = "",
    ) -> Iterator[WatchEvent[T]]:
        """See ApiClient. Whole seconds: a timeout is rounded up, since the server ends the stream."""
        raise NotImplementedError

    def request_token(self, namespace: str, name: str, request: TokenRequest) -> TokenRequest:
        """Ask for a token of the service account; the answer is the request with its status.

        It has the shape of :data:`volumehost.hosts.tokens.Signer`.

        :raises ObjectNotFoundError: there is no such service account.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the connections; watches end."""
        raise NotImplementedError
