"""What a driver changes in the Node object: its node id and the topology labels (CSI-NIM-10 to -14, -24).

Functions of an object, without the API: they return a JSON merge patch, empty when there is nothing to change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from volumehost.errors import InvalidObjectError, StorageDriverError

if TYPE_CHECKING:
    from volumehost.api.objects import Node
    from volumehost_csi.client import NodeInfo

#: Annotation of the Node: a JSON object, driver to node id.
NODE_ID_ANNOTATION = "csi.volume.kubernetes.io/nodeid"


class TopologyCollisionError(StorageDriverError):
    """A topology label of the node has another value than the driver tells (CSI-NIM-11)."""


def install_patch(node: Node, driver: str, info: NodeInfo) -> dict[str, Any]:
    """The patch after which the Node has the driver's node id and topology.

    :raises TopologyCollisionError: a label is there with another value; then nothing is to be changed.
    :raises InvalidObjectError: the annotation is not a JSON object of texts; it is left as it is.
    """
    metadata: dict[str, Any] = {}
    ids = node_ids(node)
    if ids.get(driver) != info.node_id:
        metadata["annotations"] = {NODE_ID_ANNOTATION: _text({**ids, driver: info.node_id})}
    labels = _missing_labels(node, driver, info.topology)
    if labels:
        metadata["labels"] = labels
    return {"metadata": metadata} if metadata else {}


def uninstall_patch(node: Node, driver: str) -> dict[str, Any]:
    """The patch after which the Node no longer has the driver's node id; labels stay (CSI-NIM-24).

    :raises InvalidObjectError: the annotation is not a JSON object of texts.
    """
    ids = node_ids(node)
    if driver not in ids:
        return {}
    del ids[driver]
    return {"metadata": {"annotations": {NODE_ID_ANNOTATION: _text(ids) if ids else None}}}


def node_ids(node: Node) -> dict[str, str]:
    """Driver to node id, as the Node tells.

    :raises InvalidObjectError: the annotation is not a JSON object of texts.
    """
    text = node.metadata.annotations.get(NODE_ID_ANNOTATION)
    if not text:
        return {}
    try:
        ids = json.loads(text)
    except ValueError:
        ids = None
    if not isinstance(ids, dict) or not all(isinstance(value, str) for value in ids.values()):
        raise InvalidObjectError(
            subject=f"Node {node.metadata.name}",
            problems=[
                (
                    f"metadata.annotations[{NODE_ID_ANNOTATION}]",
                    "not a JSON object of driver names and node ids; mend or remove the annotation",
                )
            ],
        )
    return ids


def _missing_labels(node: Node, driver: str, topology: Mapping[str, str]) -> dict[str, str]:
    labels = node.metadata.labels
    collisions = {key: value for key, value in sorted(topology.items()) if labels.get(key, value) != value}
    if collisions:
        told = ", ".join(f"{key}={value} where the node has {labels[key]}" for key, value in collisions.items())
        raise TopologyCollisionError(
            f"the driver's topology contradicts labels of the Node {node.metadata.name}: {told}",
            driver=driver,
            call="NodeGetInfo",
            action=f"publishing the CSI driver {driver} on the node",
            hint="labels of a topology are never changed by themselves, volumes depend on them: when the new value is "
            f"right, remove the old label ({', '.join(collisions)}) from the Node",
        )
    return {key: value for key, value in topology.items() if key not in labels}


def _text(ids: Mapping[str, str]) -> str:
    return json.dumps(ids, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
