"""Which manager owns which fields of an object: what server-side apply asks before it changes something."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from volumehost.testing.api_server.storage import Document
from volumehost.testing.api_server.strategic_patches import merge_key

#: A field: names of fields, and for items of lists that are told apart by a key, the key and its value.
Path = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Manager:
    """Who writes: by applying, or in any other way."""

    name: str
    applies: bool = False
    subresource: str = ""


@dataclass(slots=True)
class _Owned:
    paths: set[Path]
    since: float


class Ownership:
    """The owners of the fields of all objects. Its methods need the storage's lock.

    :param shown: whether objects show it, as ``managedFields``.
    """

    def __init__(self, *, shown: bool = False) -> None:
        self._shown = shown
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
        self._show(new)

    def applied(self, manager: Manager, new: Document, wanted: Mapping[Path, Any], *, force: bool, now: float) -> None:
        """Let a manager own what it has applied, and nothing else; alone where that was by force."""
        owners = self._owned.setdefault(new["metadata"]["uid"], {})
        if force:
            for owned in owners.values():
                owned.paths.difference_update(wanted)
        there = owners.get(manager)
        if there is None or there.paths != set(wanted):
            owners[manager] = _Owned(set(wanted), now)
        self._show(new)

    def _show(self, document: Document) -> None:
        if not self._shown:
            return
        document["metadata"]["managedFields"] = [
            {
                "manager": manager.name,
                "operation": "Apply" if manager.applies else "Update",
                "apiVersion": document["apiVersion"],
                "time": _moment(owned.since),
                "fieldsType": "FieldsV1",
                "fieldsV1": _fields(owned.paths),
                **({"subresource": manager.subresource} if manager.subresource else {}),
            }
            for manager, owned in self._owned[document["metadata"]["uid"]].items()
            if owned.paths
        ]

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
    name = f'"{manager.name}"' + (f' with subresource "{manager.subresource}"' if manager.subresource else "")
    return name if manager.applies else f"{name} using {api_version} at {_moment(since)}"


def _moment(since: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))


def _fields(paths: Iterable[Path]) -> Document:
    """Fields as ``fieldsV1`` has them."""
    fields: Document = {}
    for path in sorted(paths, key=str):
        there = fields
        for part in path:
            if isinstance(part, str):
                there = there.setdefault(f"f:{part}", {})
            else:
                key = msgspec.json.encode({part[0]: part[1]}).decode()
                there = there.setdefault(f"k:{key}", {".": {}})
    return fields


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
    elif isinstance(value, list) and key and all(_has_key(item, key) for item in value):
        for item in value:
            found |= leaves(item, (*path, (key, item[key])))
    elif path and value != {}:
        found[path] = value
    return found


def _has_key(item: Any, key: str) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get(key), (str, int))
