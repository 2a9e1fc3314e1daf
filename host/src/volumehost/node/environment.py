"""Expands ``$(NAME)`` in ``subPathExpr`` from the container's environment, as the kubelet does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from volumehost.errors import SpecError

if TYPE_CHECKING:
    from volumehost.api.objects import Container, Pod

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.\-]*)\)")


def expand_subpath(text: str, container: Container, pod: Pod, node_name: str) -> str:
    """The text with every reference replaced; ``$$`` stands for ``$``.

    :raises SpecError: a name is not set, or its value comes from where this host cannot look.
    """
    values: dict[str, str] = {}
    for variable in container.env:
        if variable.value_from is None:
            values[variable.name] = _expand(variable.value, values, strict=False)
        else:
            known = _field_value(variable.value_from, pod, node_name)
            if known is not None:
                values[variable.name] = known
    return _expand(text, values, strict=True)


def _expand(text: str, values: dict[str, str], *, strict: bool) -> str:
    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return "$"
        if name in values:
            return values[name]
        if strict:
            raise SpecError(
                f"the variable {name} is not set, or its value does not come from the pod itself",
                action=f"expanding subPathExpr {text!r}",
                subject=name,
            )
        return match.group(0)

    return _REFERENCE.sub(replace, text)


def _field_value(source: dict[str, Any], pod: Pod, node_name: str) -> str | None:
    """The value of a ``fieldRef`` to the pod, None for what is not known here."""
    reference = source.get("fieldRef")
    path = reference.get("fieldPath") if isinstance(reference, dict) else None
    if not isinstance(path, str):
        return None
    metadata = pod.metadata
    simple = {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace,
        "metadata.uid": metadata.uid,
        "spec.nodeName": pod.spec.node_name or node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
    }
    if path in simple:
        return simple[path]
    match = re.fullmatch(r"metadata\.(labels|annotations)\['([^']+)'\]", path)
    if match is None:
        return None
    values = metadata.labels if match.group(1) == "labels" else metadata.annotations
    return values.get(match.group(2), "")
