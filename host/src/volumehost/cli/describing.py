"""An API object as text for people: metadata, then every field that is set, private content as sizes only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from volumehost.cli.columns import since
from volumehost.cli.tables import format_fields, printable

if TYPE_CHECKING:
    from volumehost.api.objects import ApiStruct, KubeObject, ObjectMeta

_LAST_APPLIED = "last-applied-configuration"
_APART = {"apiVersion", "kind", "metadata"}


def describe_object(obj: KubeObject) -> str:
    """The text, ending with a newline."""
    return format_fields(_head(obj)) + "".join(f"{line}\n" for line in _body(obj))


def _head(obj: KubeObject) -> Iterator[tuple[str, object]]:
    meta: ObjectMeta = obj.metadata
    yield "Name", meta.name
    yield "Namespace", meta.namespace or None
    yield "Kind", f"{obj.kind} ({obj.api_version})"
    yield "UID", meta.uid or None
    yield "Created", _moment(meta.creation_timestamp)
    yield "Deleted", _moment(meta.deletion_timestamp)
    yield "Labels", _pairs(meta.labels)
    yield "Annotations", _pairs({key: _annotation(key, value) for key, value in meta.annotations.items()})
    yield "Finalizers", ", ".join(meta.finalizers) or None
    yield "Owners", ", ".join(f"{owner.kind}/{owner.name}" for owner in meta.owner_references) or None


def _moment(timestamp: str | None) -> str | None:
    if not timestamp:
        return None
    ago = since(timestamp)
    return f"{timestamp} ({ago} ago)" if ago else timestamp


def _pairs(pairs: Mapping[str, str]) -> str | None:
    return ", ".join(f"{key}={value}" for key, value in sorted(pairs.items())) or None


def _annotation(key: str, value: str) -> str:
    # A copy of the whole object, secrets with it.
    return f"<{len(value)} characters>" if key.endswith(_LAST_APPLIED) else value


def _body(obj: KubeObject) -> Iterator[str]:
    for name, value in fields_in_wire_form(obj):
        if name not in _APART:
            title = name[:1].upper() + name[1:]
            yield from _entry(title, value, 0)


def fields_in_wire_form(struct: ApiStruct) -> Iterator[tuple[str, Any]]:
    """Wire name and value of each field that is set; of private content only the sizes."""
    fields = zip(struct.__struct_fields__, struct.__struct_encode_fields__, struct.__struct_defaults__, strict=True)
    for name, wire_name, default in fields:
        value = getattr(struct, name)
        if value is None or value == default or (isinstance(value, dict | list) and not value):
            continue
        if hasattr(value, "__struct_fields__"):
            value = dict(fields_in_wire_form(value))
            if not value and default is not None:  # but "emptyDir: {}" says something
                continue
        yield wire_name, _without_content(value) if name in struct.PRIVATE else value


def _without_content(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_content(item) for key, item in value.items()}
    size = len(value) if isinstance(value, str | bytes) else None
    return "<private>" if size is None else f"{size} byte{'' if size == 1 else 's'}"


def _entry(name: str, value: Any, indent: int) -> Iterator[str]:
    margin = " " * indent
    value = _plain(value)
    if isinstance(value, Mapping | list) and value:
        yield f"{margin}{printable(name)}:"
        yield from _block(value, indent + 2)
    elif isinstance(value, str) and "\n" in value:
        yield f"{margin}{printable(name)}:"
        yield from (f"{margin}  {printable(line)}" for line in value.splitlines())
    else:
        yield f"{margin}{printable(name)}: {_scalar(value)}".rstrip()


def _block(value: Any, indent: int) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _entry(str(name), item, indent)
        return
    for item in value:
        lines = list(_block(plain, indent + 2)) if isinstance(plain := _plain(item), Mapping | list) else []
        if lines:
            yield f"{' ' * indent}- {lines[0][indent + 2 :]}"
            yield from lines[1:]
        else:
            yield f"{' ' * indent}- {_scalar(plain)}"


def _plain(value: Any) -> Any:
    return dict(fields_in_wire_form(value)) if hasattr(value, "__struct_fields__") else value


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"{len(value)} byte{'' if len(value) == 1 else 's'}"
    if isinstance(value, Mapping | list):
        return "{}" if isinstance(value, Mapping) else "[]"
    return printable(value)
