"""Objects: what the server holds, for tests to read and change past the API, its checks and its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Document = dict[str, Any]


class Objects:
    """What the server holds, by resource (``pods``, or the kind ``Pod``). Documents that come back are copies.

    ``namespace`` "" means ``default`` for resources that have namespaces.
    """

    def get(self, resource: str, name: str, namespace: str = "") -> Document:
        """The object as it is now.

        :raises LookupError: there is none.
        """
        raise NotImplementedError

    def find(self, resource: str, name: str, namespace: str = "") -> Document | None:
        """The object as it is now, None when there is none."""
        raise NotImplementedError

    def list(self, resource: str, namespace: str = "") -> list[Document]:
        """All objects, of every namespace for "", by namespace and name."""
        raise NotImplementedError

    def put(self, document: Mapping[str, Any]) -> Document:
        """Create the object or replace it, status included, whatever there was; makes its namespace too.

        uid and creation time stay or are made; defaults are filled in.
        """
        raise NotImplementedError

    def patch(self, resource: str, name: str, patch: Mapping[str, Any], namespace: str = "") -> Document:
        """Apply a JSON merge patch, to the status too, whatever may not change."""
        raise NotImplementedError

    def delete(self, resource: str, name: str, namespace: str = "") -> Document:
        """Take the object away at once, finalizers or not."""
        raise NotImplementedError

    def wait(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        *,
        until: Callable[[Document | None], object],
        timeout: float = 10.0,
    ) -> Document | None:
        """Wait until the condition holds of the object (None while there is none); returns it as it is then.

        :raises TimeoutError: it did not; shows the object.
        """
        raise NotImplementedError
