"""What is sent to the server: objects or mappings checked, and typed objects laid over what is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from volumehost.api.convert import decode_wire, to_wire, wire_mapping
from volumehost.api.defaults import DEFAULT_NAMESPACE
from volumehost.api.kinds import Kind, kind_for
from volumehost.api.kubernetes.asking import stored_kind
from volumehost.api.merging import merge_known
from volumehost.api.objects import KubeObject
from volumehost.api.schema import shape_of
from volumehost.errors import InvalidObjectError

Document = dict[str, Any]


class Outgoing(msgspec.Struct, frozen=True):
    """An object on its way out. ``complete``: it came as a mapping, so that nothing of the stored state is missing."""

    kind: Kind[Any]
    document: Document
    complete: bool

    @property
    def metadata(self) -> dict[str, Any]:
        """Its metadata, in wire form."""
        found: dict[str, Any] = self.document.setdefault("metadata", {})
        return found

    @property
    def name(self) -> str:
        """Its name, "" for one that is to be generated."""
        return str(self.metadata.get("name", ""))

    @property
    def namespace(self) -> str:
        """Its namespace, "" for kinds without one."""
        return str(self.metadata.get("namespace", ""))

    def over(self, stored: bytes) -> Document:
        """The document to send in place of the stored one: fields that the types do not know stay."""
        if self.complete:
            return self.document
        struct: type[KubeObject] = self.kind.struct
        return merge_known(msgspec.json.decode(stored), self.document, shape_of(struct))


def outgoing(obj: KubeObject | Mapping[str, Any]) -> Outgoing:
    """Check what is to be written; nothing is shared with what was handed in.

    :raises InvalidObjectError: a field has the wrong type.
    :raises UnknownKindError: the kind is not known.
    """
    if isinstance(obj, KubeObject):
        kind, complete = stored_kind(type(obj)), False
        document = to_wire(obj)
    elif isinstance(obj, Mapping):
        kind, complete = stored_kind(kind_for(_text(obj, "apiVersion"), _text(obj, "kind")).struct), True
        document = decode_wire(kind.struct, wire_mapping(kind.struct, obj)).value
    else:
        raise InvalidObjectError(subject=type(obj).__name__, problems=[("$", "is neither an API object nor a mapping")])
    found = Outgoing(kind, document, complete)
    if kind.namespaced:
        found.metadata["namespace"] = found.namespace or DEFAULT_NAMESPACE
    else:
        found.metadata.pop("namespace", None)
    return found


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidObjectError(subject="object", problems=[(f"$.{key}", "Required value")])
    return value
