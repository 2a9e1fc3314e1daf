"""Signatures as they are written in the source; used by the reference pages and by nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


class _Verbatim:
    """An annotation that prints as its text, without the quotes of a string."""

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
    written = [p if p.annotation is p.empty else p.replace(annotation=_Verbatim(p.annotation)) for p in parameters]
    returns: Any = signature.return_annotation
    if returns is not signature.empty:
        returns = _Verbatim(returns)
    return str(signature.replace(parameters=written, return_annotation=returns))


def summary(documented: object) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(documented) or "").partition("\n")[0]
