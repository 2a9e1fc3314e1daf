"""Where a volume can be reached: on the machine that has its image, and nowhere else (CSI-WIRE-12)."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from volumehost_csi_kit import csi

TOPOLOGY_KEY: Final = "topology.loop.csi.volumehost/node"
_VALUE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)


def segment(node_id: str) -> str:
    """The node's id as the value of a topology segment; a digest of it where it is too long or has other letters."""
    if _VALUE.fullmatch(node_id):
        return node_id
    return hashlib.sha256(node_id.encode()).hexdigest()[:63]


def topology(node_id: str) -> csi.Topology:
    """The one place of this node's volumes."""
    return csi.Topology(segments={TOPOLOGY_KEY: segment(node_id)})


def reaches(node_id: str, place: csi.Topology) -> bool:
    """Whether a volume of this node can be reached from the place; a place without segments is anywhere."""
    return all(key.lower() == TOPOLOGY_KEY and value == segment(node_id) for key, value in place.segments.items())


def accepts(node_id: str, requirement: csi.TopologyRequirement) -> bool:
    """Whether a volume on this node fulfils the requirement; what is only preferred excludes nothing."""
    return not requirement.requisite or any(reaches(node_id, place) for place in requirement.requisite)
