"""The volumes and snapshots of a fake driver, in memory; kept in a JSON file too, where one is given."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class FakeVolume:
    """One volume. ``published_nodes`` has the readonly flag by node, ``published`` a fingerprint by target path."""

    volume_id: str
    name: str = ""
    capacity_bytes: int = 0
    source_snapshot: str = ""
    source_volume: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    published_nodes: dict[str, bool] = field(default_factory=dict)
    staged: str = ""
    staged_as: str = ""
    published: dict[str, str] = field(default_factory=dict)


@dataclass
class FakeSnapshot:
    """One snapshot; ``created`` is seconds since the epoch."""

    snapshot_id: str
    name: str
    source_volume_id: str
    size_bytes: int
    created: float = field(default_factory=time.time)


@dataclass
class FakeState:
    """All there is, by id."""

    volumes: dict[str, FakeVolume] = field(default_factory=dict)
    snapshots: dict[str, FakeSnapshot] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return dataclasses.asdict(self)


class FakeModel:
    """The state behind one lock; every change is in the file, if there is one, before the call is answered."""

    def __init__(self, path: str = "") -> None:
        self._lock = threading.RLock()
        self._path = path
        self._state = _read(path)

    @contextlib.contextmanager
    def changing(self) -> Iterator[FakeState]:
        """The state, to be changed; nothing is written when the body raises."""
        with self._lock:
            yield self._state
            if self._path:
                _write(self._path, self._state)

    @contextlib.contextmanager
    def reading(self) -> Iterator[FakeState]:
        """The state, to be read."""
        with self._lock:
            yield self._state


def made_id(prefix: str, name: str) -> str:
    """The id of what is created under ``name``: always the same."""
    return f"{prefix}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _read(path: str) -> FakeState:
    if not path or not os.path.exists(path):
        return FakeState()
    with open(path, encoding="utf-8") as file:
        stored = json.load(file)
    return FakeState(
        {name: FakeVolume(**value) for name, value in stored["volumes"].items()},
        {name: FakeSnapshot(**value) for name, value in stored["snapshots"].items()},
    )


def _write(path: str, state: FakeState) -> None:
    # Not synced: it has to outlive the process, not the machine.
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(state.to_json(), file)
    os.rename(f"{path}.new", path)
