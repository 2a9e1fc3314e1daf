"""What is there to be registered, and what is registered: both by socket path (CSI-PM-01 to -04)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from volumehost_csi.registration.scan import Marks


class _HasPath(Protocol):
    @property
    def path(self) -> str: ...


T = TypeVar("T", bound=_HasPath)


@dataclass(frozen=True, slots=True)
class DesiredSocket:
    """A registration socket that lies in the directory.

    It is the same as long as path, marks and generation are; the generation is new for each socket that was seen to
    appear, also for one that has the inode number of the last (CSI-PM-03, -04; BR-21).
    """

    path: str
    marks: Marks
    generation: int


@dataclass(frozen=True, slots=True)
class RegisteredPlugin:
    """A plugin that was registered through a socket."""

    path: str
    socket: DesiredSocket
    type: str
    name: str
    endpoint: str


class PathCache(Generic[T]):
    """Items by their path. Safe for threads; what it hands out is a snapshot."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: Mapping[str, T] = {}

    def get(self, path: str) -> T | None:
        """The item of that path, None when there is none."""
        return self._items.get(path)

    def snapshot(self) -> Mapping[str, T]:
        """All items by path, as they are now."""
        return self._items

    def __iter__(self) -> Iterator[T]:
        return iter(self._items.values())

    def add(self, item: T) -> None:
        """Add an item, in place of the one that has its path.

        :raises ValueError: the path is empty (CSI-PM-02).
        """
        _check_path(item)
        with self._lock:
            self._items = {**self._items, item.path: item}

    def replace_all(self, items: Mapping[str, T]) -> None:
        """Have these and no others.

        :raises ValueError: a path is empty.
        """
        for item in items.values():
            _check_path(item)
        with self._lock:
            self._items = dict(items)

    def remove(self, path: str) -> None:
        """Remove the item of that path; fine when there is none."""
        with self._lock:
            self._items = {known: item for known, item in self._items.items() if known != path}


def _check_path(item: _HasPath) -> None:
    if not item.path:
        raise ValueError("the path of a registration socket is empty")
