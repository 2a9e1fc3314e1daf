"""What a plain YAML scalar means, read as Kubernetes' own tools do: YAML 1.1 without base-60 numbers and dates."""

from __future__ import annotations

import re

#: Longer numbers are text: no field of the API takes them, and reading them would cost time.
_MAX_NUMBER_LENGTH = 64

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {
    spelling: value
    for value, words in ((True, ("true", "yes", "on")), (False, ("false", "no", "off")))
    for word in words
    for spelling in (word, word.capitalize(), word.upper())
}
_INTEGER = re.compile(r"[-+]?(?:0[bB][01_]+|0[oO]?[0-7_]+|0[xX][0-9a-fA-F_]+|0|[1-9][0-9_]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*\.[0-9]*|[0-9][0-9_]*(?=[eE]))(?:[eE][-+]?[0-9]+)?", re.ASCII)
_NO_JSON_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

STR_TAG = "tag:yaml.org,2002:str"
_TAGS = {
    "tag:yaml.org,2002:null": "null",
    "tag:yaml.org,2002:bool": "bool",
    "tag:yaml.org,2002:int": "int",
    "tag:yaml.org,2002:float": "float",
}


class ScalarError(ValueError):
    """The scalar cannot be part of an API object; the text says why."""


def resolve_plain(text: str) -> str | int | float | bool | None:
    """The value of a scalar without quotes.

    :raises ScalarError: it is a number that JSON does not have.
    """
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    # Most scalars are words; only a number starts like this.
    if text[0] not in "+-.0123456789" or len(text) > _MAX_NUMBER_LENGTH:
        return text
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        value = float(text.replace("_", ""))
        if value in {float("inf"), float("-inf")}:
            raise ScalarError(f"the number {text} is too large")
        return value
    if _NO_JSON_NUMBER.fullmatch(text):
        raise ScalarError(f"{text} is not a number that an object can hold: quote it if it is meant as text")
    return text


def resolve_tagged(text: str, tag: str) -> str | int | float | bool | None:
    """The value of a scalar with an explicit tag of YAML's own.

    :raises ScalarError: the tag is another, or the text does not fit it.
    """
    if tag == STR_TAG:
        return text
    wanted = _TAGS.get(tag)
    if wanted is None:
        raise ScalarError(f"the tag {tag} is not allowed: only plain data is")
    value = resolve_plain(text)
    found = "null" if value is None else type(value).__name__
    if found == wanted:
        return value
    if wanted == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    raise ScalarError(f"{text!r} does not fit the tag {tag}")


def _integer(text: str) -> int:
    sign, digits = (-1 if text[0] == "-" else 1), text.lstrip("+-").replace("_", "").lower()
    for prefix, base in (("0b", 2), ("0o", 8), ("0x", 16)):
        if digits.startswith(prefix):
            return sign * int(digits[2:] or "0", base)
    # A leading zero means octal, as in file modes: 0644.
    return sign * int(digits, 8 if digits.startswith("0") else 10)
