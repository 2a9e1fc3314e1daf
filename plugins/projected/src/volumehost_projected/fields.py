"""Fields of a pod as text, in the words of the original (PAYLOAD-31 to -33)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from volumehost.errors import SpecError

if TYPE_CHECKING:
    from volumehost.api.objects import Pod

_SUBSCRIPT = re.compile(r"(.*?)\['(.*)'\]", re.DOTALL)
_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def field_of(pod: Pod, path: str) -> str:
    """The value of a field path; "" for a label or annotation that the pod does not have.

    :raises SpecError: volumes have no such field.
    """
    metadata = pod.metadata
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is not None:  # which keys there can be, the API's validation tells (PAYLOAD-33)
        if subscript[1] not in {"metadata.labels", "metadata.annotations"}:
            raise SpecError(f'fieldPath "{path}" does not support subscript')
        entries = metadata.labels if subscript[1] == "metadata.labels" else metadata.annotations
        return entries.get(subscript[2], "")
    if path in {"metadata.name", "metadata.namespace", "metadata.uid"}:
        value: str = getattr(metadata, path.removeprefix("metadata."))
        return value
    if path == "metadata.labels":
        return format_map(metadata.labels)
    if path == "metadata.annotations":
        return format_map(metadata.annotations)
    raise SpecError(f"unsupported fieldPath: {path}")


def format_map(entries: Mapping[str, str]) -> str:
    """One line ``key="value"`` for each entry, sorted by key, without a newline at the end (PAYLOAD-32)."""
    return "\n".join(f"{key}={quote(value)}" for key, value in sorted(entries.items()))


def quote(text: str) -> str:
    """The text as a Go string literal in double quotes; what can be printed stands for itself."""
    return '"' + "".join(map(_quoted, text)) + '"'


def _quoted(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    if character in _ESCAPES:
        return _ESCAPES[character]
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
