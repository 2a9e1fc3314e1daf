"""Server-side apply: each manager owns the fields that it applied, may take only its own away, and others' by force."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from volumehost.testing.api_server.cluster import Cluster
from volumehost.testing.api_server.failures import StatusError, bad_request
from volumehost.testing.api_server.incoming import as_object
from volumehost.testing.api_server.ownership import Manager, Ownership, Path, content, leaves, told, told_path
from volumehost.testing.api_server.resources import Resource
from volumehost.testing.api_server.routing import Route
from volumehost.testing.api_server.storage import Document, Stored
from volumehost.testing.api_server.strategic_patches import strategic_patch
from volumehost.testing.api_server.writing import create, update


def apply(
    cluster: Cluster, ownership: Ownership, route: Route, data: Any, query: Mapping[str, str], *, dry: bool
) -> tuple[Stored, bool]:
    """Apply a configuration; the object, and whether it is new.

    :raises StatusError: it is none, lacks a manager, or takes away what another one owns.
    """
    resource = route.resource
    if resource is None:
        raise AssertionError("only routes to resources come here")
    manager, force = Manager(query.get("fieldManager", ""), True, route.subresource), query.get("force", "") == "true"
    if not manager.name:
        raise bad_request(
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
        )
    if not isinstance(data, dict) or not (data.get("apiVersion") and data.get("kind")):
        raise bad_request("invalid object type: apiVersion and kind must be set in an apply patch")
    wanted = as_object(data, resource, strict=query.get("fieldValidation") == "Strict")
    if wanted["metadata"].pop("managedFields", None):
        raise bad_request("metadata.managedFields must be nil")
    application = _Application(resource, ownership, manager, force, wanted, leaves(content(wanted)))

    def noted(_old: Document | None, document: Document) -> None:
        ownership.applied(manager, document, application.fields, force=force, now=cluster.clock())

    with cluster.storage.lock:
        key = (route.namespace if resource.namespaced else "", route.name)
        new = cluster.storage.get(resource, key) is None and not route.subresource
        if new:
            wanted["metadata"].setdefault("name", route.name)
            stored = create(cluster, resource, route.namespace, wanted, dry=dry, noted=noted)
        else:
            stored = update(cluster, route, application.merged, dry=dry, noted=noted)
    return stored, new


@dataclass(frozen=True)
class _Application:
    """What one manager wants of an object."""

    resource: Resource
    ownership: Ownership
    manager: Manager
    force: bool
    wanted: Document
    fields: Mapping[Path, Any]

    def merged(self, there: Document) -> Document:
        """The stored object with what is wanted, and without what is not any more."""
        uid = there["metadata"]["uid"]
        conflicts = list(self.ownership.conflicts(self.manager, uid, self.fields, leaves(content(there))))
        if conflicts and not self.force:
            raise _conflict(self.resource, conflicts)
        document = copy.deepcopy(there)
        for path in self.ownership.dropped(self.manager, uid, self.fields):
            _take(document, path)
        return as_object(strategic_patch(document, self.wanted), self.resource)


def _conflict(resource: Resource, conflicts: list[tuple[Manager, float, list[Path]]]) -> StatusError:
    causes = []
    texts = []
    for owner, since, paths in conflicts:
        name = told(owner, since, resource.api_version)
        fields = [told_path(path) for path in paths]
        causes += [
            {"reason": "FieldManagerConflict", "message": f"conflict with {name}", "field": field} for field in fields
        ]
        one = len(fields) == 1
        texts.append(f"conflict with {name}: {fields[0]}" if one else "\n- ".join([f"conflicts with {name}:", *fields]))
    count = "1 conflict" if len(causes) == 1 else f"{len(causes)} conflicts"
    return StatusError(409, f"Apply failed with {count}: " + "\n".join(texts), details={"causes": causes})


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
