"""Create, replace and change objects, their status apart; what may not change, and when it is too late."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from volumehost.api.validation import validate_create, validate_update
from volumehost.errors import InvalidObjectError
from volumehost.testing.api_server.admission import admit_change, admit_new
from volumehost.testing.api_server.cluster import Cluster
from volumehost.testing.api_server.defaulting import typed, with_defaults
from volumehost.testing.api_server.failures import StatusError, already_exists, bad_request, conflict, invalid
from volumehost.testing.api_server.pod_updates import check_pod_update
from volumehost.testing.api_server.resources import Resource, find
from volumehost.testing.api_server.routing import Route
from volumehost.testing.api_server.storage import Document, Key, Stored

#: What of the metadata the server alone decides, and keeps.
_OWNED = (
    *("uid", "resourceVersion", "creationTimestamp", "generation", "generateName", "selfLink", "namespace"),
    *("deletionTimestamp", "deletionGracePeriodSeconds"),
)
_LONGEST_BASE = 58


#: Told of the state before, None for a new object, and of the one after.
Noted = Callable[[Document | None, Document], None]


def _unnoted(_old: Document | None, _new: Document) -> None:
    pass


def create(
    cluster: Cluster,
    resource: Resource,
    namespace: str,
    document: Document,
    *,
    dry: bool = False,
    noted: Noted = _unnoted,
) -> Stored:
    """Make a new object of a document that was read for this.

    :raises StatusError: there is one, or its namespace is not there, or it breaks a rule.
    """
    if resource.qualified == "events.events.k8s.io":
        resource = find("events")
        document |= {"apiVersion": "v1"}
    document = copy.deepcopy(document)
    metadata = document["metadata"]
    _place(resource, metadata, namespace)
    if metadata.pop("resourceVersion", ""):
        raise StatusError(500, "resourceVersion should not be set on objects to be created", reason="InternalError")
    generated = not metadata.get("name") and bool(metadata.get("generateName"))
    if generated:
        metadata["name"] = metadata["generateName"][:_LONGEST_BASE] + cluster.suffix()
    if not metadata.get("name"):
        raise invalid(resource, "", [("metadata.name", "Required value: name or generateName is required")])
    with cluster.storage.lock:
        if resource.namespaced:
            cluster.check_namespace(resource, metadata["namespace"], metadata["name"])
        document = _new_document(cluster, resource, document)
        if cluster.storage.get(resource, (metadata.get("namespace", ""), metadata["name"])) is not None:
            raise already_exists(resource, metadata["name"])
        if dry:
            return Stored(document, 0)
        noted(None, document)
        return cluster.storage.put(resource, document)


def _place(resource: Resource, metadata: Document, namespace: str) -> None:
    if not resource.namespaced:
        metadata.pop("namespace", None)
        return
    if metadata.setdefault("namespace", namespace) != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _new_document(cluster: Cluster, resource: Resource, document: Document) -> Document:
    metadata = document["metadata"]
    for name in _OWNED:
        if name not in ("generateName", "namespace"):
            metadata.pop(name, None)
    metadata["uid"] = cluster.uid()
    metadata["creationTimestamp"] = cluster.now()
    if resource.has_generation:
        metadata["generation"] = 1
    if resource.known.has_status and resource.plural != "nodes":  # a node registers with its status
        document.pop("status", None)
    document = with_defaults(resource, document, new=True)
    if resource.plural == "persistentvolumes":
        document["status"]["lastPhaseTransitionTime"] = cluster.now()
    admit_new(cluster, resource, document)
    if resource.plural == "pods":
        _check_images(resource, document)
    _validate(resource, metadata["name"], lambda: validate_create(typed(resource, document), resource.known))
    return document


def update(
    cluster: Cluster,
    route: Route,
    change: Callable[[Document], Document],
    *,
    dry: bool = False,
    noted: Noted = _unnoted,
) -> Stored:
    """Replace an object, or its status, by what ``change`` makes of the stored one.

    :raises StatusError: there is no such object, it has changed, or the change breaks a rule.
    """
    resource = storage_resource(route)
    key = (route.namespace if resource.namespaced else "", route.name)
    with cluster.storage.lock:
        stored = cluster.existing(resource, key)
        document = copy.deepcopy(change(stored.document))
        _check_identity(resource, document, stored.document)
        if route.subresource == "finalize":
            document = copy.deepcopy(stored.document) | {"spec": document.get("spec", {})}
        elif route.subresource == "status":
            document = _status_document(cluster, resource, document, stored.document)
        else:
            document = _replaced_document(cluster, resource, document, stored.document)
        if not dry:
            noted(stored.document, document)
        return keep(cluster, resource, key, stored, document, dry=dry)


def keep(
    cluster: Cluster, resource: Resource, key: Key, stored: Stored, document: Document, *, dry: bool = False
) -> Stored:
    """Store a new state, unless it is the old one; an object that is to go and that nothing holds goes."""
    if document == stored.document:
        return stored
    if dry:
        return Stored(document, stored.revision)
    metadata = document["metadata"]
    grace = metadata.get("deletionGracePeriodSeconds") or 0
    held = metadata.get("finalizers") or (
        resource.plural == "namespaces" and document.get("spec", {}).get("finalizers")
    )
    if "deletionTimestamp" in metadata and not held and not grace:
        cluster.storage.remove(resource, key)
        return Stored(document, stored.revision)  # whoever took the last finalizer is not told the version of the end
    return cluster.storage.put(resource, document)


def storage_resource(route: Route) -> Resource:
    """The resource under which the objects of a route are kept."""
    if route.resource is None:
        raise AssertionError("only routes to resources come here")
    return find("events") if route.resource.qualified == "events.events.k8s.io" else route.resource


def _check_identity(resource: Resource, document: Document, old: Document) -> None:
    """Refuse what was meant for another object or for another state.

    :raises StatusError: it was (400, 409, 422).
    """
    new, kept = document["metadata"], old["metadata"]
    name = kept["name"]
    if new.get("name", name) != name:
        raise bad_request(f"the name of the object ({new['name']}) does not match the name on the URL ({name})")
    if new.get("namespace", kept.get("namespace")) != kept.get("namespace"):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    version = new.get("resourceVersion", "")
    if not version and not resource.unconditional_update:
        text = "Invalid value: 0: must be specified for an update"
        raise invalid(resource, name, [("metadata.resourceVersion", text)])
    if new.get("uid", kept["uid"]) != kept["uid"]:
        raise conflict(
            resource,
            name,
            f"Precondition failed: UID in precondition: {new['uid']}, UID in object meta: {kept['uid']}",
        )
    if version and version != kept["resourceVersion"]:
        raise conflict(resource, name)


def _carried(document: Document, old: Document) -> Document:
    """The document's metadata with what is the server's own as it was."""
    kept = old["metadata"]
    metadata = {key: value for key, value in document["metadata"].items() if key not in _OWNED}
    return metadata | {key: kept[key] for key in _OWNED if key in kept} | {"name": kept["name"]}


def _replaced_document(cluster: Cluster, resource: Resource, document: Document, old: Document) -> Document:
    document["metadata"] = _carried(document, old)
    if resource.known.has_status:
        document.pop("status", None)
        if "status" in old:
            document["status"] = copy.deepcopy(old["status"])
    if resource.plural == "namespaces":
        document["spec"] = copy.deepcopy(old["spec"])  # only its finalize subresource changes that
    document = with_defaults(resource, document, new=False)
    _clean(document["metadata"])
    if resource.has_generation and _wanted(document) != _wanted(old):
        document["metadata"]["generation"] = old["metadata"]["generation"] + 1
    _check_change(cluster, resource, document, old)
    return document


def _status_document(cluster: Cluster, resource: Resource, document: Document, old: Document) -> Document:
    status = document.get("status")
    metadata = _carried(document, old)
    kept = old["metadata"]
    fixed = ["ownerReferences"]
    if resource.status_keeps_metadata:
        fixed += ["labels", "annotations", "finalizers"]
    for name in fixed:
        metadata.pop(name, None)
        if name in kept:
            metadata[name] = copy.deepcopy(kept[name])
    document = {key: copy.deepcopy(value) for key, value in old.items() if key != "status"} | {"metadata": metadata}
    if status is not None:
        document["status"] = status
    document = with_defaults(resource, document, new=False)
    _clean(document["metadata"])
    if resource.plural == "persistentvolumes" and _phase(document) != _phase(old):
        document["status"]["lastPhaseTransitionTime"] = cluster.now()
    _check_change(cluster, resource, document, old)
    return document


def _phase(document: Document) -> Any:
    return document.get("status", {}).get("phase")


def _check_change(cluster: Cluster, resource: Resource, document: Document, old: Document) -> None:
    if resource.plural == "pods":
        check_pod_update(resource, document, old)
    new, before = typed(resource, document), typed(resource, old)
    _validate(resource, old["metadata"]["name"], lambda: validate_update(new, before, resource.known))
    admit_change(cluster, resource, document, old)


def _clean(metadata: Document) -> None:
    """Without empty maps and lists, which are not written."""
    for name in ("labels", "annotations", "finalizers", "ownerReferences", "managedFields"):
        if name in metadata and not metadata[name]:
            del metadata[name]


def _wanted(document: Document) -> Document:
    return {key: value for key, value in document.items() if key not in ("metadata", "status")}


def _check_images(resource: Resource, pod: Document) -> None:
    """Containers run images; whoever runs them without a cluster may do otherwise."""
    problems = [
        (f"spec.{field}[{index}].image", "Required value")
        for field in ("initContainers", "containers", "ephemeralContainers")
        for index, container in enumerate(pod["spec"].get(field, ()))
        if not container.get("image")
    ]
    if problems:
        raise invalid(resource, pod["metadata"]["name"], problems)


def _validate(resource: Resource, name: str, check: Callable[[], None]) -> None:
    try:
        check()
    except InvalidObjectError as error:
        raise invalid(resource, name, error.problems) from None
