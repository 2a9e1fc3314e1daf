"""Manifests: files of Kubernetes objects as people write them. The commands and the demo read their input here.

Every error names the file, the document and, where the text is YAML, the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import msgspec

from volumehost.api.convert import decode_wire
from volumehost.api.kinds import KINDS, Kind, kind_for
from volumehost.api.manifest_documents import read_documents
from volumehost.api.manifest_sources import ManifestText, read_sources
from volumehost.api.objects import KubeObject
from volumehost.api.yaml_document import YamlDocument, YamlError
from volumehost.errors import InvalidObjectError, ManifestError, UnknownKindError

_LIST_KINDS = {f"{kind.kind}List": kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a manifest.

    ``document`` is it in wire form with all that the file says, unknown fields too: hand this to ``create``.
    ``source`` and ``document_number`` say where it stands; ``unknown_fields`` are ``(path, hint)`` of fields that
    this version does not know, often misspelled ones.
    """

    obj: KubeObject
    kind: Kind[KubeObject]
    document: dict[str, Any]
    source: str
    document_number: int
    item_number: int | None = None
    unknown_fields: tuple[tuple[str, str], ...] = ()
    _lines: Mapping[str, int] = field(default_factory=dict, repr=False)

    @property
    def place(self) -> str:
        """Where the object stands: ``pods.yaml, document 2, item 3``."""
        return _place(self.source, self.document_number, self.item_number)

    def line_of(self, path: str) -> int | None:
        """The line of a field (``spec.volumes[0].name``), or of the nearest thing around it; None when unknown."""
        return _line_of(self._lines, path if path.startswith("$") else f"$.{path}")

    def explain(self, error: InvalidObjectError) -> ManifestError:
        """The same problems with the file and the lines: for errors that the store raises about this object."""
        return _explained(self.source, self.document_number, self.item_number, self._lines, error)

    def __repr__(self) -> str:
        metadata = self.obj.metadata
        return f"<Manifest {self.kind.describe(metadata.name, metadata.namespace)} from {self.place}>"


def load_manifests(paths: Iterable[str], *, recursive: bool = False, stdin: BinaryIO | None = None) -> list[Manifest]:
    """All objects of files, directories and standard input (``-``), in order.

    :raises ManifestError: something cannot be read or has the wrong type. Nothing is returned then.
    :raises UnknownKindError: an object is of a kind that this host does not know.
    """
    return [found for text in read_sources(paths, recursive=recursive, stdin=stdin) for found in _objects_in(text)]


def parse_manifests(text: str, source: str = "manifest") -> list[Manifest]:
    """The objects of a text; ``source`` is how errors call it. Raises as :func:`load_manifests`."""
    return list(_objects_in(ManifestText(source, text)))


def _objects_in(text: ManifestText) -> Iterator[Manifest]:
    found = False
    try:
        for document in read_documents(text.text):
            for manifest in _expand(text.name, document):
                found = True
                yield manifest
    except YamlError as error:
        where = f"line {error.line}: " if error.line else ""
        raise ManifestError(f"{where}{error.reason}", source=text.name, action=f"read {text.name}") from None
    if not found:
        raise ManifestError("holds no objects", source=text.name, action=f"read {text.name}")


def _expand(source: str, document: YamlDocument) -> Iterator[Manifest]:
    """The object of a document, or the objects of a list."""
    place = _Place(source, document, None, "$")
    value = _mapping(document.value, place)
    kind_name = value.get("kind")
    of_kind = _LIST_KINDS.get(kind_name) if isinstance(kind_name, str) else None
    if kind_name != "List" and of_kind is None:
        yield _decode(value, place)
        return
    items = value.get("items")
    if not isinstance(items, list):
        raise place.error("$.items: Required value: a list of objects")
    for index, item in enumerate(items):
        item_place = _Place(source, document, index + 1, f"$.items[{index}]")
        content = _mapping(item, item_place)
        if of_kind is not None:
            content = {"apiVersion": of_kind.api_version, "kind": of_kind.kind} | content
        yield _decode(content, item_place)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an object stands; ``root`` is its path in the document."""

    source: str
    document: YamlDocument
    item: int | None
    root: str

    def lines(self) -> Mapping[str, int]:
        """Lines by the object's own paths."""
        if self.root == "$":
            return self.document.lines
        size = len(self.root)
        return {
            f"${path[size:]}": line
            for path, line in self.document.lines.items()
            if path == self.root or path.startswith((f"{self.root}.", f"{self.root}["))
        }

    def error(self, reason: str) -> ManifestError:
        """An error about the object as a whole."""
        line = _line_of(self.lines(), "$")
        where = f" (line {line})" if line else ""
        return ManifestError(reason, source=self.source, action=f"{self.text}{where}")

    @property
    def text(self) -> str:
        return _place(self.source, self.document.number, self.item)


def _mapping(value: Any, place: _Place) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.error("an object with apiVersion, kind and metadata is expected")
    return value


def _decode(value: dict[str, Any], place: _Place) -> Manifest:
    for key in ("apiVersion", "kind"):
        if not isinstance(value.get(key), str) or not value[key]:
            raise place.error(f"$.{key}: Required value: text")
    try:
        kind = kind_for(value["apiVersion"], value["kind"])
    except UnknownKindError as error:
        raise UnknownKindError(
            error.reason, action=str(place.error("").action), subject=error.subject, hint=error.hint
        ) from None
    lines = place.lines()
    try:
        decoded = decode_wire(kind.struct, value)
    except InvalidObjectError as error:
        raise _explained(place.source, place.document.number, place.item, lines, error) from None
    return Manifest(
        msgspec.convert(decoded.value, type=kind.struct),
        kind,
        decoded.value,
        place.source,
        place.document.number,
        place.item,
        tuple(decoded.unknown),
        lines,
    )


def _place(source: str, document: int, item: int | None) -> str:
    return f"{source}, document {document}" + (f", item {item}" if item is not None else "")


def _explained(
    source: str, document: int, item: int | None, lines: Mapping[str, int], error: InvalidObjectError
) -> ManifestError:
    problems = []
    for path, message in error.problems:
        line = _line_of(lines, path if path.startswith("$") else f"$.{path}")
        problems.append(f"{path}: {message}" + (f" (line {line})" if line else ""))
    return ManifestError(
        "; ".join(problems),
        source=source,
        action=f"{error.subject} in {_place(source, document, item)} is invalid",
        problems=problems,
    )


def _line_of(lines: Mapping[str, int], path: str) -> int | None:
    while path not in lines:
        cut = max(path.rfind("."), path.rfind("["))
        if cut <= 0:
            return None
        path = path[:cut]
    return lines[path]
