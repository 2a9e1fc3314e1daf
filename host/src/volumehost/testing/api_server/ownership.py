"""Which manager owns which fields of an object: what server-side apply asks before it changes something."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from volumehost.testing.api_server.storage import Document
from volumehost.testing.api_server.strategic_patches import merge_key

#: A field: names of fields, and for items of lists that are told apart by a key, the key and its value.
Path = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Manager:
    """Who writes: by applying, or in any other way."""

    name: str
    applies: bool = False


@dataclass(slots=True)
class _Owned:
    paths: set[Path]
    since: float


class Ownership:
    """The owners of the fields of all objects. Its methods need the storage's lock."""

    def __init__(self) -> None:
        self._owned: dict[str, dict[Manager, _Owned]] = {}

    def written(self, manager: Manager, old: Document | None, new: Document, *, now: float) -> None:
        """Let a manager own what it has changed, alone."""
        before, after = ({} if old is None else leaves(content(old))), leaves(content(new))
        changed = {path for path, value in after.items() if path not in before or before[path] != value}
        owners = self._owned.setdefault(new["metadata"]["uid"], {})
        for owned in owners.values():
            owned.paths -= changed
            owned.paths &= after.keys()
        if changed:
            there = owners.setdefault(manager, _Owned(set(), now))
            there.paths |= changed
            there.since = now

    def applied(self, manager: Manager, uid: str, wanted: Mapping[Path, Any], *, force: bool, now: float) -> None:
        """Let a manager own what it has applied, and nothing else; alone where that was by force."""
        owners = self._owned.setdefault(uid, {})
        if force:
            for owned in owners.values():
                owned.paths.difference_update(wanted)
        owners[manager] = _Owned(set(wanted), now)

    def conflicts(
        self, manager: Manager, uid: str, wanted: Mapping[Path, Any], there: Mapping[Path, Any]
    ) -> Iterator[tuple[Manager, float, list[Path]]]:
        """The other owners of fields that would change, since when they are, and these fields."""
        for owner, owned in self._owned.get(uid, {}).items():
            paths = [path for path in owned.paths if path in wanted and there.get(path) != wanted[path]]
            if owner != manager and paths:
                yield owner, owned.since, sorted(paths, key=str)

    def dropped(self, manager: Manager, uid: str, wanted: Mapping[Path, Any]) -> Iterable[Path]:
        """Fields that a manager applied before and does not any more, and that nobody else owns."""
        owners = self._owned.get(uid, {})
        if manager not in owners:
            return ()
        others = {path for owner, owned in owners.items() if owner != manager for path in owned.paths}
        return [path for path in owners[manager].paths if path not in wanted and path not in others]


def told(manager: Manager, since: float, api_version: str) -> str:
    """How a manager is called in messages."""
    if manager.applies:
        return f'"{manager.name}"'
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
    return f'"{manager.name}" using {api_version} at {moment}'


def told_path(path: Path) -> str:
    """How a field is called in messages."""
    return "".join(f".{part}" if isinstance(part, str) else f'[{part[0]}="{part[1]}"]' for part in path)


def content(document: Document) -> Document:
    """The document without what names it, which nobody owns."""
    metadata = {
        key: value
        for key, value in document.get("metadata", {}).items()
        if key in ("labels", "annotations", "finalizers", "ownerReferences")
    }
    return {key: value for key, value in document.items() if key not in ("apiVersion", "kind")} | {"metadata": metadata}


def leaves(value: Any, path: Path = (), field: str = "") -> dict[Path, Any]:
    """Every field with its value; lists without a key are one field."""
    found: dict[Path, Any] = {}
    key = merge_key(field)
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            found |= leaves(item, (*path, name), name)
    elif isinstance(value, list) and key and all(isinstance(item, Mapping) and key in item for item in value):
        for item in value:
            found |= leaves(item, (*path, (key, item[key])))
    elif path and value != {}:
        found[path] = value
    return found
