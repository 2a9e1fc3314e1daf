"""Merging: a typed object over what is stored, so that unknown fields survive; and JSON merge patches (RFC 7386)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from volumehost.api.schema import ListOf, Shape, StructOf


def merge_known(stored: Mapping[str, Any], new: Mapping[str, Any], shape: StructOf) -> dict[str, Any]:
    """``new`` with the fields of ``stored`` that the shape does not know.

    Known fields are as in ``new``, absent ones gone. Items of a list are matched by the shape's merge key; where they
    have none, by what they say, then by position.
    """
    merged = {key: value for key, value in stored.items() if key not in shape.fields and key not in new}
    result: dict[str, Any] = {
        key: _merge_value(stored.get(key), value, shape.fields[key]) if key in shape.fields else value
        for key, value in new.items()
    }
    return result | merged


def _merge_value(stored: Any, new: Any, shape: Shape) -> Any:
    if isinstance(shape, StructOf) and isinstance(stored, Mapping) and isinstance(new, Mapping):
        return merge_known(stored, new, shape)
    if isinstance(shape, ListOf) and isinstance(shape.item, StructOf) and isinstance(stored, list):
        return _merge_list(stored, new, shape.item)
    return new


def _merge_list(stored: list[Any], new: list[Any], shape: StructOf) -> list[Any]:
    by_key = _by_key(stored, shape.merge_key)
    if by_key is not None and _by_key(new, shape.merge_key) is not None:
        partners = [by_key.get(item[shape.merge_key]) for item in new]
    else:
        partners = _partners(stored, new, shape)
    return [_merge_value(partner, item, shape) for partner, item in zip(partners, new, strict=True)]


def _partners(stored: list[Any], new: list[Any], shape: StructOf) -> list[Any]:
    """For each new item the stored one that says the same; else, of those that are left, the one in its place."""
    known = [known_part(item, shape) for item in stored]
    left = set(range(len(stored)))
    found: dict[int, int] = {}

    def pair(index: int, partner: int) -> None:
        found[index] = partner
        left.discard(partner)

    for index, item in enumerate(new):
        if index in left and known[index] == item:
            pair(index, index)
    for index, item in enumerate(new):
        if index not in found and item:
            same = next((partner for partner in sorted(left) if known[partner] == item), None)
            if same is not None:
                pair(index, same)
    for index in range(len(new)):
        if index not in found and index in left:
            pair(index, index)
    return [stored[found[index]] if index in found else None for index in range(len(new))]


def known_part(value: Any, shape: Shape) -> Any:
    """What of a value the shape knows."""
    if isinstance(shape, StructOf) and isinstance(value, Mapping):
        return {key: known_part(item, shape.fields[key]) for key, item in value.items() if key in shape.fields}
    if isinstance(shape, ListOf) and isinstance(value, list):
        return [known_part(item, shape.item) for item in value]
    return value


def _by_key(items: list[Any], key: str) -> dict[str, Any] | None:
    """The items by their merge key; None when it does not tell them apart."""
    if not key:
        return None
    found = {item[key]: item for item in items if isinstance(item, Mapping) and isinstance(item.get(key), str)}
    return found if len(found) == len(items) else None


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch: null removes, objects merge, anything else replaces. Neither argument is changed."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result
