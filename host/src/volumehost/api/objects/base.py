"""The base of every API type: wire names, equality, and a repr that never shows what must stay private.

Structs are not frozen, but only two kinds of code may change one: the code that has just made it (a manifest being
defaulted, an object about to be created) and the API client that returns fresh copies. Everybody else borrows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

import msgspec

#: Text of a Kubernetes quantity (``10Gi``); ``volumehost.sdk.quantity.parse_quantity`` reads it.
QuantityText = Annotated[str, msgspec.Meta(extra={"quantity": True})]

#: Resource name (``storage``, ``memory``) to quantity.
ResourceList = dict[str, QuantityText]

#: A part of Kubernetes that volumes do not touch: carried along as it is, not interpreted.
Opaque = dict[str, Any]


def always(value: str) -> Any:
    """A default that is written to the wire too: ``omit_defaults`` leaves out only what equals a plain default."""
    return msgspec.field(default_factory=lambda: value)


class ApiStruct(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """A JSON object of the API: snake case here, camel case on the wire, unset fields left out.

    ``PRIVATE`` names fields whose content must never be shown: of a mapping the keys are shown, of anything else
    only that it is set. ``MERGE_KEY`` is the wire name of the field that tells the items of a list apart; without it
    ``name`` does, where there is one.
    """

    PRIVATE: ClassVar[frozenset[str]] = frozenset()
    MERGE_KEY: ClassVar[str] = ""

    def __repr__(self) -> str:
        """Only what differs from the defaults, private content masked."""
        shown = ", ".join(f"{name}={value!r}" for name, value in shown_fields(self))
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The same for rich, which would otherwise read every field itself."""
        return list(shown_fields(self))


def shown_fields(struct: ApiStruct) -> Iterator[tuple[str, Any]]:
    """Name and presentable value of each field that is set."""
    for name, default in zip(struct.__struct_fields__, struct.__struct_defaults__, strict=True):
        value = getattr(struct, name)
        if value == default or (isinstance(value, (list, dict)) and not value):
            continue
        yield name, (_Masked(value) if name in struct.PRIVATE else value)


class _Masked:
    """Stands in a repr for private content."""

    __slots__ = ("_text",)

    def __init__(self, value: object) -> None:
        keys = f" keys={sorted(map(str, value))}" if isinstance(value, Mapping) else ""
        self._text = f"<private{keys}>"

    def __repr__(self) -> str:
        return self._text
