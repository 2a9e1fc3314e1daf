"""Between the server's JSON and the light types: what decodes at once does so, the rest is looked at closely.

An API server writes ``null`` where Go has no list, and a newer one may write what these types do not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar

import msgspec

from volumehost.api.convert import decode_wire
from volumehost.api.kinds import Kind
from volumehost.api.kubernetes.bulk import without_collecting
from volumehost.api.objects import KubeObject
from volumehost.errors import ApiError, InvalidObjectError, ServerFailedError

T = TypeVar("T", bound=KubeObject)
Body = bytes | msgspec.Raw


class ListMeta(msgspec.Struct, rename="camel"):
    """Of a list: as of when it is, and where the next part begins."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class RawList(msgspec.Struct):
    """A part of a list whose items are not read yet; they share the memory of the answer."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None
    kind: str = ""


class RawEvent(msgspec.Struct):
    """A line of a watch."""

    type: str = ""
    object: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))


class Heading(NamedTuple):
    """What tells an object from others, and one state of it from the next."""

    namespace: str
    name: str
    uid: str
    version: str


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Headed(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


@cache
def _decoder(struct: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct)


@cache
def _list_decoder(struct: type[KubeObject]) -> msgspec.json.Decoder[Any]:
    fields: list[tuple[str, Any, Any]] = [
        ("metadata", ListMeta, msgspec.field(default_factory=ListMeta)),
        ("items", list[struct] | None, None),  # type: ignore[valid-type]
        ("kind", str, ""),
    ]
    return msgspec.json.Decoder(msgspec.defstruct(f"{struct.__name__}List", fields))


def read_object(kind: Kind[Any], body: Body) -> Any:
    """The object that a body is.

    :raises ServerFailedError: it is none of that kind.
    """
    try:
        struct: type[KubeObject] = kind.struct
        found = _decoder(struct).decode(body)
    except msgspec.ValidationError:
        found = _read_closely(kind, body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _strange(kind, "something that is not JSON") from None
    if found.kind != kind.kind:
        raise _strange(kind, f"a {found.kind[:40]}")
    return found


def _read_closely(kind: Kind[Any], body: Body) -> Any:
    """Nulls are absent, quantities may be numbers; a field of the wrong type is named."""
    document = msgspec.json.decode(body)
    if not isinstance(document, dict):
        raise _strange(kind, "no object")
    document.setdefault("kind", kind.kind)
    try:
        return msgspec.convert(decode_wire(kind.struct, document).value, type=kind.struct)
    except InvalidObjectError as error:
        raise _strange(kind, f"one that cannot be read ({error})") from None


def read_list(kind: Kind[Any], body: bytes) -> tuple[list[Any], ListMeta]:
    """The objects of a part of a list.

    :raises ServerFailedError: it is none of that kind, or one of them cannot be read.
    """
    try:
        struct: type[KubeObject] = kind.struct
        with without_collecting():
            found = _list_decoder(struct).decode(body)
    except msgspec.ValidationError:
        raw = read_raw_list(kind, body)
        return [read_object(kind, item) for item in raw.items or ()], raw.metadata
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _strange(kind, "something that is not JSON") from None
    _check_list(kind, found.kind, found.metadata)
    return found.items or [], found.metadata


def read_raw_list(kind: Kind[Any], body: bytes) -> RawList:
    """The same, with items as they came.

    :raises ServerFailedError: it is no such list.
    """
    try:
        found: RawList = _decoder(RawList).decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _strange(kind, "no list") from None
    _check_list(kind, found.kind, found.metadata)
    return found


def _check_list(kind: Kind[Any], found: str, metadata: ListMeta) -> None:
    """Whatever is no list must not pass for one of nothing: all that is known would be taken to have gone."""
    if found != f"{kind.kind}List":
        raise _strange(kind, f"a {found[:40] or 'thing without a kind'} instead of a list")
    if not metadata.resource_version:
        raise _strange(kind, "a list without a resource version")


def read_event(kind: Kind[Any], line: bytes) -> RawEvent:
    """A line of a watch.

    :raises ServerFailedError: it is none.
    """
    try:
        event: RawEvent = _decoder(RawEvent).decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _strange(kind, "a broken line in a watch") from None
    return event


def read_heading(body: Body) -> Heading:
    """Names and versions alone, at a fraction of the price of the whole.

    :raises ServerFailedError: there are none.
    """
    try:
        metadata = _decoder(_Headed).decode(body).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ServerFailedError("an object without readable metadata", action="read what the API server sent") from None
    return Heading(metadata.namespace, metadata.name, metadata.uid, metadata.resource_version)


def bookmark(struct: type[T], version: str) -> T:
    """The object of a BOOKMARK."""
    found = struct()
    found.metadata.resource_version = version
    return found


def split_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Whole lines out of chunks that may end anywhere; what is left at the end is no whole line and is dropped."""
    rest: list[bytes] = []
    for chunk in chunks:
        *lines, last = chunk.split(b"\n")
        for line in lines:
            rest.append(line)
            whole = b"".join(rest)
            rest.clear()
            if whole.strip():
                yield whole
        if last:
            rest.append(last)


def _strange(kind: Kind[Any], what: str) -> ApiError:
    return ServerFailedError(
        f"it answered with {what}",
        action=f"read the API server's answer about a {kind.kind}",
        subject=kind.kind,
        hint="is it a Kubernetes API server, and of a version that has this kind?",
    )
