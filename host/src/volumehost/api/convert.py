"""Between API types and everything else: mappings, JSON, YAML and the ``kubernetes`` client's models.

The host calls :func:`to_object` wherever it takes an API object from a caller.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from volumehost.api.decoding import Decoded, decode, timestamp
from volumehost.api.objects import ApiStruct, KubeObject
from volumehost.api.schema import shape_of
from volumehost.errors import InvalidObjectError

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T", bound=ApiStruct)


def to_object(struct: type[T], thing: object) -> T:
    """An API object from one of ours (returned as it is), a mapping, JSON text or a ``kubernetes`` model.

    :raises InvalidObjectError: something in it has the wrong type or it is of another kind.
    """
    if isinstance(thing, struct):
        return thing
    decoded = decode_wire(struct, wire_mapping(struct, thing))
    return msgspec.convert(decoded.value, type=struct)


def wire_mapping(struct: type[ApiStruct], thing: object) -> Mapping[str, Any]:
    """The thing as a mapping in wire form."""
    if isinstance(thing, (str, bytes)):
        try:
            thing = msgspec.json.decode(thing)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _invalid(struct, {}, [("$", f"is not JSON: {error}")]) from None
    elif isinstance(thing, ApiStruct):
        return to_wire(thing)
    elif is_client_model(thing):
        thing = _model_to_wire(thing)
    if not isinstance(thing, Mapping):
        raise _invalid(struct, {}, [("$", f"expected object, got {type(thing).__name__}")])
    return thing


def decode_wire(struct: type[ApiStruct], document: Mapping[str, Any]) -> Decoded:
    """Fit a mapping to the struct, kind and version included.

    :raises InvalidObjectError: it does not fit.
    """
    decoded = decode(document, shape_of(struct))
    problems = [*_wrong_kind(struct, document), *decoded.problems]
    if problems:
        raise _invalid(struct, document, problems)
    if issubclass(struct, KubeObject):
        kind, api_version = _kind_of(struct)
        # In the order in which people write and read them.
        decoded.value = {"apiVersion": api_version, "kind": kind} | decoded.value
    return decoded


@functools.cache
def _kind_of(struct: type[KubeObject]) -> tuple[str, str]:
    """Kind and version of the type, as one that has just been made says."""
    empty = struct()
    return empty.kind, empty.api_version


def _wrong_kind(struct: type[ApiStruct], document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if not issubclass(struct, KubeObject):
        return
    for field, wanted in zip(("kind", "apiVersion"), _kind_of(struct), strict=True):
        found = document.get(field)
        if found is not None and found != wanted:
            yield f"$.{field}", f"expected {wanted}, got {found}"


def _invalid(
    struct: type[ApiStruct], document: Mapping[str, Any], problems: list[tuple[str, str]]
) -> InvalidObjectError:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    subject = f"{struct.__name__} {name}" if isinstance(name, str) and name else struct.__name__
    return InvalidObjectError(subject=subject, problems=problems)


def to_wire(obj: ApiStruct) -> dict[str, Any]:
    """The object as plain data with wire names, ready for JSON or YAML. Bytes are base64 text."""
    return cast("dict[str, Any]", msgspec.to_builtins(obj))


def to_json(obj: ApiStruct | Mapping[str, Any], *, indent: int = 0) -> str:
    """The object as JSON, on one line unless ``indent`` is given."""
    data = msgspec.json.encode(obj)
    return (msgspec.json.format(data, indent=indent) if indent else data).decode()


def to_yaml(obj: ApiStruct | Mapping[str, Any]) -> str:
    """The object as one YAML document, which every YAML 1.1 and 1.2 reader reads alike."""
    from volumehost.api.yaml_writer import dump_yaml

    return dump_yaml(to_wire(obj) if isinstance(obj, ApiStruct) else obj)


# --- models of the kubernetes client, without importing it ------------------------------------------------


def is_client_model(thing: object) -> bool:
    """Whether it has the shape of a model that OpenAPI generators make for Python."""
    kind = type(thing)
    return all(hasattr(kind, name) for name in ("openapi_types", "attribute_map", "to_dict"))


def _model_to_wire(thing: Any) -> Any:
    if is_client_model(thing):
        values = ((wire, getattr(thing, name)) for name, wire in type(thing).attribute_map.items())
        return {wire: _model_to_wire(value) for wire, value in values if value is not None}
    if isinstance(thing, Mapping):
        return {key: _model_to_wire(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_model_to_wire(item) for item in thing]
    if isinstance(thing, dt.datetime):
        return timestamp(thing)
    return thing
