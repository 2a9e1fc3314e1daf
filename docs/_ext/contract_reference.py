"""Directives that write the reference pages from the code, so that page and code cannot disagree.

``hook-reference`` renders the eleven interfaces, ``class-reference`` the named classes and functions of a module,
``module-reference`` all of a module's public ones, ``error-tree`` the tree of errors. They are for pages in
reStructuredText.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, ClassVar

import signatures
from docutils import nodes
from signatures import API_OBJECTS, annotation_text, signature_text
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import volumehost
from volumehost import errors, hookspecs


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


def python_object(kind: str, name: str, signature: str, body: Iterable[str], module: str = "") -> Iterator[str]:
    """A ``py:class``, ``py:method`` or the like, with its body."""
    yield f".. py:{kind}:: {name}{signature}"
    if module:
        yield f"   :module: {module}"
    yield ""
    yield from indented(body)
    yield ""


# --- hooks ------------------------------------------------------------------------------------------------


def hooks_of(interface: type) -> list[tuple[str, Any]]:
    """The hooks that the interface adds: its own, and those of the nameless classes that it shares with others."""
    holders = [interface, *(base for base in interface.__bases__ if base not in hookspecs.INTERFACES)]
    return [(name, vars(holder)[name]) for holder in holders for name in hookspecs.own_hooks(holder)]


def hook_body(name: str, hook: Any) -> Iterator[str]:
    """Required or optional with its default, then the docstring."""
    if name in hookspecs.OPTIONAL_HOOKS:
        yield f"*Optional*; without it the answer is ``{hookspecs.OPTIONAL_HOOKS[name]!r}``."
    else:
        yield "*Required.*"
    yield ""
    yield from documentation(hook)


def interface_lines(interface: type) -> Iterator[str]:
    """One interface: a section with the class, how to be one, and its hooks."""
    name = interface.__name__
    yield name
    yield "-" * len(name)
    yield ""
    yield from python_object("class", name, "", interface_body(interface), public_module(interface))


def interface_body(interface: type) -> Iterator[str]:
    """What is inside the class of an interface."""
    yield from documentation(interface)
    yield ""
    bases = [base for base in interface.__bases__ if base in hookspecs.INTERFACES]
    if bases:
        yield "Is also a " + ", ".join(f":class:`{base.__name__}`" for base in bases) + "."
        yield ""
    for name, hook in hooks_of(interface):
        signature = signature_text(hook, bound=True)
        yield from python_object("method", name, signature, hook_body(name, hook))


# --- classes and functions ---------------------------------------------------------------------------------


def class_lines(documented: type, offered_by: str) -> Iterator[str]:
    """A class: Protocol, dataclass, error, or one with a constructor of its own."""
    kind = "exception" if issubclass(documented, BaseException) else "class"
    signature = "" if is_protocol(documented) or issubclass(documented, enum.Enum) else constructor_text(documented)
    body = [*documentation(documented), "", *bases_line(documented), *member_lines(documented)]
    yield from python_object(kind, documented.__name__, signature, body, public_module(documented, offered_by))


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


# --- errors -----------------------------------------------------------------------------------------------


def tree_lines(error: type[BaseException], before: str = "") -> Iterator[str]:
    """The subclasses of an error, drawn."""
    children = sorted(public_subclasses(error), key=source_line)
    for child in children:
        last = child is children[-1]
        yield f"{before}{'`-- ' if last else '|-- '}{child.__name__}"
        yield from tree_lines(child, before + ("    " if last else "|   "))


def public_subclasses(error: type[BaseException]) -> Iterator[type[BaseException]]:
    """Its children in the tree; those of a nameless class between them stand in for it."""
    for child in error.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from public_subclasses(child) if child.__name__.startswith("_") else [child]


def source_line(documented: type) -> int:
    """Where it stands in its module: the order in which it is told."""
    return inspect.getsourcelines(documented)[1]


# --- directives -------------------------------------------------------------------------------------------


class ReferenceDirective(SphinxDirective):
    """Parses the lines that a subclass generates as reStructuredText in place of the directive."""

    optional_arguments = 1
    has_content = True
    sources: ClassVar[tuple[ModuleType, ...]] = ()
    #: In which module names without one are looked for.
    home = "volumehost"

    def lines(self) -> Iterator[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        for module in (*self.sources, sys.modules[__name__], signatures):
            self.env.note_dependency(str(module.__file__))
        text = "\n".join([*self.lines()])
        text = f".. py:currentmodule:: {self.home}\n\n{text}"
        return self.parse_text_to_nodes(text, allow_section_headings=True)


class HookReference(ReferenceDirective):
    """All eleven interfaces with their hooks."""

    sources = (hookspecs,)

    def lines(self) -> Iterator[str]:
        for interface in hookspecs.INTERFACES:
            yield from interface_lines(interface)


class ClassReference(ReferenceDirective):
    """``.. class-reference:: MODULE`` with one name a line: those classes and functions."""

    required_arguments = 1
    optional_arguments = 0

    def lines(self) -> Iterator[str]:
        module = importlib.import_module(self.arguments[0])
        self.env.note_dependency(str(module.__file__))
        yield from reference_lines(module, [line.strip() for line in self.content if line.strip()])


class ModuleReference(ReferenceDirective):
    """``.. module-reference:: MODULE``: all of its public classes and functions."""

    required_arguments = 1
    optional_arguments = 0
    has_content = False

    def lines(self) -> Iterator[str]:
        module = importlib.import_module(self.arguments[0])
        self.env.note_dependency(str(module.__file__))
        if module.__name__ == API_OBJECTS:
            self.home = module.__name__
        yield from reference_lines(module, public_members(module))


class ErrorTree(ReferenceDirective):
    """The tree of errors as the classes have it."""

    sources = (errors,)
    has_content = False

    def lines(self) -> Iterator[str]:
        yield ".. code-block:: text"
        yield ""
        yield from indented([errors.VolumeHostError.__name__, *tree_lines(errors.VolumeHostError)])
        yield ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("hook-reference", HookReference)
    app.add_directive("class-reference", ClassReference)
    app.add_directive("module-reference", ModuleReference)
    app.add_directive("error-tree", ErrorTree)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
