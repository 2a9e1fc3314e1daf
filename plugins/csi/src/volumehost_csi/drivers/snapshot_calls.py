"""Calls about snapshots: create, delete, find, list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from volumehost.errors import StorageDriverError
from volumehost_csi.drivers import replies
from volumehost_csi.drivers.calls import Call, Caller
from volumehost_csi.names import shorten

if TYPE_CHECKING:
    from volumehost.storage_driver import DriverCapabilities, DriverSnapshot


class SnapshotCalls:
    """What :class:`~volumehost.storage_driver.StorageDriver` says of snapshots; documented there."""

    def __init__(self, caller: Caller, capabilities: Callable[[], DriverCapabilities]) -> None:
        from volumehost_csi_kit import stubs

        self._call = caller
        self._capabilities = capabilities
        self._controller = stubs.ControllerStub(caller.channel)

    def create_snapshot(
        self,
        source_volume: str,
        name: str,
        parameters: Mapping[str, str],
        secrets: Mapping[str, str],
        *,
        timeout: float | None = None,
    ) -> DriverSnapshot:
        """CreateSnapshot."""
        from volumehost_csi_kit import csi

        action = f"making the snapshot {shorten(name)} of the volume {shorten(source_volume)}"
        call = Call("CreateSnapshot", action, name, secrets, capability="CREATE_DELETE_SNAPSHOT", creates=True)
        self._call.require(call, source_volume=source_volume, name=name)
        message = csi.CreateSnapshotRequest(
            source_volume_id=source_volume, name=name, secrets=dict(secrets), parameters=dict(parameters)
        )
        reply = self._call(call, "Controller", self._controller.CreateSnapshot, message, timeout)
        return replies.snapshot(self._call, call, reply.snapshot, source_volume=source_volume)

    def delete_snapshot(self, handle: str, secrets: Mapping[str, str], *, timeout: float | None = None) -> None:
        """DeleteSnapshot."""
        from volumehost_csi_kit import csi

        call = Call("DeleteSnapshot", f"deleting the snapshot {shorten(handle)}", handle, secrets)
        self._call.require(call, snapshot_handle=handle)
        message = csi.DeleteSnapshotRequest(snapshot_id=handle, secrets=dict(secrets))
        self._call(call, "Controller", self._controller.DeleteSnapshot, message, timeout)

    def get_snapshot(
        self, handle: str, secrets: Mapping[str, str], *, timeout: float | None = None
    ) -> DriverSnapshot | None:
        """GetSnapshot where the driver has it, else ListSnapshots for that one."""
        from volumehost_csi_kit import csi

        if self._capabilities().controls("GET_SNAPSHOT"):
            call = Call("GetSnapshot", f"looking up the snapshot {shorten(handle)}", handle, secrets)
            self._call.require(call, snapshot_handle=handle)
            message = csi.GetSnapshotRequest(snapshot_id=handle, secrets=dict(secrets))
            try:
                reply = self._call(call, "Controller", self._controller.GetSnapshot, message, timeout)
            except StorageDriverError as error:
                if error.code == "NOT_FOUND":
                    return None
                raise
            found = replies.snapshot(self._call, call, reply.snapshot)
            if found.handle != handle:
                raise replies.nonsense(self._call, call, f"it is the snapshot {shorten(found.handle)}")
            return found
        call = Call("ListSnapshots", f"looking up the snapshot {shorten(handle)}", handle, secrets)
        self._call.require(call, snapshot_handle=handle)
        request = csi.ListSnapshotsRequest(snapshot_id=handle, secrets=dict(secrets))
        return next((each for each in self._list(call, request, timeout) if each.handle == handle), None)

    def list_snapshots(
        self, secrets: Mapping[str, str], *, source_volume: str = "", timeout: float | None = None
    ) -> Iterator[DriverSnapshot]:
        """ListSnapshots, page by page."""
        from volumehost_csi_kit import csi

        about = f" of the volume {shorten(source_volume)}" if source_volume else ""
        call = Call(
            "ListSnapshots", f"listing the snapshots{about}", source_volume, secrets, capability="LIST_SNAPSHOTS"
        )
        request = csi.ListSnapshotsRequest(source_volume_id=source_volume, secrets=dict(secrets))
        return self._list(call, request, timeout)

    def _list(self, call: Call, request: Any, timeout: float | None) -> Iterator[DriverSnapshot]:
        seen = {""}
        while True:
            reply = self._call(call, "Controller", self._controller.ListSnapshots, request, timeout)
            for entry in reply.entries:
                yield replies.snapshot(self._call, call, entry.snapshot, source_volume=request.source_volume_id)
            if not reply.next_token:
                return
            replies.check_token(self._call, call, reply.next_token, seen)
            request.starting_token = reply.next_token
