"""What callers hand in, checked and typed, whichever form it had."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from volumehost.api.convert import decode_wire, to_wire, wire_mapping
from volumehost.api.defaults import DEFAULT_NAMESPACE
from volumehost.api.kinds import Kind, kind_for, kind_of
from volumehost.api.merging import merge_known
from volumehost.api.objects import KubeObject
from volumehost.api.schema import shape_of
from volumehost.errors import InvalidObjectError, NotAvailableOnHostError, StoreError


class Incoming(msgspec.Struct, frozen=True):
    """An object on its way in: typed, and as the document that the store would keep.

    ``complete``: the document has everything, unknown fields too, because it came as a mapping. Otherwise unknown
    fields are those of the stored object. ``exact``: the document has no unknown fields.
    """

    kind: Kind[KubeObject]
    typed: KubeObject
    document: dict[str, Any]
    complete: bool
    exact: bool

    def with_typed(self, typed: KubeObject, stored: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The document to keep after ``typed`` was changed."""
        whole = self.complete or stored is None
        if whole and self.exact:
            return to_wire(typed)
        base: Mapping[str, Any] = self.document if whole or stored is None else stored
        return merge_known(base, to_wire(typed), shape_of(self.kind.struct))


def incoming(obj: KubeObject | Mapping[str, Any]) -> Incoming:
    """Check types and kind of an object or a mapping; nothing is shared with what was handed in.

    :raises InvalidObjectError: a field has the wrong type.
    :raises UnknownKindError: the kind is not known.
    """
    if isinstance(obj, KubeObject):
        kind, complete = kind_of(type(obj)), False
    elif isinstance(obj, Mapping):
        kind, complete = kind_for(_text(obj, "apiVersion"), _text(obj, "kind")), True
    else:
        raise InvalidObjectError(subject=type(obj).__name__, problems=[("$", "is neither an API object nor a mapping")])
    check_stored(kind)
    decoded = decode_wire(kind.struct, wire_mapping(kind.struct, obj))
    typed = msgspec.convert(decoded.value, type=kind.struct)
    if kind.namespaced:
        typed.metadata.namespace = storage_namespace(kind, typed.metadata.namespace)
    return Incoming(kind, typed, decoded.value, complete, exact=not decoded.unknown)


def check_stored(kind: Kind[KubeObject]) -> None:
    """Refuse kinds that are requests.

    :raises NotAvailableOnHostError: the embedded store has nobody who answers them.
    """
    if not kind.stored:
        raise NotAvailableOnHostError(
            f"the embedded store answers no {kind.kind}",
            subject=kind.kind,
            hint="a Kubernetes API server does",
        )


def storage_namespace(kind: Kind[Any], namespace: str) -> str:
    """The namespace under which an object of the kind is kept."""
    return (namespace or DEFAULT_NAMESPACE) if kind.namespaced else ""


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidObjectError(subject="object", problems=[(f"$.{key}", "Required value")])
    return value


@cache
def _decoder(struct: type[KubeObject]) -> msgspec.json.Decoder[KubeObject]:
    return msgspec.json.Decoder(struct)


def typed_from_body(kind: Kind[Any], body: bytes) -> Any:
    """The typed object that a stored body holds.

    :raises StoreError: the body is not what this version can read.
    """
    try:
        struct: type[KubeObject] = kind.struct
        return _decoder(struct).decode(body)
    except msgspec.MsgspecError as error:
        raise _unreadable(kind, error) from error


def typed_from_document(kind: Kind[Any], document: Mapping[str, Any]) -> Any:
    """The typed object that a stored document is.

    :raises StoreError: as above.
    """
    try:
        return msgspec.convert(document, type=kind.struct)
    except msgspec.MsgspecError as error:
        raise _unreadable(kind, error) from error


def _unreadable(kind: Kind[Any], error: msgspec.MsgspecError) -> StoreError:
    return StoreError(
        f"a stored {kind.kind} cannot be read: {error}",
        action="read the store",
        subject=kind.kind,
        hint="it was written by another version, or the file was changed by hand",
    )
