"""A copy of another API's objects to try changes in, made as they are asked for: what ``plan`` works on in a cluster.

Nothing is ever written to where they come from, and of secrets and the like only those are read that are named.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from volumehost.api.convert import to_wire
from volumehost.api.embedded.incoming import incoming
from volumehost.api.kinds import kind_of
from volumehost.api.objects import ConfigMap, KubeObject, Secret, ServiceAccount
from volumehost.api.read_only_store import directory_for_copies
from volumehost.api.store import EmbeddedStore
from volumehost.errors import ObjectNotFoundError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient, ObjectList

T = TypeVar("T", bound=KubeObject)

#: Kinds of which nobody need be allowed to see all.
_BY_NAME: frozenset[type[KubeObject]] = frozenset({Secret, ConfigMap, ServiceAccount})


@contextmanager
def copied_store(source: ApiClient) -> Iterator[CopiedStore]:
    """A store of its own with the objects of ``source``, in a private directory that goes with the block.

    :raises ApiError: when objects are first asked for: ``source`` does not give them.
    """
    with (
        tempfile.TemporaryDirectory(prefix="volumehost-copy-", dir=directory_for_copies()) as directory,
        CopiedStore(os.path.join(directory, "store.sqlite3"), source) as store,
    ):
        yield store


class CopiedStore(EmbeddedStore):
    """An EmbeddedStore that reads each kind from another API before anything is done with it here."""

    def __init__(self, path: str, source: ApiClient) -> None:
        self._source = source
        self._copied: set[type[KubeObject]] = set()
        super().__init__(path)

    def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """See ApiClient."""
        self._copy(kind)
        try:
            return super().get(kind, name, namespace)
        except ObjectNotFoundError:
            if kind not in _BY_NAME:
                raise
            self._put(self._source.get(kind, name, namespace))
            return super().get(kind, name, namespace)

    def list(
        self, kind: type[T], namespace: str | None = None, labels: Mapping[str, str] | str | None = None
    ) -> ObjectList[T]:
        """See ApiClient."""
        self._copy(kind)
        return super().list(kind, namespace, labels)

    def create(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient."""
        self._copy(incoming(obj).kind.struct)
        return super().create(obj)

    def replace(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient."""
        self._copy(incoming(obj).kind.struct)
        return super().replace(obj)

    def replace_status(self, obj: KubeObject | Mapping[str, Any]) -> Any:
        """See ApiClient."""
        self._copy(incoming(obj).kind.struct)
        return super().replace_status(obj)

    def patch(self, kind: type[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See ApiClient."""
        self._copy(kind)
        return super().patch(kind, name, patch, namespace)

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
        self._copy(kind)
        return super().delete(kind, name, namespace, uid=uid, resource_version=resource_version)

    def _copy(self, kind: type[KubeObject]) -> None:
        if kind not in self._copied and kind not in _BY_NAME:
            objects = self._source.list(kind).items
            self._copied.add(kind)
            for obj in objects:
                self._put(obj)

    def _put(self, obj: KubeObject) -> None:
        with self._database.write(durable=False) as connection:
            self._write(connection, kind_of(type(obj)), to_wire(obj), "ADDED")
        self._commits.announce()
