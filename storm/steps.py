"""Every named step of every operation, read from the code, so that a new one cannot be forgotten by the kill storm."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import volumehost.node
from volumehost.node.operations.common import Steps

#: Operations that there are only in a cluster.
_IN_A_CLUSTER = {"verify_controller_attached_volume"}


class Step(NamedTuple):
    """One named step: ``volume_mount`` and ``set-up``."""

    operation: str
    step: str

    def __str__(self) -> str:
        return f"{self.operation}/{self.step}"


@cache
def all_steps() -> tuple[Step, ...]:
    """The steps of all operations, each operation's in the order in which its code has them.

    An operation is a class of the node's room with a ``name`` and a ``run`` that takes the steps. What ``run`` hands
    its steps to is followed: methods, functions, classes, and what the steps themselves do.
    """
    found: dict[Step, None] = {}
    for operation in _operations():
        for step in _steps_of(operation.run, operation, set()):
            found[Step(operation.name, step)] = None
    return tuple(found)


def steps_to_die_at() -> tuple[Step, ...]:
    """Those that the node of a storm takes, whose own control plane attaches."""
    return tuple(step for step in all_steps() if step.operation not in _IN_A_CLUSTER)


def _operations() -> list[Any]:
    """The classes, by name; a class that others derive from and that has no name of its own is none."""
    found = {}
    for module in _modules():
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if cls.__module__ == module.__name__ and isinstance(getattr(cls, "name", None), str) and _takes_steps(cls):
                found[cls.__qualname__] = cls
    return [found[name] for name in sorted(found)]


def _takes_steps(cls: type) -> bool:
    run = getattr(cls, "run", None)
    return inspect.isfunction(run) and "steps" in inspect.signature(run).parameters


def _modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(volumehost.node.__path__, "volumehost.node.")
    return [importlib.import_module(info.name) for info in found]


def _steps_of(function: Callable[..., Any], cls: Any, seen: set[Any]) -> Iterator[str]:
    """Literals of ``steps.enter("...")`` in the function, and in what it passes ``steps`` on to."""
    if function in seen:
        return
    seen.add(function)
    tree = _tree(function)
    for call in sorted(_calls(tree), key=lambda node: (node.lineno, node.col_offset)):
        target = call.func
        if isinstance(target, ast.Attribute) and _is_name(target.value, "steps"):
            if target.attr == "enter":
                yield _literal(call, function)
            else:
                yield from _entered_by(getattr(Steps, target.attr), "self")
        elif any(_is_name(each, "steps") for each in call.args):
            found = _resolve(target, tree, function, cls)
            if isinstance(found, type):
                yield from _entered_by(found, "_steps")
            else:
                yield from _steps_of(found, cls, seen)


def _entered_by(source: Any, holder: str) -> Iterator[str]:
    """What a class enters on the steps that it keeps as ``self._steps``, or a method of the steps on itself."""
    for call in _calls(_tree(source)):
        target = call.func
        if isinstance(target, ast.Attribute) and target.attr == "enter":
            kept = target.value
            if _is_name(kept, holder) or (isinstance(kept, ast.Attribute) and kept.attr == holder):
                yield _literal(call, source)


def _resolve(target: ast.expr, tree: ast.AST, function: Callable[..., Any], cls: Any) -> Any:
    """The function, method or class that is called."""
    if isinstance(target, ast.Attribute) and _is_name(target.value, "self"):
        return getattr(cls, target.attr)
    if isinstance(target, ast.Name):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and any(n.name == target.id for n in node.names):
                return getattr(importlib.import_module(node.module), target.id)
        return getattr(inspect.getmodule(function), target.id)
    raise ValueError(f"{function.__qualname__} hands its steps to {ast.unparse(target)}, which cannot be followed")


def _tree(source: Any) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(source)))


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _literal(call: ast.Call, source: Any) -> str:
    value = getattr(call.args[0], "value", None)
    if isinstance(value, str):
        return value
    raise ValueError(f"{source.__qualname__} names a step by {ast.unparse(call.args[0])}, not by a literal")
