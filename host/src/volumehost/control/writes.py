"""Changing objects that others change too: each write rests on the state that it was decided by, or is decided anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from volumehost.errors import ConflictError, ObjectNotFoundError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import KubeObject

T = TypeVar("T", bound="KubeObject")

#: How often a write is decided anew when somebody else was faster.
ATTEMPTS = 8


def update(api: ApiClient, obj: T, change: Callable[[T], None]) -> T:
    """Read the object anew, let ``change`` alter that copy, and write everything but the status; returns the new state.

    A conflict repeats all of it. Nothing is written when nothing changed.

    :raises ObjectNotFoundError: it is gone, or another object has its name.
    :raises ConflictError: others change it all the time.
    """
    return _write(api, obj, change, api.replace)


def update_status(api: ApiClient, obj: T, change: Callable[[T], None]) -> T:
    """The same for the status and nothing else."""
    return _write(api, obj, change, api.replace_status)


def add_finalizer(api: ApiClient, obj: T, finalizer: str) -> T:
    """Put a finalizer on the object unless it is there."""

    def change(fresh: T) -> None:
        if finalizer not in fresh.metadata.finalizers:
            fresh.metadata.finalizers = [*fresh.metadata.finalizers, finalizer]

    return update(api, obj, change)


def remove_finalizer(api: ApiClient, obj: T, *finalizers: str) -> None:
    """Take finalizers away; success when the object is gone. The last one of a deleted object ends it."""
    for attempt in range(ATTEMPTS):
        fresh = fresh_or_none(api, obj)
        if fresh is None or not set(finalizers) & set(fresh.metadata.finalizers):
            return
        metadata = fresh.metadata
        rest = [name for name in metadata.finalizers if name not in finalizers]
        condition = {"finalizers": rest or None, "resourceVersion": metadata.resource_version, "uid": metadata.uid}
        try:
            api.patch(type(obj), metadata.name, {"metadata": condition}, metadata.namespace)
        except ObjectNotFoundError:
            return
        except ConflictError:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return


def fresh_or_none(api: ApiClient, obj: T) -> T | None:
    """The object as it is now; None when it is gone or another one has its name."""
    found = get_or_none(api, type(obj), obj.metadata.name, obj.metadata.namespace)
    return found if found is not None and found.metadata.uid == obj.metadata.uid else None


def get_or_none(api: ApiClient, kind: type[T], name: str, namespace: str = "") -> T | None:
    """The object of that name, None when there is none."""
    try:
        return api.get(kind, name, namespace)
    except ObjectNotFoundError:
        return None


def _write(api: ApiClient, obj: T, change: Callable[[T], None], write: Callable[[T], T]) -> T:
    for attempt in range(ATTEMPTS):
        fresh = fresh_or_none(api, obj)
        if fresh is None:
            name = f"{obj.metadata.namespace}/{obj.metadata.name}".lstrip("/")
            raise ObjectNotFoundError(f"{obj.kind.lower()} {name} is gone", subject=obj.metadata.name)
        change(fresh)
        try:
            return write(fresh)
        except ConflictError:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")
