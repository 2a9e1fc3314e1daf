"""GrpcStorageDriver: one registration of a CSI driver as the contract's StorageDriver."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from volumehost_csi.client import NodeClient
from volumehost_csi.drivers.calls import Caller
from volumehost_csi.drivers.capabilities import CapabilityCache
from volumehost_csi.drivers.change_calls import ChangeCalls
from volumehost_csi.drivers.counting import CountedChannel
from volumehost_csi.drivers.snapshot_calls import SnapshotCalls
from volumehost_csi.drivers.volume_calls import VolumeCalls

if TYPE_CHECKING:
    import grpc

    from volumehost.storage_driver import DriverCapabilities
    from volumehost_csi.metrics import CSIMetrics
    from volumehost_csi.registration.store import DriverInstance
    from volumehost_csi.settings import Settings


class GrpcStorageDriver:
    """One registration: all its calls over its one channel. Safe for threads; useless once the driver has left."""

    def __init__(self, instance: DriverInstance, metrics: CSIMetrics, settings: Settings) -> None:
        self.instance = instance
        self._counted = CountedChannel(instance.channel())
        channel = cast("grpc.Channel", self._counted)
        #: The driver's node service over the same channel.
        self.node = NodeClient(instance.name, channel, metrics, timeout=settings.rpc_timeout)
        caller = Caller(
            instance, channel, metrics, timeout=settings.rpc_timeout, create_timeout=settings.create_timeout
        )
        self._capabilities = CapabilityCache(caller, self.node)
        volumes, changes = VolumeCalls(caller), ChangeCalls(caller)
        snapshots = SnapshotCalls(caller, self.capabilities)
        self.create_volume = volumes.create_volume
        self.delete_volume = volumes.delete_volume
        self.publish_volume = volumes.publish_volume
        self.unpublish_volume = volumes.unpublish_volume
        self.validate_volume = volumes.validate_volume
        self.get_capacity = volumes.get_capacity
        self.list_volumes = volumes.list_volumes
        self.expand_volume = changes.expand_volume
        self.modify_volume = changes.modify_volume
        self.create_snapshot = snapshots.create_snapshot
        self.delete_snapshot = snapshots.delete_snapshot
        self.get_snapshot = snapshots.get_snapshot
        self.list_snapshots = snapshots.list_snapshots

    def __repr__(self) -> str:
        return f"<GrpcStorageDriver {self.name} at {self.instance.endpoint}>"

    @property
    def name(self) -> str:
        """The name that it registered with."""
        return self.instance.name

    @property
    def node_id(self) -> str:
        """This node as the driver calls it; "" when it has no node service."""
        return self.instance.node_id

    @property
    def busy(self) -> bool:
        """Whether a call to it is on its way from here."""
        return self._counted.calls > 0

    @property
    def vendor_version(self) -> str:
        """The version that it tells of itself, "" before its capabilities were asked for."""
        return self._capabilities.vendor_version

    @property
    def known_capabilities(self) -> DriverCapabilities | None:
        """What it can do, None before it was asked."""
        return self._capabilities.known

    def capabilities(self) -> DriverCapabilities:
        """What it can do; asked once for each registration."""
        return self._capabilities.get()
