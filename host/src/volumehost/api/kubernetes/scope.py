"""Whether an object belongs to what is watched: namespace, label selector and field selector, as a server sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from volumehost.api.selectors import parse_selector


def scope(namespace: str | None, labels: str, fields: str) -> Callable[[bytes], bool]:
    """A test of bodies.

    :raises InvalidObjectError: the labels are no selector.
    """
    selector = parse_selector(labels)
    terms = [_term(text) for text in fields.split(",") if text.strip()]

    def matches(body: bytes) -> bool:
        document = msgspec.json.decode(body)
        metadata = document.get("metadata") or {}
        return (
            (not namespace or metadata.get("namespace") == namespace)
            and selector.matches(metadata.get("labels") or {})
            and all((_value(document, path) == value) is equal for path, value, equal in terms)
        )

    return matches


def selected_name(labels: str, fields: str) -> str:
    """The one name that the selectors leave, "" where they do not leave one name."""
    path, value, equal = _term(fields)
    return value if path == "metadata.name" and equal and not labels and "," not in fields else ""


def _term(text: str) -> tuple[str, str, bool]:
    path, sign, value = text.partition("!=")
    if sign:
        return path.strip(), value.strip(), False
    path, _sign, value = text.partition("=")
    return path.strip(), value.lstrip("=").strip(), True


def _value(document: Any, path: str) -> str:
    for part in path.split("."):
        document = document.get(part) if isinstance(document, Mapping) else None
    return document if isinstance(document, str) else ""
