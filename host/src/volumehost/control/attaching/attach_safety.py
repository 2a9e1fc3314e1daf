"""No volume is taken from a node that still has it staged or mounted, unless an operator says so (BR-46)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from volumehost.control.attaching.attach_source import FORCE_DETACH
from volumehost.control.drivers import unique_csi_name
from volumehost.control.messages import message_of
from volumehost.control.writes import get_or_none
from volumehost.errors import FailedPreconditionError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import VolumeAttachment


class DetachHeldError(FailedPreconditionError):
    """The node still uses the volume; nothing was called."""

    @property
    def text(self) -> str:
        """As it stands in the status."""
        return message_of(self)


class DetachSafety:
    """Asks the node's status, and whoever knows the node better (DETACH-02)."""

    def __init__(self, api: ApiClient, volume_in_use: Callable[[str, str], bool]) -> None:
        self._api = api
        self._volume_in_use = volume_in_use

    def check(self, attachment: VolumeAttachment, handle: str) -> bool:
        """Whether the volume is detached by force; False where nothing uses it. A node that is gone uses nothing.

        :raises DetachHeldError: the node uses it, and no operator forces the detach.
        """
        from volumehost.api.objects import Node

        node_name = attachment.spec.node_name
        unique_name = unique_csi_name(attachment.spec.attacher, handle)
        node = get_or_none(self._api, Node, node_name)
        listed = node is not None and unique_name in node.status.volumes_in_use
        if not listed and not self._volume_in_use(node_name, unique_name):
            return False
        if attachment.metadata.annotations.get(FORCE_DETACH) == "true":
            return True
        raise DetachHeldError(
            f"node {node_name} still has volume {handle} staged or mounted; it is detached as soon as that ends",
            action=f"detaching volume {handle}",
            subject=attachment.metadata.name,
            hint=f"end the pods that use it; annotation {FORCE_DETACH}=true detaches it at the risk of losing data",
        )
