"""The documents of a manifest's text, JSON or YAML, as plain data with their lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from volumehost.api.yaml_document import YamlDocument, YamlError


def read_documents(text: str) -> Iterator[YamlDocument]:
    """Every document that is not empty.

    :raises YamlError: the text is neither JSON nor YAML, or breaks the rules for untrusted text.
    """
    if text.lstrip()[:1] == "{":
        try:
            yield from list(_read_json(text))
        except _NotJsonError:
            # YAML may begin with a brace too, and says better what is wrong.
            yield from _read_yaml(text)
    else:
        yield from _read_yaml(text)


def _read_yaml(text: str) -> Iterator[YamlDocument]:
    from volumehost.api.yaml_reader import read_yaml  # a host with JSON alone does without PyYAML

    return read_yaml(text)


class _NotJsonError(Exception):
    """The text is no JSON; it may be YAML."""


def _read_json(text: str) -> Iterator[YamlDocument]:
    """One JSON value after the other, as ``kubectl`` takes them too."""
    decoder = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    position = number = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        number += 1
        line = text.count("\n", 0, position) + 1
        try:
            value, position = decoder.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError):
            raise _NotJsonError from None
        except _DuplicateKeyError as error:
            raise YamlError(f"the key {error} occurs twice in one object", line) from None
        except ValueError as error:
            raise YamlError(str(error), line) from None
        yield YamlDocument(value, number, line, {"$": line})


class _DuplicateKeyError(Exception):
    """A JSON object has a key twice."""


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _DuplicateKeyError(key)
        found[key] = value
    return found


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not a number that an object can hold")
