"""Whether a PersistentVolume can be reached from this node (MOUNTOP-02)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.api.node_selectors import can_reach
from volumehost.errors import FailedPreconditionError

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume
    from volumehost.hosts.node_host import NodeHost


def check_node_affinity(volume: PersistentVolume, host: NodeHost) -> None:
    """Compare the volume's required terms with the node's labels; one term that matches is enough.

    The labels that are remembered can be older than the volume: its driver has just registered, say. So a volume is
    refused only by the labels that the node has now.

    :raises FailedPreconditionError: none matches.
    """
    if can_reach(volume, host.get_node_labels(), host.get_node_name()):
        return
    host.forget_node()
    if not can_reach(volume, host.get_node_labels(), host.get_node_name()):
        raise FailedPreconditionError("no matching NodeSelectorTerms", subject=volume.metadata.name)
