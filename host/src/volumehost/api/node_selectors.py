"""Whether a node is one that a selector means: affinities of volumes, terms of topologies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.api.objects import (
        NodeSelector,
        NodeSelectorRequirement,
        NodeSelectorTerm,
        PersistentVolume,
        TopologySelectorTerm,
    )


def node_matches(selector: NodeSelector, labels: Mapping[str, str], node_name: str) -> bool:
    """Whether one of the terms matches the node."""
    return any(_matches(term, labels, node_name) for term in selector.node_selector_terms)


def can_reach(volume: PersistentVolume, labels: Mapping[str, str], node_name: str) -> bool:
    """Whether the volume's affinity lets the node use it (MOUNTOP-02); without one every node may."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return node_matches(affinity.required, labels, node_name)


def is_in_topology(terms: list[TopologySelectorTerm], labels: Mapping[str, str]) -> bool:
    """Whether the labels fulfil one of the terms; without any they do."""
    return not terms or any(
        all(labels.get(wanted.key) in wanted.values for wanted in term.match_label_expressions) for term in terms
    )


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
