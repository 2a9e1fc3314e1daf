"""Which operation does what a volume needs. Each is loaded when the first volume needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.node.state.states import Need
from volumehost.spec import BLOCK_MODE

if TYPE_CHECKING:
    from volumehost.node.operations.common import Operation, Services
    from volumehost.node.state.desired import VolumeUse
    from volumehost.node.state.records import AttachedVolume, MountedVolume


def mounting_operation(services: Services, use: VolumeUse, need: Need) -> Operation:
    """What brings a pod's volume nearer to where it is wanted."""
    if need is Need.ATTACH and services.attachments is not None:
        from volumehost.node.cluster.verify_operation import VerifyOperation

        return VerifyOperation(services, services.attachments, use)
    if need is Need.ATTACH:
        from volumehost.node.operations.attach_operations import AttachOperation

        return AttachOperation(services, use)
    if need is Need.RESIZE:
        from volumehost.node.operations.expand_operation import ExpandOperation

        return ExpandOperation(services, use)
    if use.is_block:
        from volumehost.node.operations.map_operation import MapOperation

        return MapOperation(services, use)
    from volumehost.node.operations.mount_operation import MountOperation

    return MountOperation(services, use, is_remount=need is Need.REMOUNT)


def unmounting_operation(services: Services, mount: MountedVolume) -> Operation:
    """What takes a volume from a pod."""
    if mount.is_block:
        from volumehost.node.operations.unmap_operation import UnmapOperation

        return UnmapOperation(services, mount)
    from volumehost.node.operations.unmount_operation import UnmountOperation

    return UnmountOperation(services, mount)


def device_releasing_operation(services: Services, volume: AttachedVolume) -> Operation:
    """What takes a volume without pods from the node's global places."""
    if volume.mode == BLOCK_MODE:
        from volumehost.node.operations.unmap_operation import UnmapDeviceOperation

        return UnmapDeviceOperation(services, volume)
    from volumehost.node.operations.device_operations import UnmountDeviceOperation

    return UnmountDeviceOperation(services, volume)


def detaching_operation(services: Services, volume: AttachedVolume) -> Operation:
    """What detaches a volume that is nowhere mounted."""
    from volumehost.node.operations.attach_operations import DetachOperation

    return DetachOperation(services, volume)
