"""StandaloneHost: the host of a machine without a cluster, which is node and controller at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.hosts.node_host import NodeHost

if TYPE_CHECKING:
    from volumehost.api.objects import CSINode, VolumeAttachment
    from volumehost.host_services import Lister
    from volumehost.hosts.tokens import Signer


class StandaloneHost(NodeHost):
    """A NodeHost whose plugins may attach and detach: implements AttachDetachVolumeHost besides.

    In a cluster attaching is the controller's (CSI-ATT-01); here nobody else would do it.
    """

    def default_token_signer(self) -> Signer:
        """A signer with a key of the root directory."""
        from volumehost.hosts.tokens import LocalSigner

        return LocalSigner(self.layout.root_dir)

    def csi_node_lister(self) -> Lister[CSINode]:
        """CSINode objects."""
        from volumehost.api.listers import StoreLister
        from volumehost.api.objects import CSINode

        return StoreLister(self._require_api("listing CSINode objects"), CSINode)

    def volume_attachment_lister(self) -> Lister[VolumeAttachment]:
        """VolumeAttachment objects."""
        from volumehost.api.listers import StoreLister
        from volumehost.api.objects import VolumeAttachment

        return StoreLister(self._require_api("listing VolumeAttachment objects"), VolumeAttachment)

    def is_attach_detach_controller(self) -> bool:
        """Marks a host that attaches (ADHOST-01)."""
        return True
