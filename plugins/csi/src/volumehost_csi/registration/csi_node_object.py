"""What a driver changes in the CSINode object (CSI-NIM-05 to -07, -15 to -25).

Functions of an object, without the API.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.api.objects import CSINode, CSINodeDriver, Node
    from volumehost_csi.client import NodeInfo

logger = logging.getLogger(__name__)

#: Annotation of the CSINode: names of the in-tree plugins whose volumes go through CSI here, sorted, comma between.
MIGRATED_ANNOTATION = "storage.alpha.kubernetes.io/migrated-plugins"

#: The largest limit that the API holds: an int32 (CSI-NIM-16).
LARGEST_LIMIT = 2**31 - 1


def new_csi_node(node: Node) -> CSINode:
    """An empty CSINode that belongs to the Node (CSI-NIM-06)."""
    from volumehost.api.objects import CSINode, ObjectMeta, OwnerReference

    owner = OwnerReference(api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid)
    return CSINode(metadata=ObjectMeta(name=node.metadata.name, owner_references=[owner]))


def belongs_to(csi_node: CSINode, node: Node) -> bool:
    """Whether it is this Node's, not that of an earlier node of the same name (CSI-NIM-07)."""
    return any(
        owner.kind == "Node" and owner.name == node.metadata.name and owner.uid == node.metadata.uid
        for owner in csi_node.metadata.owner_references
    )


def driver_entry(driver: str, info: NodeInfo) -> CSINodeDriver:
    """What CSINode says of a driver (CSI-NIM-15, -16); its limit is in the API's range (CSI-NIM-18 improved)."""
    from volumehost.api.objects import CSINodeDriver, VolumeNodeResources

    limit = info.max_volumes
    if limit < 0:
        logger.warning("the CSI driver %s tells a limit of %d volumes: taken as none", driver, limit)
    elif limit > LARGEST_LIMIT:
        logger.warning("the CSI driver %s tells a limit of %d volumes: cut to %d", driver, limit, LARGEST_LIMIT)
    return CSINodeDriver(
        name=driver,
        node_id=info.node_id,
        topology_keys=sorted(info.topology),
        allocatable=VolumeNodeResources(count=min(limit, LARGEST_LIMIT)) if limit > 0 else None,
    )


def find_entry(csi_node: CSINode, driver: str) -> CSINodeDriver | None:
    """The driver's entry, None when it has none."""
    return next((entry for entry in csi_node.spec.drivers if entry.name == driver), None)


def same_entry(one: CSINodeDriver, other: CSINodeDriver) -> bool:
    """Whether two entries say the same; the order of the keys does not count (CSI-NIM-17)."""
    return not must_leave_first(one, other) and _limit(one) == _limit(other)


def must_leave_first(old: CSINodeDriver, new: CSINodeDriver) -> bool:
    """Whether the API refuses the change in place, so that the old entry must go before (CSI-NIM-21)."""
    return old.node_id != new.node_id or set(old.topology_keys) != set(new.topology_keys)


def put_entry(csi_node: CSINode, entry: CSINodeDriver) -> None:
    """Have this entry last, and no other of its name (CSI-NIM-19)."""
    drop_entry(csi_node, entry.name)
    csi_node.spec.drivers.append(entry)


def drop_entry(csi_node: CSINode, driver: str) -> None:
    """Have no entry of that name; the others keep their order."""
    csi_node.spec.drivers = [entry for entry in csi_node.spec.drivers if entry.name != driver]


def put_migrated(csi_node: CSINode, migrated: Collection[str] | None) -> bool:
    """Have the annotation of migrated plugins right; returns whether it changed (CSI-NIM-25).

    :param migrated: names of the migrated in-tree plugins; None leaves the annotation alone.
    """
    if migrated is None:
        return False
    wanted = set(migrated)
    annotations = dict(csi_node.metadata.annotations)
    text = annotations.get(MIGRATED_ANNOTATION)
    if wanted == (set(text.split(",")) if text else set()) and text != "":
        return False
    if wanted:
        annotations[MIGRATED_ANNOTATION] = ",".join(sorted(wanted))
    else:
        annotations.pop(MIGRATED_ANNOTATION, None)
    csi_node.metadata.annotations = annotations
    return True


def stale_labels(
    old: CSINodeDriver | None, new: CSINodeDriver, node_labels: Iterable[str], csi_node: CSINode
) -> list[str]:
    """Labels of the node that only the driver's former topology accounts for; they stay (CSI-NIM-12)."""
    if old is None:
        return []
    elsewhere = {key for entry in csi_node.spec.drivers if entry.name != new.name for key in entry.topology_keys}
    return sorted((set(old.topology_keys) - set(new.topology_keys) - elsewhere) & set(node_labels))


def _limit(entry: CSINodeDriver) -> int:
    """0 and absent are the same."""
    return (entry.allocatable.count or 0) if entry.allocatable is not None else 0
