"""Signatures as they are written in the source; used by the reference pages and by nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


class _Verbatim:
    """Prints as its text: an annotation without the quotes of a string, a default by the name of a function."""

    def __init__(self, text: object) -> None:
        self.text = text if isinstance(text, str) else inspect.formatannotation(text)

    def __repr__(self) -> str:
        return self.text


def signature_text(function: Callable[..., Any], *, bound: bool = False) -> str:
    """``(spec: Spec, pod: Pod) -> Mounter``, annotations as written; without ``self`` or ``cls`` when ``bound``."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if bound and parameters:
        parameters = parameters[1:]
    written = [_as_written(parameter) for parameter in parameters]
    returns: Any = signature.return_annotation
    if returns is not signature.empty:
        returns = _Verbatim(returns)
    return str(signature.replace(parameters=written, return_annotation=returns))


def _as_written(parameter: inspect.Parameter) -> inspect.Parameter:
    if parameter.annotation is not parameter.empty:
        parameter = parameter.replace(annotation=_Verbatim(parameter.annotation))
    default = parameter.default
    if default is not parameter.empty and callable(default):
        name = getattr(default, "__qualname__", type(default).__qualname__)
        parameter = parameter.replace(default=_Verbatim(f"{getattr(default, '__module__', '')}.{name}"))
    return parameter
