"""Helpers for tests of validation: documents in wire form go in, problems come out."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from volumehost.api.convert import to_object
from volumehost.api.defaults import set_defaults
from volumehost.api.kinds import kind_for
from volumehost.api.store import EmbeddedStore
from volumehost.api.validation import validate_create, validate_update
from volumehost.errors import InvalidObjectError

Document = dict[str, Any]
Problems = dict[str, str]


def _typed(document: Document) -> Any:
    kind = kind_for(document["apiVersion"], document["kind"])
    obj = to_object(kind.struct, document)
    if kind.namespaced:
        obj.metadata.namespace = obj.metadata.namespace or "default"
    return kind, set_defaults(obj)


@pytest.fixture
def problems_of() -> Callable[[Document], Problems]:
    """Problems of a new object, by field."""

    def check(document: Document) -> Problems:
        kind, obj = _typed(document)
        try:
            validate_create(obj, kind)
        except InvalidObjectError as error:
            return dict(error.problems)
        return {}

    return check


@pytest.fixture
def problems_of_change() -> Callable[[Document, Document], Problems]:
    """Problems of a change from the first document to the second, by field."""

    def check(old: Document, new: Document) -> Problems:
        kind, old_obj = _typed(old)
        _, new_obj = _typed(new)
        try:
            validate_update(new_obj, old_obj, kind)
        except InvalidObjectError as error:
            return dict(error.problems)
        return {}

    return check


@pytest.fixture
def changed() -> Callable[..., Document]:
    """A copy of a document with fields set by path: ``changed(pod, {"spec/volumes/0/name": "x"})``; None removes."""

    def change(document: Document, changes: dict[str, Any]) -> Document:
        result = copy.deepcopy(document)
        for path, value in changes.items():
            *parents, last = (int(part) if part.isdigit() else part for part in path.split("/"))
            here: Any = result
            for part in parents:
                here = here.setdefault(part, {}) if isinstance(here, dict) else here[part]
            if value is None:
                here.pop(last, None)
            elif isinstance(here, list) and last == len(here):
                here.append(value)
            else:
                here[last] = value
        return result

    return change


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """An embedded store in a directory of its own."""
    with EmbeddedStore(str(tmp_path / "root" / "store.sqlite3")) as store:
        yield store
