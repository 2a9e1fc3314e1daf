"""Tells changes that concern a controller from the marks that it leaves on its own objects itself.

A mark is written before a call and perhaps taken away after it; if that brought the object back at once, a call that
fails would be repeated without pause (CSI-EXA-10).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject


class _Seen(NamedTuple):
    resource_version: str
    rest: Hashable


class OwnMarks:
    """Remembers each object of one kind without its marks and status. Safe for threads.

    :param annotations: the keys of those that the controller writes.
    :param is_own_finalizer: which finalizers it adds.
    """

    def __init__(self, annotations: frozenset[str], is_own_finalizer: Callable[[str], bool]) -> None:
        self._annotations = annotations
        self._is_own_finalizer = is_own_finalizer
        self._lock = threading.Lock()
        self._seen: dict[str, _Seen] = {}

    def is_news(self, obj: KubeObject) -> bool:
        """Whether more changed than marks and status, or the object is told of again or for the last time."""
        metadata = obj.metadata
        rest = (
            metadata.generation,
            metadata.deletion_timestamp,
            frozenset((key, value) for key, value in metadata.annotations.items() if key not in self._annotations),
            frozenset(name for name in metadata.finalizers if not self._is_own_finalizer(name)),
        )
        now = _Seen(metadata.resource_version, rest)
        with self._lock:
            before = self._seen.get(metadata.uid)
            if metadata.deletion_timestamp and not metadata.finalizers:
                self._seen.pop(metadata.uid, None)
                return True
            self._seen[metadata.uid] = now
        return before is None or before.resource_version == now.resource_version or before.rest != now.rest
