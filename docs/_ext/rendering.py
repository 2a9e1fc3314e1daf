"""Classes, functions and values of a module as lines of reStructuredText; for the directives of the reference pages."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from signatures import API_OBJECTS, annotation_text, signature_text

import volumehost
from volumehost import errors


def public_module(documented: type, offered_by: str = "") -> str:
    """``volumehost`` where the package itself exports the class, else the module that offers or defines it."""
    if documented.__name__ in volumehost.__all__ and getattr(volumehost, documented.__name__) is documented:
        return "volumehost"
    return offered_by or documented.__module__


def indented(lines: Iterable[str]) -> Iterator[str]:
    """The lines as the body of a directive."""
    for line in lines:
        yield f"   {line}" if line else ""


def documentation(documented: Any) -> list[str]:
    """The docstring's lines; a public name without one stops the build."""
    text = inspect.getdoc(documented)
    if not text:
        raise ValueError(f"{documented!r} is public and has no docstring")
    return text.splitlines()


def python_object(
    kind: str, name: str, signature: str, body: Iterable[str], module: str = "", *, index: bool = True
) -> Iterator[str]:
    """A ``py:class``, ``py:method`` or the like, with its body."""
    yield f".. py:{kind}:: {name}{signature}"
    if module:
        yield f"   :module: {module}"
    if not index:
        yield "   :no-index:"
    yield ""
    yield from indented(body)
    yield ""


def class_lines(documented: type, offered_by: str) -> Iterator[str]:
    """A class: Protocol, dataclass, error, or one with a constructor of its own."""
    kind = "exception" if issubclass(documented, BaseException) else "class"
    signature = "" if is_protocol(documented) or issubclass(documented, enum.Enum) else constructor_text(documented)
    body = [*documentation(documented), "", *bases_line(documented), *member_lines(documented)]
    module = public_module(documented, offered_by)
    # The kit has errors of the names that the host's have. A text that names one means the host's.
    index = getattr(errors, documented.__name__, documented) is documented
    yield from python_object(kind, documented.__name__, signature, body, module, index=index)


def is_protocol(documented: type) -> bool:
    return bool(getattr(documented, "_is_protocol", False))


def constructor_text(documented: type) -> str:
    """The constructor's arguments, "" where it takes those of its base, which then says so itself."""
    for holder in documented.__mro__:
        if "__init__" in vars(holder) and holder is not object:
            return signature_text(vars(holder)["__init__"], bound=True).removesuffix(" -> None")
        if not (holder is documented and documented.__bases__[0].__name__.startswith("_")):
            break
    return ""


def bases_line(documented: type) -> Iterator[str]:
    """Which public classes it extends."""
    bases = [
        base for base in documented.__bases__ if base.__module__.startswith("volumehost") and base.__name__[0] != "_"
    ]
    if bases:
        yield "Extends " + ", ".join(f":class:`~{public_module(base)}.{base.__name__}`" for base in bases) + "."
        yield ""


def member_lines(documented: type) -> Iterator[str]:
    """Fields and methods that the class itself declares, in order."""
    if issubclass(documented, enum.Enum):
        for member in documented:
            yield from python_object("attribute", member.name, "", [f"``{member.value!r}``"])
        return
    for name, annotation in own_fields(documented):
        yield f".. py:attribute:: {name}"
        yield f"   :type: {annotation_text(annotation, documented.__module__)}"
        if documented.__module__.startswith(API_OBJECTS):
            yield "   :no-index:"  # a thousand fields, many of one name: nobody looks them up in the index
        yield ""
    for name, member in vars(documented).items():
        public = not name.startswith("_") or name in {"__call__", "__enter__", "__exit__"}
        if public and (not name.startswith("__") or inspect.getdoc(member)):
            yield from method_lines(name, member)


def own_fields(documented: type) -> list[tuple[str, object]]:
    """Name and annotation of the public fields of a dataclass or msgspec struct, inherited ones left out."""
    if dataclasses.is_dataclass(documented):
        names = [field.name for field in dataclasses.fields(documented) if field.init]
    else:
        names = list(getattr(documented, "__struct_fields__", ()))
    own = inspect.get_annotations(documented)
    return [(name, own[name]) for name in names if name in own and not name.startswith("_")]


def method_lines(name: str, member: Any) -> Iterator[str]:
    """One method, class method, static method or property; nothing for anything else."""
    if isinstance(member, property) and member.fget:
        returns = signature_text(member.fget).partition(" -> ")[2]
        yield f".. py:property:: {name}"
        yield f"   :type: {returns}"
        yield ""
        yield from indented(documentation(member))
        yield ""
        return
    plain = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
    if not inspect.isfunction(plain):
        return
    kind = {classmethod: "classmethod", staticmethod: "staticmethod"}.get(type(member), "method")
    signature = signature_text(plain, bound=kind != "staticmethod")
    yield from python_object(kind, name, signature, documentation(plain))


def function_lines(name: str, function: Any, module: str) -> Iterator[str]:
    """A function, under the module that offers it."""
    yield from python_object("function", name, signature_text(function), documentation(function), module)


def public_members(module: ModuleType) -> list[str]:
    """``__all__`` where there is one, else the public classes and functions that are defined there, in order."""
    declared = getattr(module, "__all__", None)
    if declared is not None:
        return list(declared)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    ]


def reference_lines(module: ModuleType, names: Iterable[str]) -> Iterator[str]:
    """The named classes and functions of a module."""
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value):
            yield from class_lines(value, module.__name__)
        elif inspect.isfunction(value):
            yield from function_lines(name, value, module.__name__)
        else:
            yield from [f".. py:data:: {name}", f"   :module: {module.__name__}", f"   :value: {value!r}", ""]
