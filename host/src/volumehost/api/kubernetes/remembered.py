"""The last bodies that went by, so that writing back what was just read needs no second read. Used by the clients.

A typed object has no room for fields that this version does not know; they come from the body of the state that it was
made from.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from volumehost.api.kinds import Kind
from volumehost.api.kubernetes.codec import Heading

#: How many bodies are kept, and how many bytes all together.
_BODIES = 256
_BYTES = 8 * 1024 * 1024


class Remembered:
    """Bodies by kind, namespace and name. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bodies: OrderedDict[tuple[str, str, str], tuple[Heading, bytes]] = OrderedDict()
        self._size = 0

    def keep(self, kind: Kind[Any], heading: Heading, body: bytes) -> None:
        """Remember a state."""
        key = (kind.kind, heading.namespace, heading.name)
        with self._lock:
            self._drop(key)
            self._bodies[key] = (heading, body)
            self._size += len(body)
            while len(self._bodies) > _BODIES or self._size > _BYTES:
                self._drop(next(iter(self._bodies)))

    def find(self, kind: Kind[Any], namespace: str, name: str, version: str = "") -> bytes | None:
        """The state of that version, or the last one for "", if it is remembered."""
        with self._lock:
            found = self._bodies.get((kind.kind, namespace, name))
        if found is None or (version and found[0].version != version):
            return None
        return found[1]

    def forget(self, kind: Kind[Any], namespace: str, name: str) -> None:
        """Drop what is known of an object."""
        with self._lock:
            self._drop((kind.kind, namespace, name))

    def _drop(self, key: tuple[str, str, str]) -> None:
        found = self._bodies.pop(key, None)
        self._size -= len(found[1]) if found is not None else 0
