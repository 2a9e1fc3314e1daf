"""Calls that change a volume: expand it, modify its attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from volumehost.storage_driver import ExpandedVolume
from volumehost_csi.drivers import replies
from volumehost_csi.drivers.calls import Call, Caller
from volumehost_csi.drivers.messages import capability_message, range_message
from volumehost_csi.names import shorten

if TYPE_CHECKING:
    from volumehost.storage_driver import VolumeCapability


class ChangeCalls:
    """What :class:`~volumehost.storage_driver.StorageDriver` says of changes; documented there."""

    def __init__(self, caller: Caller) -> None:
        from volumehost_csi_kit import stubs

        self._call = caller
        self._controller = stubs.ControllerStub(caller.channel)

    def expand_volume(
        self,
        handle: str,
        required_bytes: int,
        capability: VolumeCapability | None,
        secrets: Mapping[str, str],
        *,
        timeout: float | None = None,
    ) -> ExpandedVolume:
        """ControllerExpandVolume."""
        from volumehost_csi_kit import csi

        action = f"expanding the volume {shorten(handle)} to {required_bytes} bytes"
        call = Call("ControllerExpandVolume", action, handle, secrets, expansion=True, capability="EXPAND_VOLUME")
        self._call.require(call, volume_handle=handle)
        if not 0 < required_bytes <= replies.MAX_BYTES:
            raise self._call.refuse(call, f"the size of {required_bytes} bytes is out of range")
        message = csi.ControllerExpandVolumeRequest(
            volume_id=handle,
            capacity_range=range_message(required_bytes),
            secrets=dict(secrets),
            volume_capability=capability_message(capability) if capability is not None else None,
        )
        reply = self._call(call, "Controller", self._controller.ControllerExpandVolume, message, timeout)
        capacity = replies.size(self._call, call, reply.capacity_bytes)
        if capacity < required_bytes:
            raise replies.nonsense(self._call, call, f"the volume has {capacity} bytes, {required_bytes} are required")
        return ExpandedVolume(capacity, reply.node_expansion_required)

    def modify_volume(
        self,
        handle: str,
        mutable_parameters: Mapping[str, str],
        secrets: Mapping[str, str],
        *,
        timeout: float | None = None,
    ) -> None:
        """ControllerModifyVolume."""
        from volumehost_csi_kit import csi

        action = f"modifying the volume {shorten(handle)}"
        call = Call("ControllerModifyVolume", action, handle, secrets, expansion=True, capability="MODIFY_VOLUME")
        self._call.require(call, volume_handle=handle)
        message = csi.ControllerModifyVolumeRequest(
            volume_id=handle, secrets=dict(secrets), mutable_parameters=dict(mutable_parameters)
        )
        self._call(call, "Controller", self._controller.ControllerModifyVolume, message, timeout)
