"""From JSON-like data to data that fits an API type: wrong types are told with their field paths, all at once.

Nulls count as absent, as in Kubernetes; quantities get their canonical form, numbers too; unknown fields are kept and
listed. Used by ``volumehost.api.convert`` and ``volumehost.api.manifests`` on everything that comes from outside.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import functools
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from volumehost.api.schema import TEXT as _TEXT
from volumehost.api.schema import Anything, ListOf, MapOf, Scalar, Shape, StructOf
from volumehost.errors import QuantityError
from volumehost.sdk.quantity import parse_quantity

_MAX_DEPTH = 100
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INT64 = range(-(2**63), 2**63)

_NAMES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
    bytes: "bytes",
}
_WANTED = {"str": "string", "int": "integer", "bool": "boolean", "bytes": "base64 text", "quantity": "quantity"}


class Decoded(msgspec.Struct):
    """Data that fits, unless ``problems`` has entries: ``(field path, message)`` each.

    ``unknown`` lists the paths of fields that the type does not have, each with a hint or "".
    """

    value: dict[str, Any] = msgspec.field(default_factory=dict)
    problems: list[tuple[str, str]] = msgspec.field(default_factory=list)
    unknown: list[tuple[str, str]] = msgspec.field(default_factory=list)


def decode(document: Mapping[str, Any], shape: StructOf) -> Decoded:
    """Fit a document to a shape. The document is not changed and nothing of it is shared with the result."""
    walk = _Walk()
    result = walk.result
    result.value = walk.struct(document, shape, "$", 0)
    return result


def child(path: str, key: str) -> str:
    """The path of a key below ``path``: ``$.spec``, or ``$.data['tls.crt']`` where dots would mislead."""
    return f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{path}[{key!r}]"


#: The path of a value while it is looked at; made text of only where something is to be told of it.
_Path = str | tuple["_Path", str | int]


def _text_of(path: _Path) -> str:
    if isinstance(path, str):
        return path
    above, key = path
    return f"{_text_of(above)}[{key}]" if isinstance(key, int) else child(_text_of(above), key)


class _Walk:
    """One pass over a document."""

    def __init__(self) -> None:
        self.result = Decoded()

    def wrong(self, path: _Path, message: str) -> None:
        self.result.problems.append((_text_of(path), message))

    def value(self, value: Any, shape: Shape, path: _Path, depth: int) -> Any:
        match shape:
            case Scalar():
                return self.scalar(value, shape.kind, path)
            case StructOf():
                return self.struct(value, shape, path, depth)
            case ListOf():
                return self.array(value, shape, path, depth)
            case MapOf():
                return self.map(value, shape, path, depth)
            case Anything():
                return self.anything(value, path, depth)

    def struct(self, value: Any, shape: StructOf, path: _Path, depth: int) -> dict[str, Any]:
        # The names of fields are fine as keys, and nearly always there are no others.
        known = value.__class__ is dict and depth <= _MAX_DEPTH and value.keys() <= shape.fields.keys()
        if not known and not self.is_object(value, path, depth):
            return {}
        found: dict[str, Any] = {}
        for key, item in value.items():
            field_shape = shape.fields.get(key)
            if field_shape is None:
                found[key] = self.anything(item, (path, key), depth + 1)
                self.result.unknown.append((_text_of((path, key)), _did_you_mean(key, shape)))
            elif item.__class__ is str and field_shape is _TEXT and item.isascii():
                found[key] = item  # most of what there is
            elif item.__class__ is dict and field_shape.__class__ is StructOf:
                found[key] = self.struct(item, field_shape, (path, key), depth + 1)
            elif item is not None:
                found[key] = self.value(item, field_shape, (path, key), depth + 1)
        return found

    def map(self, value: Any, shape: MapOf, path: _Path, depth: int) -> dict[str, Any]:
        if not self.is_object(value, path, depth):
            return {}
        free = isinstance(shape.value, Anything)
        return {
            # A key without a value has the empty value in Kubernetes, unlike a field.
            key: self.value("" if item is None and not free else item, shape.value, (path, key), depth + 1)
            for key, item in value.items()
        }

    def array(self, value: Any, shape: ListOf, path: _Path, depth: int) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            self.wrong(path, f"expected array, got {_name(value)}{_single_item_hint(value)}")
            return []
        return [self.value(item, shape.item, (path, index), depth + 1) for index, item in enumerate(value)]

    def is_object(self, value: Any, path: _Path, depth: int) -> bool:
        if depth > _MAX_DEPTH:
            self.wrong(path, f"nested deeper than {_MAX_DEPTH} levels")
            return False
        if not isinstance(value, Mapping):
            self.wrong(path, f"expected object, got {_name(value)}")
            return False
        for key in value:
            if key.__class__ is str and key.isascii():
                continue
            if not isinstance(key, str):
                self.wrong(path, f"has the key {key!r}, which is no string: quote it")
                return False
            if not _is_unicode(key):
                self.wrong(path, "has a key that is not valid Unicode")
                return False
        return True

    def anything(self, value: Any, path: _Path, depth: int) -> Any:
        """Any JSON, copied."""
        if isinstance(value, Mapping):
            if not self.is_object(value, path, depth):
                return {}
            return {key: self.anything(item, (path, key), depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            if depth > _MAX_DEPTH:
                self.wrong(path, f"nested deeper than {_MAX_DEPTH} levels")
                return []
            return [self.anything(item, (path, index), depth + 1) for index, item in enumerate(value)]
        if isinstance(value, str):
            return self.text(value, path)
        if value is None or isinstance(value, (bool, float)):
            return value
        if isinstance(value, int):
            return self.integer(value, path)
        self.wrong(path, f"{_name(value)} cannot be written as JSON")
        return None

    def scalar(self, value: Any, wanted: str, path: _Path) -> Any:
        """A value of the wanted kind; of another one only where nobody could have meant anything else."""
        if wanted == "quantity" and isinstance(value, (int, float, str)) and not isinstance(value, bool):
            return self.quantity(value, path)
        if isinstance(value, bool):
            if wanted == "bool":
                return value
        elif isinstance(value, int):
            if wanted == "int":
                return self.integer(value, path)
        elif isinstance(value, str):
            if wanted in {"str", "bytes"}:
                return self.text(value, path) if wanted == "str" else self.base64_text(value, path)
        elif isinstance(value, bytes):
            if wanted == "bytes":
                return base64.b64encode(value).decode()
        elif isinstance(value, dt.date) and wanted == "str":
            # What other YAML loaders make of a time.
            return timestamp(value) if isinstance(value, dt.datetime) else value.isoformat()
        self.wrong(path, f"expected {_WANTED[wanted]}, got {_name(value)}{_quote_hint(value, wanted)}")
        return "" if wanted != "int" else 0

    def quantity(self, value: float | str, path: _Path) -> str:
        """A quantity in the form in which an API server gives it back; what is none is left for validation."""
        text = self.text(value, path) if isinstance(value, str) else _number_text(value)
        try:
            return _canonical(text)
        except QuantityError:
            return text

    def text(self, value: str, path: _Path) -> str:
        if not _is_unicode(value):
            self.wrong(path, "is not valid Unicode")
        return value

    def integer(self, value: int, path: _Path) -> int:
        if value not in _INT64:
            self.wrong(path, "does not fit into 64 bits")
        return value

    def base64_text(self, value: str, path: _Path) -> str:
        """Line breaks are allowed, as where a manifest folds the text. The value itself is never told."""
        text = value.replace("\n", "").replace("\r", "")
        try:
            base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            self.wrong(path, "is not valid base64")
        return text


@functools.lru_cache(maxsize=512)
def _canonical(text: str) -> str:
    return str(parse_quantity(text))


def timestamp(moment: dt.datetime) -> str:
    """A time as the API writes it: RFC 3339 in UTC, whole seconds unless there are fractions."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    precision = "microseconds" if moment.microsecond else "seconds"
    return moment.astimezone(dt.UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def _name(value: object) -> str:
    return "null" if value is None else _NAMES.get(type(value), type(value).__name__)


def _is_unicode(text: str) -> bool:
    """JSON can smuggle in halves of characters that no file and no database takes."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number_text(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _quote_hint(value: object, wanted: str) -> str:
    if wanted in {"str", "bytes"} and isinstance(value, (bool, int, float)):
        return ": put the value in quotes (YAML reads yes, no, on, off as booleans and digits as numbers)"
    if wanted in {"int", "bool"} and isinstance(value, str):
        return ": without quotes"
    return ""


def _single_item_hint(value: object) -> str:
    return ": start each item with a dash" if isinstance(value, (str, Mapping)) else ""


def _did_you_mean(key: str, shape: StructOf) -> str:
    import difflib

    folded = {name.lower(): name for name in shape.fields}
    near = difflib.get_close_matches(key.lower().replace("_", "").replace("-", ""), folded, n=1, cutoff=0.75)
    return f"did you mean {folded[near[0]]}?" if near else ""
