"""Errors about API objects, the manifests that they come from, and the store that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from volumehost.errors.base import VolumeHostError

if TYPE_CHECKING:
    from pathlib import Path


class QuantityError(VolumeHostError, ValueError):
    """A text is not a Kubernetes quantity; ``text`` is the text."""

    def __init__(self, text: str, reason: str) -> None:
        shown = text if len(text) <= 64 else f"{text[:61]}..."
        super().__init__(f"{shown!r} is not a quantity: {reason}", subject=shown)
        self.text = text


class ApiError(VolumeHostError):
    """Something about an API object or the store that holds it."""


class ManifestError(ApiError):
    """A manifest cannot be read: bad YAML or JSON, a wrong type; ``source`` names the file and document.

    ``problems`` has one line for each thing that is wrong with an object, where that is known.
    """

    def __init__(
        self, reason: str, *, source: str | Path = "", action: str = "", hint: str = "", problems: Sequence[str] = ()
    ) -> None:
        super().__init__(reason, action=action, subject=str(source), hint=hint)
        self.source = str(source)
        self.problems = tuple(problems)


class InvalidObjectError(ApiError):
    """An object breaks the API's rules; ``problems`` lists ``(field path, message)`` for each."""

    def __init__(self, *, subject: str, problems: Sequence[tuple[str, str]], action: str = "") -> None:
        reason = "; ".join(f"{field}: {message}" for field, message in problems)
        super().__init__(reason, action=action or f"{subject} is invalid", subject=subject)
        self.problems = tuple(problems)


class UnknownKindError(ApiError):
    """The kind (with its apiVersion) is not one that this host knows."""


class ObjectNotFoundError(ApiError):
    """No such object."""


class AlreadyExistsError(ApiError):
    """An object of that kind, namespace and name exists."""


class ConflictError(ApiError):
    """The object changed since it was read (resource version): read it again and retry."""


class GoneError(ApiError):
    """The changes after that resource version are no longer known: list again and watch from there."""


class StoreError(ApiError):
    """The store cannot be opened, read or written."""
