"""Problems found in an object, gathered with field paths in Kubernetes' style (``spec.volumes[0].name``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec


class Problems(msgspec.Struct):
    """A list that grows while an object is looked at; nothing is raised before the end."""

    found: list[tuple[str, str]] = msgspec.field(default_factory=list)

    def required(self, path: str, hint: str = "") -> None:
        """A field that must be set is not."""
        self.found.append((path, f"Required value: {hint}" if hint else "Required value"))

    def invalid(self, path: str, value: object, reason: str) -> None:
        """A field has a value that it cannot have. Never call this with a value that is private."""
        shown = repr(value)
        shown = shown if len(shown) <= 100 else f"{shown[:97]}..."
        self.found.append((path, f"Invalid value: {shown}: {reason}"))

    def not_supported(self, path: str, value: object, supported: Iterable[str]) -> None:
        """A field has none of the values that exist."""
        names = ", ".join(repr(name) for name in supported)
        self.found.append((path, f"Unsupported value: {value!r}: supported values: {names}"))

    def duplicate(self, path: str, value: object) -> None:
        """An item occurs twice."""
        self.found.append((path, f"Duplicate value: {value!r}"))

    def forbidden(self, path: str, reason: str) -> None:
        """A field must not be set, or not in this way."""
        self.found.append((path, f"Forbidden: {reason}"))

    def not_found(self, path: str, value: object) -> None:
        """A field refers to something that is not there."""
        self.found.append((path, f"Not found: {value!r}"))

    def too_long(self, path: str, limit: int, unit: str = "bytes") -> None:
        """A field is too long. The value is not shown: it would be."""
        self.found.append((path, f"Too long: may not be more than {limit} {unit}"))


def immutable(new: Any, old: Any, name: str, field: str, problems: Problems) -> None:
    """Refuse a change of one attribute; its values are not shown."""
    if getattr(new, name) != getattr(old, name):
        problems.forbidden(field, "field is immutable: delete the object and create it again")
