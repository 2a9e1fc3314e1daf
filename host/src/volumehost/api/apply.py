"""Applies a manifest: the object is made, or changed to what the manifest says of it; the command line calls it.

What a manifest said before and says no longer is taken away again. A server that merges manifests itself (server-side
apply) knows that; for any other each apply leaves the *names* of its fields in ``metadata.managedFields``, in the same
form; no values, so no secrets.
"""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from volumehost.api.client import ApiClient, ServerSideApplier
from volumehost.api.convert import to_wire
from volumehost.api.objects import Secret
from volumehost.api.schema import Anything, MapOf, Shape, StructOf, shape_of
from volumehost.errors import AlreadyExistsError, ConflictError, ObjectNotFoundError

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject

#: Under this name the fields of a manifest are kept.
FIELD_MANAGER = "volumehost-apply"

#: How often an apply starts anew when somebody else changes the object at the same time, and for how long it gives way
#: before that at most, in seconds: chance chooses, from a span that doubles.
ATTEMPTS = 50
FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.1

Outcome = Literal["created", "configured", "unchanged"]

_IDENTITY = ("apiVersion", "kind", "status")
#: What a server does not take from a manifest; uid and resource version are conditions.
_SERVERS_OWN = frozenset({"managedFields", "creationTimestamp", "generation", "selfLink", "deletionTimestamp"})
_METADATA_IDENTITY = (
    "name",
    "namespace",
    "generateName",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
    "finalizers",
)


class Applied(msgspec.Struct, frozen=True):
    """What an apply did, and the object as it is now."""

    outcome: Outcome
    object: KubeObject


def apply_object(client: ApiClient, struct: type[KubeObject], document: Mapping[str, Any]) -> Applied:
    """Create the object of a manifest, or change it to what the manifest says.

    Fields that the manifest does not mention stay, unless an earlier apply set them. Lists are replaced as a whole,
    except for finalizers, which an apply adds and never takes away: they are the word of whoever still needs the
    object. A resource version or uid in the manifest is a condition.

    :param document: the manifest in wire form; it must name the object.
    :raises ConflictError: the manifest's condition does not hold, or others change the object all the time.
    :raises InvalidObjectError: it breaks the API's rules, or changes what must not change.
    """
    document = _merge_string_data(struct, document)
    if isinstance(client, ServerSideApplier):
        return _apply_there(client, struct, document)
    metadata = document.get("metadata") or {}
    name, namespace = str(metadata.get("name", "")), str(metadata.get("namespace") or "")
    conditional = "resourceVersion" in metadata
    for attempt in range(ATTEMPTS):
        if attempt:
            _give_way(attempt)
        try:
            live = client.get(struct, name, namespace)
        except ObjectNotFoundError:
            try:
                return Applied("created", client.create(_with_manager(document)))
            except AlreadyExistsError:
                continue
        try:
            changed = client.patch(struct, name, _patch(document, live), namespace)
        except ObjectNotFoundError:
            continue
        except ConflictError:
            other = metadata.get("uid") not in (None, "", live.metadata.uid)
            if conditional or other or attempt == ATTEMPTS - 1:
                raise
            continue
        same = changed.metadata.resource_version == live.metadata.resource_version
        return Applied("unchanged" if same else "configured", changed)
    raise ConflictError(
        f"others changed it during each of {ATTEMPTS} attempts",
        action=f"applying {struct.__name__} {name}",
        subject=name,
        hint="apply it again",
    )


def _apply_there(client: ServerSideApplier, struct: type[KubeObject], document: Mapping[str, Any]) -> Applied:
    """Leave it to the server, which knows how the lists of each kind are merged."""
    given = document.get("metadata") or {}
    metadata = {key: value for key, value in given.items() if key not in _SERVERS_OWN}
    wanted = {key: value for key, value in document.items() if key != "status"} | {"metadata": metadata}
    before = None
    if isinstance(client, ApiClient):
        with suppress(ObjectNotFoundError):
            before = client.get(struct, str(metadata.get("name", "")), str(metadata.get("namespace") or ""))
    after = client.apply(wanted, FIELD_MANAGER)
    if before is None or before.metadata.uid != after.metadata.uid:
        return Applied("created", after)
    same = before.metadata.resource_version == after.metadata.resource_version
    return Applied("unchanged" if same else "configured", after)


