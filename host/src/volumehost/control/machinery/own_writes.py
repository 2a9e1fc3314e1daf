"""The API as controllers see it: what an attempt itself wrote is remembered, and is no news when the watch tells of it.

Without that a failed attempt that noted something down would be made again at once, because something changed (BR-53).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient


class OwnWrites:
    """Hands on to another client. Safe for threads: each thread has the writes of its own attempt."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._attempt = threading.local()

    @property
    def client(self) -> ApiClient:
        """What controllers are given."""
        return cast("ApiClient", self)

    def begin(self) -> None:
        """An attempt begins in this thread."""
        self._attempt.versions = set()

    def end(self) -> frozenset[str]:
        """The resource versions that the attempt in this thread has written."""
        return frozenset(self._attempt.__dict__.pop("versions", ()))

    def create(self, *args: Any, **options: Any) -> Any:
        """See ``ApiClient.create``."""
        return self._written(self._api.create, *args, **options)

    def replace(self, *args: Any, **options: Any) -> Any:
        """See ``ApiClient.replace``."""
        return self._written(self._api.replace, *args, **options)

    def replace_status(self, *args: Any, **options: Any) -> Any:
        """See ``ApiClient.replace_status``."""
        return self._written(self._api.replace_status, *args, **options)

    def patch(self, *args: Any, **options: Any) -> Any:
        """See ``ApiClient.patch``."""
        return self._written(self._api.patch, *args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def _written(self, write: Callable[..., Any], *args: Any, **options: Any) -> Any:
        obj = write(*args, **options)
        versions = self._attempt.__dict__.get("versions")
        if versions is not None:
            versions.add(obj.metadata.resource_version)
        return obj
