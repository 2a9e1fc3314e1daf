"""How an object changes: creation, replacement, status, deletion. Pure functions on documents; the store keeps them.

What the system owns (uid, times, generation, deletion mark) never comes from the caller; only the uid of a mirror pod
is that of the pod which it shows.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import msgspec

from volumehost.api.convert import to_wire
from volumehost.api.defaults import set_create_defaults, set_defaults
from volumehost.api.embedded.incoming import Incoming
from volumehost.api.kinds import Kind
from volumehost.api.merging import merge_known
from volumehost.api.objects import KubeObject
from volumehost.api.schema import StructOf, shape_of
from volumehost.errors import ApiError, ConflictError, InvalidObjectError

Document = dict[str, Any]

#: No object is larger: 3 MiB, what an API server takes in one request.
MAX_OBJECT_BYTES = 3 * 1024 * 1024


def new_document(item: Incoming, *, uid: str, now: str) -> Document:
    """The document of a new object, which must have its name.

    :raises InvalidObjectError: it breaks a rule.
    """
    # Commands that only read never need it.
    from volumehost.api.validation import validate_create

    obj = item.typed
    metadata = obj.metadata
    if metadata.resource_version:
        raise InvalidObjectError(
            subject=item.kind.describe(metadata.name, metadata.namespace),
            problems=[("metadata.resourceVersion", "Forbidden: must not be set on objects to be created")],
        )
    metadata.uid = uid
    metadata.creation_timestamp = now
    metadata.generation = 1
    metadata.self_link = ""
    metadata.deletion_timestamp = metadata.deletion_grace_period_seconds = None
    if item.kind.has_status:
        item.document.pop("status", None)
        _reset_status(obj)
    set_create_defaults(set_defaults(obj))
    validate_create(obj, item.kind)
    return item.with_typed(obj)


def replaced_document(item: Incoming, stored: Document, old: KubeObject) -> Document:
    """The document after everything but the status was replaced.

    :raises ConflictError: a condition in the metadata does not hold.
    :raises InvalidObjectError: the new state breaks a rule.
    """
    from volumehost.api.validation import validate_update

    check_conditions(item.kind, item.typed, stored)
    obj, kept = item.typed, old.metadata
    metadata = obj.metadata
    metadata.uid = kept.uid
    metadata.resource_version = kept.resource_version
    metadata.creation_timestamp = kept.creation_timestamp
    metadata.generation = kept.generation
    metadata.generate_name = kept.generate_name
    metadata.self_link = ""
    metadata.deletion_timestamp = kept.deletion_timestamp
    metadata.deletion_grace_period_seconds = kept.deletion_grace_period_seconds
    if item.kind.has_status:
        item.document.pop("status", None)
        _reset_status(obj)
    set_defaults(obj)
    validate_update(obj, old, item.kind)
    document = item.with_typed(obj, stored)
    if item.kind.has_status:
        document["status"] = stored.get("status", {})
    if _desired(document) != _desired(stored):
        document["metadata"]["generation"] = kept.generation + 1
    return document


def concerns_finalizers(patch: Mapping[str, Any]) -> bool:
    """Whether a patch says nothing but which finalizers there are, perhaps with conditions."""
    wanted = patch.get("metadata")
    return (
        len(patch) == 1
        and isinstance(wanted, Mapping)
        and "finalizers" in wanted
        and wanted.keys() <= {"finalizers", "uid", "resourceVersion"}
    )


def without_finalizers(kind: Kind[Any], stored: Document, patch: Mapping[str, Any]) -> Document | None:
    """The document after a patch of the finalizers; None when it does more than take some away.

    Taking them away can break no rule, so that nothing else need be looked at.

    :raises ConflictError: a condition in the patch does not hold.
    """
    wanted = patch["metadata"]
    rest = wanted["finalizers"]
    there = stored["metadata"].get("finalizers", ())
    if rest is not None and not (isinstance(rest, list) and all(name in there for name in rest)):
        return None
    check_condition(kind, stored, uid=wanted.get("uid"), resource_version=wanted.get("resourceVersion"))
    metadata = {key: value for key, value in stored["metadata"].items() if key != "finalizers"}
    return stored | {"metadata": metadata | ({"finalizers": rest} if rest else {})}


def status_document(item: Incoming, stored: Document) -> Document:
    """The document after its status was replaced.

    :raises ConflictError: a condition in the metadata does not hold.
    :raises ApiError: the kind has no status of its own.
    """
    if not item.kind.has_status:
        raise ApiError(f"a {item.kind.kind} has no status of its own", subject=item.kind.kind)
    check_conditions(item.kind, item.typed, stored)
    status = item.document.get("status", {}) if item.complete else to_wire(item.typed).get("status", {})
    if not item.complete:
        shape = shape_of(item.kind.struct).fields["status"]
        if isinstance(shape, StructOf):
            status = merge_known(stored.get("status", {}), status, shape)
    return copy.copy(stored) | {"status": status}


def marked_document(stored: Document, *, now: str) -> Document:
    """The document of an object that goes as soon as its last finalizer does."""
    metadata = dict(stored["metadata"])
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = now
        metadata["deletionGracePeriodSeconds"] = 0
        metadata["generation"] = metadata.get("generation", 0) + 1
    return stored | {"metadata": metadata}


def is_finished(document: Document) -> bool:
    """Whether nothing keeps a marked object any more."""
    metadata = document["metadata"]
    return "deletionTimestamp" in metadata and not metadata.get("finalizers")


def check_conditions(kind: Kind[Any], obj: KubeObject, stored: Document) -> None:
    """Refuse a write that was meant for another state or another object of that name.

    :raises ConflictError: the resource version or the uid is another.
    """
    check_condition(kind, stored, uid=obj.metadata.uid, resource_version=obj.metadata.resource_version)


def check_condition(
    kind: Kind[Any], stored: Document, *, uid: str | None = None, resource_version: str | None = None
) -> None:
    """The same for conditions given one by one; "" and None are none.

    :raises ConflictError: one of them does not hold.
    """
    metadata = stored["metadata"]
    subject = kind.describe(metadata["name"], metadata.get("namespace", ""))
    if uid and uid != metadata["uid"]:
        raise ConflictError(
            f"{subject} is another object of that name (uid {metadata['uid']}, not {uid})",
            subject=subject,
            hint="it was deleted and made again: read it",
        )
    if resource_version and resource_version != metadata["resourceVersion"]:
        raise ConflictError(
            f"{subject} has changed since it was read (resource version {metadata['resourceVersion']}, "
            f"not {resource_version})",
            subject=subject,
            hint="read it again and retry",
        )


def _reset_status(obj: Any) -> None:
    obj.status = type(obj.status)()


def _desired(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in {"metadata", "status"}}


def encode(document: Document) -> bytes:
    """The document as it is kept.

    :raises InvalidObjectError: it is larger than an API server would take.
    """
    body = msgspec.json.encode(document)
    if len(body) > MAX_OBJECT_BYTES:
        subject = f"{document['kind']} {document['metadata']['name']}"
        raise InvalidObjectError(
            subject=subject, problems=[("$", f"Too long: may not be more than {MAX_OBJECT_BYTES} bytes")]
        )
    return body