def _give_way(attempt: int) -> None:
    """Let whoever else is at it finish, for about as long as there seem to be others."""
    longest = min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE)
    time.sleep(random.uniform(0, longest))  # noqa: S311 - spreads attempts, guards nothing


def _merge_string_data(struct: type[KubeObject], document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A secret's ``stringData`` as ``data``, where it ends up: a key that goes must be missed there."""
    texts = document.get("stringData")
    if struct is not Secret or not isinstance(texts, Mapping):
        return document
    data = {key: base64.b64encode(str(text).encode()).decode("ascii") for key, text in texts.items()}
    rest = {key: value for key, value in document.items() if key != "stringData"}
    return {**rest, "data": {**(document.get("data") or {}), **data}}


def _patch(document: Mapping[str, Any], live: KubeObject) -> dict[str, Any]:
    """The merge patch that makes the live object what the manifest says, on condition that it is still the same."""
    wanted = _applied_fields(document)
    others = [entry for entry in live.metadata.managed_fields if entry.get("manager") != FIELD_MANAGER]
    ours = [entry for entry in live.metadata.managed_fields if entry.get("manager") == FIELD_MANAGER]
    before: Mapping[str, Any] = ours[0].get("fieldsV1", {}) if ours else {}
    now = field_names(wanted)
    entry = ours[0] if ours and before == now else _entry(document, now)
    given = document.get("metadata") or {}
    finalizers = dict.fromkeys([*live.metadata.finalizers, *(given.get("finalizers") or ())])
    bookkeeping = {
        "finalizers": list(finalizers) or None,
        "managedFields": [*others, entry],
        "resourceVersion": given.get("resourceVersion") or live.metadata.resource_version,
        "uid": given.get("uid") or live.metadata.uid,
    }
    gone = removals(before, now, to_wire(live), shape_of(type(live)))
    return _joined(_joined(wanted, gone), {"metadata": bookkeeping})


def _with_manager(document: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in (document.get("metadata") or {}).items() if key != "resourceVersion"}
    entry = _entry(document, field_names(_applied_fields(document)))
    return {**document, "metadata": {**metadata, "managedFields": [entry]}}


def _entry(document: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "manager": FIELD_MANAGER,
        "operation": "Apply",
        "apiVersion": document.get("apiVersion", ""),
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "fieldsType": "FieldsV1",
        "fieldsV1": dict(fields),
    }


def _applied_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest without what names the object and what the host itself keeps."""
    fields = {key: value for key, value in document.items() if key not in _IDENTITY and key != "metadata"}
    metadata = document.get("metadata") or {}
    kept = {key: value for key, value in metadata.items() if key not in _METADATA_IDENTITY}
    return {**fields, "metadata": kept} if kept else fields


def field_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The names of the fields as ``FieldsV1``: ``{"f:spec": {"f:capacity": {}}}``; lists have no parts."""
    return {
        f"f:{key}": field_names(value) if isinstance(value, Mapping) else {}
        for key, value in fields.items()
        if value is not None
    }


def removals(
    before: Mapping[str, Any], now: Mapping[str, Any], live: Mapping[str, Any], shape: Shape
) -> dict[str, Any]:
    """The merge patch that removes what was applied before and no longer is, where it is still there.

    Of a mapping with free keys (labels, data) only the keys that were applied go; a structure goes as a whole.
    """
    return dict(_removals(before, now, live, shape))


def _removals(
    before: Mapping[str, Any], now: Mapping[str, Any], live: Mapping[str, Any], shape: Shape
) -> Iterator[tuple[str, Any]]:
    for field, parts in before.items():
        key = field.removeprefix("f:")
        if key not in live:
            continue
        inner = shape.fields.get(key) if isinstance(shape, StructOf) else None
        in_parts = isinstance(inner, MapOf) or key == "metadata"
        if field not in now and not in_parts:
            yield key, None
        elif isinstance(live[key], Mapping):
            gone = removals(parts, now.get(field, {}), live[key], inner or Anything())
            if gone:
                yield key, gone


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Both patches in one; the second wins."""
    result = dict(one)
    for key, value in other.items():
        mine = result.get(key)
        result[key] = _joined(mine, value) if isinstance(mine, Mapping) and isinstance(value, Mapping) else value
    return result
