"""The record of the requests that were made: what each was for, by whom, and how it was answered."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Request:
    """One request as the API server understood it.

    ``verb`` is that of Kubernetes' authorisation (``list``, ``deletecollection``...), for requests outside the API
    (``/version``) the HTTP method in lower case with "" as resource. ``code`` is the HTTP status of the answer, 0 while
    there is none and when there never was one. ``at`` is the monotonic time of its arrival in seconds.
    """

    verb: str
    path: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    content_type: str = ""
    user_agent: str = ""
    code: int = 0
    at: float = 0.0

    @property
    def permission(self) -> str:
        """The resource as roles name it: ``pods``, ``pods/status``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class Requests:
    """All requests since the start or the last :meth:`clear`, in the order of their arrival. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: list[Request] = []

    def add(self, request: Request) -> None:
        """Note a request that has arrived."""
        with self._lock:
            self._made.append(request)

    def clear(self) -> None:
        """Forget what was made so far."""
        with self._lock:
            self._made.clear()

    def all(
        self,
        *,
        verb: str = "*",
        resource: str = "*",
        name: str = "*",
        namespace: str = "*",
        user: str = "*",
    ) -> list[Request]:
        """The requests that match; ``resource`` with its subresource (``pods/status``)."""
        asked = (verb, resource, name, namespace, user)
        with self._lock:
            made = list(self._made)
        return [
            request
            for request in made
            if all(
                wanted in ("*", found)
                for wanted, found in zip(
                    asked,
                    (request.verb, request.permission, request.name, request.namespace, request.user),
                    strict=True,
                )
            )
        ]

    def count(self, *, verb: str = "*", resource: str = "*", name: str = "*", user: str = "*") -> int:
        """How many there are that match."""
        return len(self.all(verb=verb, resource=resource, name=name, user=user))
