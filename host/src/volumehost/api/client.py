"""ApiClient: the small protocol behind which the embedded store and a Kubernetes API server look the same.

``volumehost.testing.api_contract`` is the test suite that every implementation passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar, overload, runtime_checkable

from volumehost.api.objects import KubeObject

T = TypeVar("T", bound=KubeObject)

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


@dataclass(frozen=True, slots=True)
class ObjectList(Generic[T]):
    """Objects of one kind as they were together at ``resource_version``, from which a watch can go on."""

    items: list[T]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One change. ``object`` is the new state; for DELETED the last one.

    A BOOKMARK carries an object with nothing but its resource version: everything up to there has been told.
    """

    type: EventType
    object: T


@runtime_checkable
class ApiClient(Protocol):
    """Objects of the API, by the class of their kind (``client.get(Pod, "web", "default")``).

    Objects that come back are the caller's own; objects that go in are not changed. ``namespace`` is "" for kinds
    without one; for the others "" means ``default``. Every method raises StoreError when the store or server cannot
    be used, and is safe to call from any thread.

    Where an object is handed in, a mapping in wire form (camel case) may be handed in instead; fields of it that
    this version does not know are kept.
    """

    def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """The object as it is now.

        :raises ObjectNotFoundError: there is none.
        """
        ...

    def list(
        self, kind: type[T], namespace: str | None = None, labels: Mapping[str, str] | str | None = None
    ) -> ObjectList[T]:
        """All objects of the kind, in every namespace for None and "", whose labels match.

        ``labels`` is a mapping of required labels or a selector in Kubernetes' syntax (``app=web,tier!=cache``).
        Sorted by namespace and name.
        """
        ...

    @overload
    def create(self, obj: T) -> T: ...
    @overload
    def create(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def create(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """Store a new object and return it with name, uid, resource version and defaults filled in.

        The status of kinds that keep it apart is dropped. Without a name, ``metadata.generate_name`` is completed.

        :raises AlreadyExistsError: there is one of that name.
        :raises InvalidObjectError: it breaks the API's rules; lists every field that does.
        """
        ...

    @overload
    def replace(self, obj: T) -> T: ...
    @overload
    def replace(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def replace(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """Replace everything but the status; return the new state. Fields that the type does not know are kept.

        With a resource version in the metadata the object must not have changed since; with a uid it must still be
        the same object. Taking the last finalizer from an object that is being deleted deletes it.

        :raises ObjectNotFoundError: there is none.
        :raises ConflictError: it changed since it was read.
        :raises InvalidObjectError: the new state breaks the API's rules or changes what must not change.
        """
        ...

    @overload
    def replace_status(self, obj: T) -> T: ...
    @overload
    def replace_status(self, obj: Mapping[str, Any]) -> KubeObject: ...
    def replace_status(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """Replace the status and nothing else; otherwise as :meth:`replace`."""
        ...

    def patch(self, kind: type[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """Apply a JSON merge patch (RFC 7386, wire names) to everything but the status; return the new state.

        A resource version or uid in the patch's metadata is a condition, as in :meth:`replace`.
        """
        ...

    def delete(
        self,
        kind: type[T],
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> T:
        """Delete, or mark for deletion while finalizers are left; return the last or the marked state.

        :param uid: refuse when the object is not the one with this uid.
        :param resource_version: refuse when the object has changed since.
        :raises ObjectNotFoundError: there is none.
        :raises ConflictError: one of the conditions does not hold.
        """
        ...

    def watch(
        self,
        kind: type[T],
        namespace: str | None = None,
        resource_version: str = "",
        *,
        stop: Callable[[], bool] | None = None,
        timeout: float | None = None,
    ) -> Iterator[WatchEvent[T]]:
        """Changes after ``resource_version``, as they come, until ``stop()`` is true or ``timeout`` seconds are over.

        Without a resource version the present objects come first, as ADDED. What has happened by the time that the
        timeout ends is told all the same; 0 asks for just that. ``stop`` is asked at least every 100 ms or so.
        Events of one object come in order and none is left out; BOOKMARK events come from time to time.

        :raises GoneError: the changes after that resource version are no longer known: list again, then watch.
        """
        ...


@runtime_checkable
class ServerSideApplier(Protocol):
    """What an ApiClient may offer besides: it merges a manifest into the object itself, knowing whose each field is."""

    def apply(self, document: Mapping[str, Any], manager: str) -> KubeObject:
        """Create the object, or make it what the manifest says; return the new state.

        Fields that the manager applied before and that are not in the document any more are removed; what others own is
        taken from them where the document says otherwise. A resource version or uid in it is a condition.

        :param document: in wire form, without status and managed fields.
        :param manager: under this name the server keeps which fields were applied.
        :raises ConflictError: the condition does not hold.
        :raises InvalidObjectError: the new state breaks the API's rules or changes what must not change.
        """
        ...


@runtime_checkable
class MultiKindWatcher(Protocol):
    """What an ApiClient may offer besides: a watch of several kinds for the price of one."""

    def watch_kinds(
        self,
        kinds: Sequence[type[KubeObject]],
        *,
        stop: Callable[[], bool] | None = None,
        timeout: float | None = None,
    ) -> Iterator[WatchEvent[Any]]:
        """The present objects of all these kinds as ADDED, then their changes in the order in which they happened.

        A BOOKMARK, of whichever kind, comes each time that everything up to its resource version has been told. It may
        end with GoneError, as :meth:`ApiClient.watch` does.
        """
        ...
