"""Checks of what drivers answer: a reply that makes no sense is the driver's failure, not ours later on.

The work behind such a reply may have been done, so that it is uncertain: the call is repeated, or its opposite made.
"""

from __future__ import annotations

from typing import Any

from volumehost.errors import StorageDriverError, StorageDriverUncertainError
from volumehost.storage_driver import Capacity, CreatedVolume, CreateVolumeRequest, DriverSnapshot, ListedVolume
from volumehost_csi.drivers.calls import Call, Caller
from volumehost_csi.drivers.messages import topologies_of
from volumehost_csi.names import shorten

#: The largest size that the wire can carry, in bytes.
MAX_BYTES = (1 << 63) - 1


def nonsense(caller: Caller, call: Call, reason: str) -> StorageDriverError:
    """The error for a reply that makes no sense."""
    error = caller.refuse(
        call,
        f"the CSI driver {caller.driver} answers {call.name} out of range: {reason}",
        kind=StorageDriverUncertainError,
    )
    error.hint = "tell its vendor; the call is repeated later"
    return error


def size(caller: Caller, call: Call, value: int, what: str = "capacity") -> int:
    """A size that a driver may tell."""
    if value < 0:
        raise nonsense(caller, call, f"the {what} is {value} bytes")
    return int(value)


def created_volume(caller: Caller, call: Call, request: CreateVolumeRequest, reply: Any) -> CreatedVolume:
    """The volume in the reply to CreateVolume: it has a handle, the size asked for, and the source asked for."""
    volume = reply.volume
    if not reply.HasField("volume") or not volume.volume_id:
        raise nonsense(caller, call, "the volume has no id")
    capacity = size(caller, call, volume.capacity_bytes)
    if capacity and capacity < request.required_bytes:
        raise nonsense(caller, call, f"the volume has {capacity} bytes, {request.required_bytes} are required")
    if request.limit_bytes and capacity > request.limit_bytes:
        raise nonsense(caller, call, f"the volume has {capacity} bytes, {request.limit_bytes} are the limit")
    snapshot, source = volume.content_source.snapshot.snapshot_id, volume.content_source.volume.volume_id
    for asked, told, what in (
        (request.source_snapshot, snapshot, "snapshot"),
        (request.source_volume, source, "volume"),
    ):
        if asked and told != asked:
            from_what = shorten(told) or "nothing"
            raise nonsense(caller, call, f"the volume is made from {from_what}, not from the {what} {shorten(asked)}")
    return CreatedVolume(
        handle=volume.volume_id,
        capacity_bytes=capacity,
        context=dict(volume.volume_context),
        source_snapshot=snapshot,
        source_volume=source,
        accessible_topology=topologies_of(volume.accessible_topology),
    )


def snapshot(caller: Caller, call: Call, message: Any, *, source_volume: str = "") -> DriverSnapshot:
    """A snapshot in a reply; ``source_volume`` is the one that it has to be of, "" for any."""
    if not message.snapshot_id:
        raise nonsense(caller, call, "the snapshot has no id")
    if not message.source_volume_id or (source_volume and message.source_volume_id != source_volume):
        told = shorten(message.source_volume_id) or "nothing"
        raise nonsense(caller, call, f"the snapshot {shorten(message.snapshot_id)} is of {told}")
    if not message.HasField("creation_time"):
        raise nonsense(caller, call, f"the snapshot {shorten(message.snapshot_id)} has no creation time")
    return DriverSnapshot(
        handle=message.snapshot_id,
        source_volume=message.source_volume_id,
        size_bytes=size(caller, call, message.size_bytes, "size"),
        creation_time=message.creation_time.seconds + message.creation_time.nanos / 1e9,
        ready_to_use=message.ready_to_use,
    )


def capacity(caller: Caller, call: Call, reply: Any) -> Capacity:
    """The reply to GetCapacity."""
    bounds = []
    for field in ("maximum_volume_size", "minimum_volume_size"):
        value = getattr(reply, field).value if reply.HasField(field) else None
        bounds.append(None if value is None else size(caller, call, value, field.replace("_", " ")))
    return Capacity(size(caller, call, reply.available_capacity, "available capacity"), *bounds)


def listed_volume(caller: Caller, call: Call, entry: Any) -> ListedVolume:
    """One entry of the reply to ListVolumes."""
    if not entry.volume.volume_id:
        raise nonsense(caller, call, "a volume has no id")
    condition = entry.status.volume_condition if entry.status.HasField("volume_condition") else None
    return ListedVolume(
        handle=entry.volume.volume_id,
        capacity_bytes=size(caller, call, entry.volume.capacity_bytes),
        published_node_ids=tuple(entry.status.published_node_ids),
        abnormal=condition.abnormal if condition is not None else None,
        message=condition.message if condition is not None else "",
    )


def check_token(caller: Caller, call: Call, token: str, seen: set[str]) -> None:
    """Refuse a token of a page that was there before: it would go on for ever."""
    if token in seen:
        raise nonsense(caller, call, "it repeats the token of a page that it has given already")
    seen.add(token)
