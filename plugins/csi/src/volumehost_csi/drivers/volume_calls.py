"""Calls about volumes: create, delete, publish, unpublish, validate, list, capacity (CSI-WIRE-01)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from volumehost.errors import DeletedVolumeInUseError, StorageDriverError
from volumehost_csi.drivers import replies
from volumehost_csi.drivers.calls import Call, Caller
from volumehost_csi.drivers.messages import capability_message, range_message, requirement_message
from volumehost_csi.names import shorten

if TYPE_CHECKING:
    from volumehost.storage_driver import (
        Capacity,
        CreatedVolume,
        CreateVolumeRequest,
        ListedVolume,
        Topology,
        VolumeCapability,
    )


class VolumeInUseError(StorageDriverError, DeletedVolumeInUseError):
    """FAILED_PRECONDITION to DeleteVolume: something still uses the volume."""


class VolumeCalls:
    """What :class:`~volumehost.storage_driver.StorageDriver` says of volumes; documented there."""

    def __init__(self, caller: Caller) -> None:
        from volumehost_csi_kit import stubs

        self._call = caller
        self._controller = stubs.ControllerStub(caller.channel)

    def create_volume(self, request: CreateVolumeRequest, *, timeout: float | None = None) -> CreatedVolume:
        """CreateVolume."""
        from volumehost_csi_kit import csi

        call = Call(
            "CreateVolume",
            f"creating the volume {shorten(request.name)}",
            request.name,
            request.secrets,
            capability="CREATE_DELETE_VOLUME",
            creates=True,
        )
        self._call.require(call, name=request.name)
        if not request.capabilities:
            raise self._call.refuse(call, "no capability is asked for")
        _check_range(self._call, call, request.required_bytes, request.limit_bytes)
        source = None
        if request.source_snapshot:
            source = csi.VolumeContentSource(
                snapshot=csi.VolumeContentSource.SnapshotSource(snapshot_id=request.source_snapshot)
            )
        elif request.source_volume:
            source = csi.VolumeContentSource(
                volume=csi.VolumeContentSource.VolumeSource(volume_id=request.source_volume)
            )
        message = csi.CreateVolumeRequest(
            name=request.name,
            capacity_range=range_message(request.required_bytes, request.limit_bytes),
            volume_capabilities=[capability_message(each) for each in request.capabilities],
            parameters=dict(request.parameters),
            secrets=dict(request.secrets),
            volume_content_source=source,
            accessibility_requirements=requirement_message(request.requisite, request.preferred),
            mutable_parameters=dict(request.mutable_parameters),
        )
        reply = self._call(call, "Controller", self._controller.CreateVolume, message, timeout)
        return replies.created_volume(self._call, call, request, reply)

    def delete_volume(self, handle: str, secrets: Mapping[str, str], *, timeout: float | None = None) -> None:
        """DeleteVolume."""
        from volumehost_csi_kit import csi

        call = Call("DeleteVolume", f"deleting the volume {shorten(handle)}", handle, secrets)
        self._call.require(call, volume_handle=handle)
        message = csi.DeleteVolumeRequest(volume_id=handle, secrets=dict(secrets))
        try:
            self._call(call, "Controller", self._controller.DeleteVolume, message, timeout)
        except StorageDriverError as error:
            if error.code != "FAILED_PRECONDITION":
                raise
            raise VolumeInUseError(
                error.reason,
                driver=error.driver,
                call=error.call,
                code=error.code,
                driver_message=error.driver_message,
                action=error.action,
                subject=error.subject,
                hint="it is deleted when nothing uses it any more",
            ) from None

    def publish_volume(
        self,
        handle: str,
        node_id: str,
        capability: VolumeCapability,
        *,
        read_only: bool,
        context: Mapping[str, str],
        secrets: Mapping[str, str],
        timeout: float | None = None,
    ) -> Mapping[str, str]:
        """ControllerPublishVolume."""
        from volumehost_csi_kit import csi

        action = f"attaching the volume {shorten(handle)} to the node {shorten(node_id)}"
        call = Call("ControllerPublishVolume", action, handle, secrets, capability="PUBLISH_UNPUBLISH_VOLUME")
        self._call.require(call, volume_handle=handle, node_id=node_id)
        message = csi.ControllerPublishVolumeRequest(
            volume_id=handle,
            node_id=node_id,
            volume_capability=capability_message(capability),
            readonly=read_only,
            secrets=dict(secrets),
            volume_context=dict(context),
        )
        reply = self._call(call, "Controller", self._controller.ControllerPublishVolume, message, timeout)
        return dict(reply.publish_context)

    def unpublish_volume(
        self, handle: str, node_id: str, secrets: Mapping[str, str], *, timeout: float | None = None
    ) -> None:
        """ControllerUnpublishVolume."""
        from volumehost_csi_kit import csi

        action = f"detaching the volume {shorten(handle)} from the node {shorten(node_id)}"
        call = Call("ControllerUnpublishVolume", action, handle, secrets, capability="PUBLISH_UNPUBLISH_VOLUME")
        # Without a node id it would be detached from all nodes, which nobody here means.
        self._call.require(call, volume_handle=handle, node_id=node_id)
        message = csi.ControllerUnpublishVolumeRequest(volume_id=handle, node_id=node_id, secrets=dict(secrets))
        self._call(call, "Controller", self._controller.ControllerUnpublishVolume, message, timeout)

    def validate_volume(
        self,
        handle: str,
        capabilities: Sequence[VolumeCapability],
        *,
        context: Mapping[str, str],
        parameters: Mapping[str, str],
        secrets: Mapping[str, str],
        timeout: float | None = None,
    ) -> str:
        """ValidateVolumeCapabilities; an absent confirmation is a no."""
        from volumehost_csi_kit import csi

        call = Call("ValidateVolumeCapabilities", f"validating the volume {shorten(handle)}", handle, secrets)
        self._call.require(call, volume_handle=handle)
        message = csi.ValidateVolumeCapabilitiesRequest(
            volume_id=handle,
            volume_context=dict(context),
            volume_capabilities=[capability_message(each) for each in capabilities],
            parameters=dict(parameters),
            secrets=dict(secrets),
        )
        reply = self._call(call, "Controller", self._controller.ValidateVolumeCapabilities, message, timeout)
        return "" if reply.HasField("confirmed") else reply.message or "the driver does not say why"

    def get_capacity(
        self,
        *,
        capabilities: Sequence[VolumeCapability] = (),
        parameters: Mapping[str, str] | None = None,
        topology: Topology | None = None,
        timeout: float | None = None,
    ) -> Capacity:
        """GetCapacity."""
        from volumehost_csi_kit import csi

        call = Call("GetCapacity", "asking how much can still be created", capability="GET_CAPACITY")
        message = csi.GetCapacityRequest(
            volume_capabilities=[capability_message(each) for each in capabilities],
            parameters=dict(parameters or {}),
            accessible_topology=csi.Topology(segments=dict(topology)) if topology else None,
        )
        reply = self._call(call, "Controller", self._controller.GetCapacity, message, timeout)
        return replies.capacity(self._call, call, reply)

    def list_volumes(self, *, timeout: float | None = None) -> Iterator[ListedVolume]:
        """ListVolumes, page by page."""
        from volumehost_csi_kit import csi

        call = Call("ListVolumes", "listing the volumes", capability="LIST_VOLUMES")
        token, seen = "", {""}
        while True:
            message = csi.ListVolumesRequest(starting_token=token)
            reply = self._call(call, "Controller", self._controller.ListVolumes, message, timeout)
            for entry in reply.entries:
                yield replies.listed_volume(self._call, call, entry)
            token = reply.next_token
            if not token:
                return
            replies.check_token(self._call, call, token, seen)


def _check_range(caller: Caller, call: Call, required: int, limit: int) -> None:
    """Sizes that the wire or the specification forbid (CSI-WIRE-09)."""
    for name, value in (("required size", required), ("limit", limit)):
        if not 0 <= value <= replies.MAX_BYTES:
            raise caller.refuse(call, f"the {name} of {value} bytes is out of range")
    if limit and limit < required:
        raise caller.refuse(call, f"the limit of {limit} bytes is below the required {required}")
