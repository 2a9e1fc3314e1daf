"""Where a new volume has to be reachable from, and what a volume's topologies mean for nodes (CSI-WIRE-12)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from volumehost.control.writes import get_or_none
from volumehost.errors import FailedPreconditionError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import TopologySelectorTerm, VolumeNodeAffinity
    from volumehost.control.binding.matching import NodeView
    from volumehost.storage_driver import Topology


def accessibility_requirement(
    api: ApiClient, driver: str, terms: Sequence[TopologySelectorTerm], node: NodeView | None
) -> tuple[list[Topology], list[Topology]]:
    """The requisite and the preferred topologies of a new volume; both empty where the driver has told of none.

    The selected node comes first among the preferred ones. The class's allowed topologies are the requisite ones,
    otherwise those of all nodes that run the driver.

    :raises FailedPreconditionError: the driver has not told where the selected node is, or it is not in an allowed
        topology.
    """
    own = _topology_of(api, driver, node) if node is not None else None
    requisite = _flattened(terms) if terms else _unique(_topologies_of_nodes(api, driver))
    if own is None:
        return requisite, requisite
    if not own:
        return (requisite, requisite) if terms else ([], [])
    first = [topology for topology in requisite if _is_within(own, topology)]
    if not first:
        raise FailedPreconditionError(
            f"the topology of node {node.name if node else ''} is none of those that the storage class allows",
            action="choosing where to create the volume",
        )
    return requisite, [*first, *(topology for topology in requisite if topology not in first)]


def node_affinity(topologies: Sequence[Topology]) -> VolumeNodeAffinity | None:
    """The affinity of a volume that can be reached from these topologies; None for everywhere."""
    from volumehost.api.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, VolumeNodeAffinity

    terms = [
        NodeSelectorTerm(
            match_expressions=[
                NodeSelectorRequirement(key=key, operator="In", values=[text]) for key, text in sorted(topology.items())
            ]
        )
        for topology in topologies
        if topology
    ]
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms)) if terms else None


def _topology_of(api: ApiClient, driver: str, node: NodeView) -> Topology:
    """Where the node is as the driver sees it; empty when the driver has no topology."""
    from volumehost.api.objects import CSINode

    csi_node = get_or_none(api, CSINode, node.name)
    entry = next((each for each in csi_node.spec.drivers if each.name == driver), None) if csi_node else None
    if entry is None:
        raise FailedPreconditionError(
            f"driver {driver} has not registered on node {node.name} yet",
            action="choosing where to create the volume",
            subject=driver,
        )
    missing = [key for key in entry.topology_keys if key not in node.labels]
    if missing:
        raise FailedPreconditionError(
            f"node {node.name} lacks the topology labels {', '.join(missing)}",
            action="choosing where to create the volume",
            subject=driver,
            hint="the driver's registration sets them",
        )
    return {key: node.labels[key] for key in entry.topology_keys}


def _topologies_of_nodes(api: ApiClient, driver: str) -> Iterable[Topology]:
    from volumehost.api.objects import CSINode, Node

    labels: Mapping[str, Mapping[str, str]] = {
        node.metadata.name: node.metadata.labels for node in api.list(Node).items
    }
    for csi_node in api.list(CSINode).items:
        for entry in csi_node.spec.drivers:
            own = labels.get(csi_node.metadata.name, {})
            if entry.name == driver and entry.topology_keys and all(key in own for key in entry.topology_keys):
                yield {key: own[key] for key in entry.topology_keys}


def _flattened(terms: Sequence[TopologySelectorTerm]) -> list[Topology]:
    """Every combination of values that the terms allow."""
    return _unique(
        dict(combination)
        for term in terms
        for combination in itertools.product(
            *([(wanted.key, value) for value in wanted.values] for wanted in term.match_label_expressions)
        )
    )


def _unique(topologies: Iterable[Topology]) -> list[Topology]:
    found: list[Topology] = []
    for topology in topologies:
        if topology and topology not in found:
            found.append(topology)
    return found


def _is_within(own: Topology, topology: Topology) -> bool:
    """Whether a node there is in a topology that may say less."""
    return all(own.get(key) == value for key, value in topology.items())
