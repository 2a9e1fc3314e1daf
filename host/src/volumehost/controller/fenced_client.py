"""FencedClient: what a term's controllers write with; once the term is over, nothing that they do reaches the API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from volumehost.errors import StoreError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient, ObjectList, WatchEvent
    from volumehost.api.objects import KubeObject
    from volumehost.controller.leader_election import Term

#: What a client may offer besides and controllers may use.
_OFFERED = frozenset({"watch_kinds"})

T = TypeVar("T", bound="KubeObject")
R = TypeVar("R")


class NotLeaderError(StoreError):
    """This process is not the leader any more: nothing was written, or called."""


def require_term(term: Term | None, action: str) -> None:
    """Return while the term lasts; None is one that never ends.

    :raises NotLeaderError: it is over.
    """
    if term is not None and not term.valid:
        raise NotLeaderError(
            f"this process does not lead any more: {term.reason}",
            action=action,
            hint="the controller that leads now goes on with it",
        )


class FencedClient:
    """Hands on to another client while the term lasts. Reads always work.

    :param term: None where there is no election.
    """

    #: A kind that may not be seen holds up no other.
    watches_apart = True

    def __init__(self, api: ApiClient, term: Term | None) -> None:
        self._api = api
        self._term = term

    @property
    def client(self) -> ApiClient:
        """What controllers are given."""
        return cast("ApiClient", self)

    def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """See ``ApiClient.get``."""
        return self._api.get(kind, name, namespace)

    def list(
        self, kind: type[T], namespace: str | None = None, labels: Mapping[str, str] | str | None = None
    ) -> ObjectList[T]:
        """See ``ApiClient.list``."""
        return self._api.list(kind, namespace, labels)

    def create(self, obj: Any) -> Any:
        """See ``ApiClient.create``.

        :raises NotLeaderError: the term is over.
        """
        return self._write(self._api.create, obj)

    def replace(self, obj: Any) -> Any:
        """See ``ApiClient.replace``.

        :raises NotLeaderError: the term is over.
        """
        return self._write(self._api.replace, obj)

    def replace_status(self, obj: Any) -> Any:
        """See ``ApiClient.replace_status``.

        :raises NotLeaderError: the term is over.
        """
        return self._write(self._api.replace_status, obj)

    def patch(self, kind: type[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See ``ApiClient.patch``.

        :raises NotLeaderError: the term is over.
        """
        written: T = self._write(self._api.patch, kind, name, patch, namespace)
        return written

    def delete(
        self,
        kind: type[T],
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> T:
        """See ``ApiClient.delete``.

        :raises NotLeaderError: the term is over.
        """
        left: T = self._write(self._api.delete, kind, name, namespace, uid=uid, resource_version=resource_version)
        return left

    def watch(
        self,
        kind: type[T],
        namespace: str | None = None,
        resource_version: str = "",
        *,
        stop: Callable[[], bool] | None = None,
        timeout: float | None = None,
    ) -> Iterator[WatchEvent[T]]:
        """See ``ApiClient.watch``."""
        return self._api.watch(kind, namespace, resource_version, stop=stop, timeout=timeout)

    def __getattr__(self, name: str) -> Any:
        """What the other client offers besides, such as ``watch_kinds``; none of that writes."""
        if name not in _OFFERED:
            raise AttributeError(name)
        return getattr(self._api, name)

    def _write(self, write: Callable[..., R], *args: Any, **options: Any) -> R:
        require_term(self._term, "writing to the API")
        return write(*args, **options)
