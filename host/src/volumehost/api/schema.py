"""The shapes of API types, read from their annotations once: what decoding, merging and null handling walk along."""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Union

import msgspec

from volumehost.api.objects import ApiStruct


class Scalar(msgspec.Struct, frozen=True):
    """A value without parts; ``kind`` is ``str``, ``int``, ``bool``, ``bytes`` (base64 on the wire) or ``quantity``."""

    kind: str


#: The shape of every text.
TEXT = Scalar("str")


class ListOf(msgspec.Struct, frozen=True):
    """A JSON array."""

    item: Shape


class MapOf(msgspec.Struct, frozen=True):
    """A JSON object with free keys."""

    value: Shape


class Anything(msgspec.Struct, frozen=True):
    """JSON that is carried along as it is."""


@dataclass(frozen=True, slots=True)
class StructOf:
    """A JSON object with known fields; ``fields`` maps wire names to shapes."""

    struct: type[ApiStruct]
    fields: dict[str, Shape] = field(compare=False)
    merge_key: str = ""


Shape = Scalar | ListOf | MapOf | Anything | StructOf


@cache
def shape_of(struct: type[ApiStruct]) -> StructOf:
    """The shape of a struct class."""
    fields = {info.encode_name: _shape(info.type) for info in msgspec.structs.fields(struct)}
    key = struct.MERGE_KEY or ("name" if "name" in fields else "")
    return StructOf(struct, fields, key)


def _shape(hint: Any) -> Shape:
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        base, *notes = typing.get_args(hint)
        if any(isinstance(note, msgspec.Meta) and (note.extra or {}).get("quantity") for note in notes):
            return Scalar("quantity")
        return _shape(base)
    if origin in {Union, types.UnionType}:
        (wanted,) = (arg for arg in typing.get_args(hint) if arg is not types.NoneType)
        return _shape(wanted)
    if origin is list:
        return ListOf(_shape(typing.get_args(hint)[0]))
    if origin is dict:
        value = typing.get_args(hint)[1]
        return MapOf(Anything() if value is Any else _shape(value))
    if hint is str:
        return TEXT
    if hint in {str, int, bool, bytes}:
        return Scalar(hint.__name__)
    if isinstance(hint, type) and issubclass(hint, ApiStruct):
        return shape_of(hint)
    raise TypeError(f"no shape for the annotation {hint!r}")
