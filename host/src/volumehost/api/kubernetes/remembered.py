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

#: How many bodies are kept, and how large the largest is, in bytes.
_BODIES = 256
_LARGEST = 64 * 1024


class Remembered:
    """Bodies by kind, namespace and name. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bodies: OrderedDict[tuple[str, str, str], tuple[Heading, bytes]] = OrderedDict()

    def keep(self, kind: Kind[Any], heading: Heading, body: bytes) -> None:
        """Remember a state."""
        key = (kind.kind, heading.namespace, heading.name)
        with self._lock:
            self._bodies.pop(key, None)
            if len(body) <= _LARGEST:
                self._bodies[key] = (heading, body)
                if len(self._bodies) > _BODIES:
                    self._bodies.popitem(last=False)

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
            self._bodies.pop((kind.kind, namespace, name), None)
