"""The CSI drivers of this node as one: registered by socket, by command, or installed and started here on demand.

:class:`~volumehost_csi.drivers.drivers.Drivers` is what the plugin hands out (``get_storage_drivers``) and what its
mounters ask for a :class:`~volumehost_csi.client.NodeClient`. Nothing here imports grpc before a driver is spoken to.
"""

from volumehost_csi.drivers.drivers import Drivers

__all__ = ["Drivers"]
