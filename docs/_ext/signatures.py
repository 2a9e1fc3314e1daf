"""Signatures as they are written in the source; used by the reference pages and by nothing else."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

API_OBJECTS = "volumehost.api.objects"
#: Some of their classes share a name (``Volume``, ``PodStatus``), so annotations that mean them are written out for the
#: links. The page shows the bare name.
WRITTEN_OUT = (API_OBJECTS, "volumehost.node.status.records", "volumehost.node.workloads.containers")


class _Verbatim:
    """Prints as its text: an annotation without the quotes of a string, a default by the name of a function."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def signature_text(function: Callable[..., Any], *, bound: bool = False) -> str:
    """``(spec: Spec, pod: Pod) -> Mounter``, annotations as written; without ``self`` or ``cls`` when ``bound``."""
    signature = inspect.signature(function)
    module = getattr(function, "__module__", "")
    parameters = list(signature.parameters.values())
    if bound and parameters:
        parameters = parameters[1:]
    written = [_as_written(parameter, module) for parameter in parameters]
    returns: Any = signature.return_annotation
    if returns is not signature.empty:
        returns = _Verbatim(annotation_text(returns, module))
    return str(signature.replace(parameters=written, return_annotation=returns))


def annotation_text(annotation: object, module: str) -> str:
    """An annotation of a module as written, names that need it with their module."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    homes = _homes_in(module)
    return re.sub(r"(?<![\w.'\"])[A-Z]\w*", lambda m: f"{homes[m[0]]}.{m[0]}" if m[0] in homes else m[0], text)


@cache
def _homes_in(module: str) -> dict[str, str]:
    """The names that a module imports from one of those modules, for type checkers or at run time."""
    if module not in sys.modules or module.startswith(API_OBJECTS):
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in WRITTEN_OUT
        for alias in node.names
    }


def _as_written(parameter: inspect.Parameter, module: str) -> inspect.Parameter:
    if parameter.annotation is not parameter.empty:
        parameter = parameter.replace(annotation=_Verbatim(annotation_text(parameter.annotation, module)))
    default = parameter.default
    if default is not parameter.empty and callable(default):
        name = getattr(default, "__qualname__", type(default).__qualname__)
        parameter = parameter.replace(default=_Verbatim(f"{getattr(default, '__module__', '')}.{name}"))
    return parameter
