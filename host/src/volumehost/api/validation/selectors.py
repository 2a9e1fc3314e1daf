"""Selectors in objects: labels of objects, labels and fields of nodes, topologies."""

from __future__ import annotations

from collections.abc import Sequence

from volumehost.api.objects import (
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    TopologySelectorTerm,
)
from volumehost.api.validation.metadata import validate_labels
from volumehost.api.validation.names import label_value, qualified_name
from volumehost.api.validation.problems import Problems

_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt")


def label_selector(selector: LabelSelector | None, field: str, problems: Problems) -> None:
    """A selector of objects by their labels."""
    if selector is None:
        return
    validate_labels(selector.match_labels, f"{field}.matchLabels", problems)
    for index, item in enumerate(selector.match_expressions):
        path = f"{field}.matchExpressions[{index}]"
        _requirement(item.key, item.operator, item.values, path, problems)
        if item.operator not in _LABEL_OPERATORS:
            problems.not_supported(f"{path}.operator", item.operator, _LABEL_OPERATORS)


def node_selector(selector: NodeSelector, field: str, problems: Problems) -> None:
    """A selector of nodes; it must have terms."""
    if not selector.node_selector_terms:
        problems.required(f"{field}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(selector.node_selector_terms):
        _node_term(term, f"{field}.nodeSelectorTerms[{index}]", problems)


def _node_term(term: NodeSelectorTerm, field: str, problems: Problems) -> None:
    for index, item in enumerate(term.match_expressions):
        path = f"{field}.matchExpressions[{index}]"
        _requirement(item.key, item.operator, item.values, path, problems)
        _node_operator(item, path, problems)
        for value in item.values:
            reason = label_value(value)
            if reason:
                problems.invalid(f"{path}.values", value, reason)
    for index, item in enumerate(term.match_fields):
        path = f"{field}.matchFields[{index}]"
        if item.key != "metadata.name":
            problems.not_supported(f"{path}.key", item.key, ("metadata.name",))
        if item.operator not in {"In", "NotIn"}:
            problems.not_supported(f"{path}.operator", item.operator, ("In", "NotIn"))
        if len(item.values) != 1:
            problems.required(f"{path}.values", "must have exactly one value")


def _node_operator(item: NodeSelectorRequirement, path: str, problems: Problems) -> None:
    if item.operator in {"Gt", "Lt"}:
        if len(item.values) != 1:
            problems.required(f"{path}.values", f"must have exactly one value when the operator is {item.operator}")
    elif item.operator not in _NODE_OPERATORS:
        problems.not_supported(f"{path}.operator", item.operator, _NODE_OPERATORS)


def _requirement(key: str, operator: str, values: Sequence[str], path: str, problems: Problems) -> None:
    reason = qualified_name(key)
    if reason:
        problems.invalid(f"{path}.key", key, reason)
    if operator in {"In", "NotIn"} and not values:
        problems.required(f"{path}.values", f"must have values when the operator is {operator}")
    if operator in {"Exists", "DoesNotExist"} and values:
        problems.forbidden(f"{path}.values", f"may not have values when the operator is {operator}")


def topology_terms(terms: Sequence[TopologySelectorTerm], field: str, problems: Problems) -> None:
    """Topologies in which volumes may be made: keys once per term, values once per key."""
    for index, term in enumerate(terms):
        keys: set[str] = set()
        for number, item in enumerate(term.match_label_expressions):
            path = f"{field}[{index}].matchLabelExpressions[{number}]"
            reason = qualified_name(item.key)
            if reason:
                problems.invalid(f"{path}.key", item.key, reason)
            if item.key in keys:
                problems.duplicate(f"{path}.key", item.key)
            keys.add(item.key)
            if not item.values:
                problems.required(f"{path}.values")
            for value in sorted({value for value in item.values if item.values.count(value) > 1}):
                problems.duplicate(f"{path}.values", value)
