"""Which node a claim waits for: without a cluster it is this one as soon as a pod is known that uses the claim.

What the scheduler's volume binding checks before it selects a node is checked here: topologies that the class allows,
and capacity that the driver has told of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from volumehost.api.node_selectors import is_in_topology
from volumehost.api.selectors import selector_of
from volumehost.control.binding.matching import NodeView, storage_of
from volumehost.control.well_known import FINISHED_PHASES, SELECTED_NODE
from volumehost.control.writes import get_or_none
from volumehost.sdk.quantity import parse_quantity

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import CSIStorageCapacity, PersistentVolumeClaim, Pod, StorageClass


def node_view(api: ApiClient, name: str, here: str) -> NodeView:
    """A node with its labels; of this one (``here``) those that every node has are known without an object."""
    from volumehost.api.objects import Node
    from volumehost.hosts.node_info import local_labels

    node = get_or_none(api, Node, name)
    labels: Mapping[str, str] = node.metadata.labels if node is not None else {}
    return NodeView(name, {**local_labels(name), **labels} if name == here else labels)


def claims_of(pod: Pod) -> set[str]:
    """The names of the claims that a pod uses, those made for its ephemeral volumes included."""
    names = set()
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.add(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.add(f"{pod.metadata.name}-{volume.name}")
    return names


def users_of(api: ApiClient, claim: PersistentVolumeClaim) -> list[Pod]:
    """The pods that use the claim and are not at their end."""
    from volumehost.api.objects import Pod

    pods: Iterable[Pod] = api.list(Pod, claim.metadata.namespace).items
    return [
        pod
        for pod in pods
        if pod.status.phase not in FINISHED_PHASES
        and pod.metadata.deletion_timestamp is None
        and claim.metadata.name in claims_of(pod)
    ]


def selected_node(api: ApiClient, claim: PersistentVolumeClaim, here: str, *, has_scheduler: bool) -> NodeView | None:
    """The node that was selected for the claim; without a scheduler this one, when a pod waits that may run here."""
    name = claim.metadata.annotations.get(SELECTED_NODE, "")
    if not name and not has_scheduler and any(pod.spec.node_name in {"", here} for pod in users_of(api, claim)):
        name = here
    return node_view(api, name, here) if name else None


def why_not_here(
    api: ApiClient,
    claim: PersistentVolumeClaim,
    storage_class: StorageClass,
    node: NodeView,
    *,
    external_drivers: bool,
) -> str:
    """Why no volume of the class can be made for the node; "" when one can.

    :param external_drivers: others than this host tell of the capacity of drivers, and they tell all.
    """
    from volumehost.api.objects import CSIDriver, CSIStorageCapacity

    if not is_in_topology(storage_class.allowed_topologies, node.labels):
        return f"node {node.name} is in none of the topologies that storage class {storage_class.metadata.name} allows"
    driver = get_or_none(api, CSIDriver, storage_class.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return ""
    told = [
        each for each in api.list(CSIStorageCapacity).items if each.storage_class_name == storage_class.metadata.name
    ]
    if not told and not external_drivers:
        return ""  # nobody here tells of capacity beforehand: the driver does when it is asked for the volume
    return _capacity_problem(claim, storage_class, node, told)


def _capacity_problem(
    claim: PersistentVolumeClaim, storage_class: StorageClass, node: NodeView, told: Iterable[CSIStorageCapacity]
) -> str:
    wanted, largest = storage_of(claim.spec.resources.requests), -1
    for capacity in told:
        where, text = selector_of(capacity.node_topology), capacity.maximum_volume_size or capacity.capacity
        if where is not None and where.matches(node.labels) and text:
            largest = max(largest, parse_quantity(text).value())
    if largest >= wanted:
        return ""
    shown = f"at most {largest} bytes are left" if largest >= 0 else "the driver tells of none"
    return f"not enough capacity for {wanted} bytes of storage class {storage_class.metadata.name}: {shown}"
