"""Whether a PersistentVolume can be reached from this node (MOUNTOP-02)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from volumehost.api.node_selectors import can_reach
from volumehost.errors import FailedPreconditionError

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume


def check_node_affinity(volume: PersistentVolume, labels: Mapping[str, str], node_name: str) -> None:
    """Compare the volume's required terms with the node's labels; one term that matches is enough.

    :raises FailedPreconditionError: none matches.
    """
    if not can_reach(volume, labels, node_name):
        raise FailedPreconditionError("no matching NodeSelectorTerms", subject=volume.metadata.name)
