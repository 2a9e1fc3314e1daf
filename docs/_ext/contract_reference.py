"""Directives that write the reference pages from the code, so that page and code cannot disagree.

``hook-reference`` renders the eleven interfaces, ``class-reference`` the named classes and functions of a module,
``module-reference`` all of a module's public ones, ``pytest-fixtures`` its fixtures, ``error-tree`` the tree of errors.
They are for pages in reStructuredText.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, ClassVar

import rendering
import signatures
from docutils import nodes
from rendering import documentation, indented, public_members, public_module, python_object, reference_lines
from signatures import API_OBJECTS, signature_text
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from volumehost import errors, hookspecs


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


def tree_lines(error: type[BaseException], before: str = "") -> Iterator[str]:
    """The subclasses of an error, drawn."""
    children = sorted(public_subclasses(error), key=place_told)
    for child in children:
        last = child is children[-1]
        yield f"{before}{'`-- ' if last else '|-- '}{child.__name__}"
        yield from tree_lines(child, before + ("    " if last else "|   "))


def public_subclasses(error: type[BaseException]) -> Iterator[type[BaseException]]:
    """Its children in the tree; those of a nameless class between them stand in for it.

    A class with two bases is drawn once, below the first.
    """
    for child in error.__subclasses__():
        if child.__module__.startswith(errors.__name__) and child.__bases__[0] is error:
            yield from public_subclasses(child) if child.__name__.startswith("_") else [child]


def place_told(error: type[BaseException]) -> int:
    """Where it stands in the list of all: the order in which they are told."""
    return errors.__all__.index(error.__name__)


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
        for module in (*self.sources, sys.modules[__name__], rendering, signatures):
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


class PytestFixtures(ReferenceDirective):
    """``.. pytest-fixtures:: MODULE``: the fixtures that it defines, as far as they are public."""

    required_arguments = 1
    optional_arguments = 0
    has_content = False

    def lines(self) -> Iterator[str]:
        module = importlib.import_module(self.arguments[0])
        self.env.note_dependency(str(module.__file__))
        for name, value in vars(module).items():
            if type(value).__name__ == "FixtureFunctionDefinition" and not name.startswith("_"):
                yield f"``{name}``"
                yield from indented(documentation(value))
                yield ""


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
    app.add_directive("pytest-fixtures", PytestFixtures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
