"""Server-side apply: each manager owns the fields that it applied, may take only its own away, and others' by force.

Only what was applied is owned; what was written in other ways belongs to nobody here.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from volumehost.testing.api_server.cluster import Cluster
from volumehost.testing.api_server.failures import StatusError, bad_request
from volumehost.testing.api_server.incoming import as_object
from volumehost.testing.api_server.resources import Resource
from volumehost.testing.api_server.routing import Route
from volumehost.testing.api_server.storage import Document, Stored
from volumehost.testing.api_server.strategic_patches import merge_key, strategic_patch
from volumehost.testing.api_server.writing import create, update

#: A field: names of fields, and for items of lists that are told apart by a key, the key and its value.
Path = tuple[Any, ...]


class Applications:
    """Who applied which fields of which object. Its methods need the storage's lock."""

    def __init__(self) -> None:
        self._owned: dict[str, dict[str, set[Path]]] = {}

    def conflicts(self, uid: str, manager: str, wanted: Mapping[Path, Any], there: Mapping[Path, Any]) -> list[Path]:
        """Fields that others own and that would change, with their owners in front."""
        return [
            (owner, *path)
            for owner, paths in self._owned.get(uid, {}).items()
            for path in sorted(paths, key=str)
            if owner != manager and path in wanted and there.get(path) != wanted[path]
        ]

    def dropped(self, uid: str, manager: str, wanted: Mapping[Path, Any]) -> list[Path]:
        """Fields that the manager applied before and does not any more, and that nobody else owns."""
        owners = self._owned.get(uid, {})
        others = {path for owner, paths in owners.items() if owner != manager for path in paths}
        return [path for path in owners.get(manager, ()) if path not in wanted and path not in others]

    def note(self, uid: str, manager: str, wanted: Mapping[Path, Any], *, force: bool) -> None:
        """Let the manager own what it has applied."""
        owners = self._owned.setdefault(uid, {})
        if force:
            for paths in owners.values():
                paths.difference_update(wanted)
        owners[manager] = set(wanted)


def apply(
    cluster: Cluster, applications: Applications, route: Route, data: Any, query: Mapping[str, str], *, dry: bool
) -> tuple[Stored, bool]:
    """Apply a configuration; the object, and whether it is new.

    :raises StatusError: it is none, lacks a manager, or takes away what another one owns.
    """
    resource = route.resource
    if resource is None:
        raise AssertionError("only routes to resources come here")
    manager, force = query.get("fieldManager", ""), query.get("force", "") == "true"
    if not manager:
        raise bad_request(
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
        )
    if not isinstance(data, dict) or not (data.get("apiVersion") and data.get("kind")):
        raise bad_request("invalid object type: apiVersion and kind must be set in an apply patch")
    wanted = as_object(data, resource)
    application = _Application(resource, applications, manager, force, wanted, _leaves(_content(wanted)))
    with cluster.storage.lock:
        key = (route.namespace if resource.namespaced else "", route.name)
        new = cluster.storage.get(resource, key) is None and not route.subresource
        if new:
            wanted["metadata"].setdefault("name", route.name)
            stored = create(cluster, resource, route.namespace, wanted, dry=dry)
        else:
            stored = update(cluster, route, application.merged, dry=dry)
        if not dry:
            uid = stored.document["metadata"]["uid"]
            applications.note(uid, manager, application.fields, force=force)
    return stored, new


@dataclass(frozen=True)
class _Application:
    """What one manager wants of an object."""

    resource: Resource
    applications: Applications
    manager: str
    force: bool
    wanted: Document
    fields: Mapping[Path, Any]

    def merged(self, there: Document) -> Document:
        """The stored object with what is wanted, and without what is not any more."""
        uid = there["metadata"]["uid"]
        conflicts = self.applications.conflicts(uid, self.manager, self.fields, _leaves(_content(there)))
        if conflicts and not self.force:
            raise _conflict(self.resource, conflicts)
        document = copy.deepcopy(there)
        for path in self.applications.dropped(uid, self.manager, self.fields):
            _take(document, path)
        return as_object(strategic_patch(document, self.wanted), self.resource)


def _conflict(resource: Resource, conflicts: list[Path]) -> StatusError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{owner}" using {resource.api_version}',
            "field": "".join(f".{part}" if isinstance(part, str) else f'[{part[0]}="{part[1]}"]' for part in path),
        }
        for owner, *path in conflicts
    ]
    count = f"{len(causes)} conflict{'s' if len(causes) > 1 else ''}"
    told = ", ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    return StatusError(409, f"Apply failed with {count}: {told}", details={"causes": causes})


def _content(document: Document) -> Document:
    """The document without what names it, which nobody owns."""
    metadata = {
        key: value
        for key, value in document.get("metadata", {}).items()
        if key in ("labels", "annotations", "finalizers", "ownerReferences")
    }
    return {key: value for key, value in document.items() if key not in ("apiVersion", "kind")} | {"metadata": metadata}


def _leaves(value: Any, path: Path = (), field: str = "") -> dict[Path, Any]:
    """Every field with its value; lists without a key are one field."""
    found: dict[Path, Any] = {}
    key = merge_key(field)
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            found |= _leaves(item, (*path, name), name)
    elif isinstance(value, list) and key and all(isinstance(item, Mapping) and key in item for item in value):
        for item in value:
            found |= _leaves(item, (*path, (key, item[key])))
    elif path and value != {}:
        found[path] = value
    return found


def _take(document: Any, path: Path) -> None:
    """Take a field away, and what is empty without it."""
    first, rest = path[0], path[1:]
    if isinstance(first, tuple):
        place = next((index for index, item in enumerate(document) if item.get(first[0]) == first[1]), None)
        if place is None:
            return
        if rest:
            _take(document[place], rest)
        if not rest or document[place].keys() <= {first[0]}:
            del document[place]
        return
    if first not in document:
        return
    if rest:
        _take(document[first], rest)
    if not rest or document[first] in ({}, []):
        del document[first]
