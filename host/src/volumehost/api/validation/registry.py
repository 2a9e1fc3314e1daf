"""Which checks run for which kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from volumehost.api.kinds import Kind
from volumehost.api.objects import KubeObject
from volumehost.api.validation.metadata import validate_metadata
from volumehost.api.validation.problems import Problems
from volumehost.errors import InvalidObjectError

#: Checks of an object by itself.
_CHECKS: dict[type[KubeObject], Callable[[Any, Problems], None]] = {}

#: Checks of a change: new state, old state.
_CHANGES: dict[type[KubeObject], Callable[[Any, Any, Problems], None]] = {}


def validate_create(obj: KubeObject, kind: Kind[KubeObject]) -> None:
    """Check a new object.

    :raises InvalidObjectError: it breaks a rule.
    """
    problems = Problems()
    _validate(obj, kind, problems)
    _raise_any(obj, kind, problems)


def validate_update(obj: KubeObject, old: KubeObject, kind: Kind[KubeObject]) -> None:
    """Check a changed object, what must not change included.

    :raises InvalidObjectError: it breaks a rule.
    """
    problems = Problems()
    _validate(obj, kind, problems)
    if old.metadata.deletion_timestamp is not None:
        added = set(obj.metadata.finalizers) - set(old.metadata.finalizers)
        if added:
            problems.forbidden(
                "metadata.finalizers", f"no finalizer can be added while it is being deleted: {sorted(added)}"
            )
    change = _CHANGES.get(kind.struct)
    if change is not None:
        change(obj, old, problems)
    _raise_any(obj, kind, problems)


def _validate(obj: KubeObject, kind: Kind[KubeObject], problems: Problems) -> None:
    validate_metadata(obj, kind, problems)
    check = _CHECKS.get(kind.struct)
    if check is not None:
        check(obj, problems)


def _raise_any(obj: KubeObject, kind: Kind[KubeObject], problems: Problems) -> None:
    if problems.found:
        name = obj.metadata.name if len(obj.metadata.name) <= 64 else f"{obj.metadata.name[:61]}..."
        raise InvalidObjectError(subject=kind.describe(name, obj.metadata.namespace), problems=problems.found)
