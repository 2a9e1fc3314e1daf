"""Whether a PersistentVolume can be reached from this node (MOUNTOP-02)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from volumehost.errors import FailedPreconditionError

if TYPE_CHECKING:
    from volumehost.api.objects import NodeSelectorRequirement, NodeSelectorTerm, PersistentVolume


def check_node_affinity(volume: PersistentVolume, labels: Mapping[str, str], node_name: str) -> None:
    """Compare the volume's required terms with the node's labels; one term that matches is enough.

    :raises FailedPreconditionError: none matches.
    """
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return
    if not any(_matches(term, labels, node_name) for term in affinity.required.node_selector_terms):
        raise FailedPreconditionError("no matching NodeSelectorTerms", subject=volume.metadata.name)


def _matches(term: NodeSelectorTerm, labels: Mapping[str, str], node_name: str) -> bool:
    """All conditions must hold; a term without any matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all(_holds(condition, labels) for condition in term.match_expressions) and all(
        condition.key == "metadata.name" and _holds(condition, {"metadata.name": node_name})
        for condition in term.match_fields
    )


def _holds(condition: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(condition.key)
    match condition.operator:
        case "In":
            return value is not None and value in condition.values
        case "NotIn":
            return value is None or value not in condition.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(condition.operator, value, condition.values)
        case _:
            return False


def _compares(operator: str, value: str | None, bounds: list[str]) -> bool:
    try:
        number, bound = int(value or ""), int(bounds[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else number < bound
