"""Delete: at once, or marked until the grace period and the finalizers are over; preconditions; propagation."""

from __future__ import annotations

import calendar
import copy
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from volumehost.testing.api_server.cluster import Cluster, parse_revision, view
from volumehost.testing.api_server.failures import StatusError, bad_request, conflict
from volumehost.testing.api_server.incoming import as_struct
from volumehost.testing.api_server.kinds import DeleteOptions
from volumehost.testing.api_server.messages import Answer, HttpRequest, answer
from volumehost.testing.api_server.resources import Resource
from volumehost.testing.api_server.routing import Route
from volumehost.testing.api_server.selecting import matcher
from volumehost.testing.api_server.storage import Document, Key, Stored
from volumehost.testing.api_server.writing import keep, storage_resource

_FINISHED = ("Succeeded", "Failed")
_PROPAGATION = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


def read_options(request: HttpRequest) -> Document:
    """The DeleteOptions of a request, from its body and its parameters.

    :raises StatusError: they are none.
    """
    options: Document = {}
    if request.body:
        try:
            said = msgspec.json.decode(request.body)
        except msgspec.MsgspecError as error:
            raise bad_request(f"error decoding DeleteOptions: {error}") from None
        options = as_struct(said, DeleteOptions)
    query = request.query
    if "gracePeriodSeconds" in query:
        options.setdefault("gracePeriodSeconds", parse_revision(query["gracePeriodSeconds"], "gracePeriodSeconds"))
    if "propagationPolicy" in query:
        options.setdefault("propagationPolicy", query["propagationPolicy"])
    if query.get("dryRun"):
        options.setdefault("dryRun", [query["dryRun"]])
    policy = options.get("propagationPolicy")
    if policy not in (None, "Background", *_PROPAGATION):
        raise StatusError(
            422,
            f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "{policy}": supported '
            'values: "Background", "Foreground", "Orphan", ""',
        )
    return options


def delete(cluster: Cluster, route: Route, options: Document) -> Answer:
    """Delete one object; answers with it, or for some kinds that are gone at once with a Status.

    :raises StatusError: there is none, or a precondition does not hold.
    """
    resource = storage_resource(route)
    key = (route.namespace if resource.namespaced else "", route.name)
    with cluster.storage.lock:
        gone, last = delete_stored(cluster, resource, key, options)
    shown = route.resource or resource
    if not gone or resource.returns_deleted:
        return answer(view(shown, last))
    return answer(_success(shown, last))


def _success(resource: Resource, last: Stored) -> Document:
    metadata = last.document["metadata"]
    group = {"group": resource.group} if resource.group else {}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": metadata["name"], **group, "kind": resource.plural, "uid": metadata["uid"]},
    }


def delete_stored(cluster: Cluster, resource: Resource, key: Key, options: Document) -> tuple[bool, Stored]:
    """Delete a stored object; whether it is gone, and its last or its marked state.

    :raises StatusError: there is none, or a precondition does not hold.
    """
    stored = cluster.existing(resource, key)
    _check_preconditions(resource, stored.document, options.get("preconditions") or {})
    document = copy.deepcopy(stored.document)
    metadata = document["metadata"]
    finalizers = _finalizers(metadata, options)
    grace = _grace(resource, document, options.get("gracePeriodSeconds"))
    dry = bool(options.get("dryRun"))
    if resource.plural == "namespaces" and document.get("spec", {}).get("finalizers"):
        # It goes when its content has gone: the namespace controller then takes the finalizer from its spec.
        document["status"] = {**document.get("status", {}), "phase": "Terminating"}
    elif not finalizers and not grace:
        return True, stored if dry else cluster.storage.remove(resource, key)
    _mark(cluster, metadata, grace)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    return False, keep(cluster, resource, key, stored, document, dry=dry)


def delete_collection(cluster: Cluster, route: Route, options: Document, query: dict[str, str]) -> Answer:
    """Delete all objects that are selected.

    :raises StatusError: a selector cannot be used.
    """
    resource = storage_resource(route)
    matches = matcher(resource, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    items: list[bytes] = []
    with cluster.storage.lock:
        for key, stored in cluster.storage.all(resource):
            if (not route.namespace or key[0] == route.namespace) and matches(stored.document):
                delete_stored(cluster, resource, key, options)
                items.append(stored.item)
        metadata = {"resourceVersion": str(cluster.storage.revision)}
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
    return Answer(200, msgspec.json.encode(head)[:-1] + b',"items":[' + b",".join(items) + b"]}")


def _check_preconditions(resource: Resource, document: Document, wanted: Mapping[str, Any]) -> None:
    metadata = document["metadata"]
    for field, told, why in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        expected = wanted.get(field)
        if expected and expected != metadata[field]:
            raise conflict(
                resource,
                metadata["name"],
                f"the {told} in the precondition ({expected}) does not match the {told} in record "
                f"({metadata[field]}). The object might have been {why}",
            )


def _finalizers(metadata: Document, options: Document) -> list[str]:
    """The finalizers that hold the object, with the one that the propagation asks for."""
    found = list(metadata.get("finalizers", ()))
    wanted = _PROPAGATION.get(options.get("propagationPolicy", ""), "")
    if options.get("propagationPolicy") or options.get("orphanDependents") is not None:
        found = [name for name in found if name not in _PROPAGATION.values()]
    if wanted and "deletionTimestamp" not in metadata:
        found.append(wanted)
    return found


def _grace(resource: Resource, document: Document, asked: Any) -> int:
    """The seconds that an object has until it must be gone; only pods on a node have any."""
    if resource.plural != "pods":
        return 0
    spec, status = document.get("spec", {}), document.get("status", {})
    if not spec.get("nodeName") or status.get("phase") in _FINISHED:
        return 0
    grace = int(spec.get("terminationGracePeriodSeconds", 30) if asked is None else asked)
    before = document["metadata"].get("deletionGracePeriodSeconds")
    if before is not None:
        grace = min(grace, before)
    return max(grace, 0)


def _mark(cluster: Cluster, metadata: Document, grace: int) -> None:
    if "deletionTimestamp" not in metadata:
        if "generation" in metadata:
            metadata["generation"] += 1
        started = int(cluster.clock())
    else:
        before = metadata.get("deletionGracePeriodSeconds", 0)
        if grace >= before:
            return
        started = calendar.timegm(time.strptime(metadata["deletionTimestamp"], "%Y-%m-%dT%H:%M:%SZ")) - before
    metadata["deletionTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started + grace))
    metadata["deletionGracePeriodSeconds"] = grace
