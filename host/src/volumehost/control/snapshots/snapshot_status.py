"""What is written into the status of snapshots and contents, and the events that go with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from volumehost.control.messages import message_of, timestamp
from volumehost.control.writes import update_status
from volumehost.errors import ObjectNotFoundError
from volumehost.sdk.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable

    from volumehost.api.objects import VolumeSnapshot, VolumeSnapshotContent
    from volumehost.control.machinery.controller import ControlContext
    from volumehost.storage_driver import DriverSnapshot

T = TypeVar("T", "VolumeSnapshot", "VolumeSnapshotContent")

_NANOSECONDS = 10**9


def save_error(context: ControlContext, obj: T, error: BaseException, reason: str) -> None:
    """The error with its time, and an event when it is another one than before; it is not ready then."""
    from volumehost.api.objects import VolumeSnapshotError

    message = message_of(error)
    before = obj.status.error
    if before is None or before.message != message:
        context.event(obj, "Warning", reason, message)

    def change(fresh: T) -> None:
        fresh.status.error = VolumeSnapshotError(time=timestamp(context.wall_clock()), message=message)
        fresh.status.ready_to_use = False

    _write(context, obj, change)


def save_driver_snapshot(context: ControlContext, content: VolumeSnapshotContent, found: DriverSnapshot) -> None:
    """What the driver told. A creation time that it does not tell is now; the first one told stays."""
    created = int((found.creation_time or context.wall_clock()) * _NANOSECONDS)

    def change(fresh: VolumeSnapshotContent) -> None:
        status = fresh.status
        status.snapshot_handle = status.snapshot_handle or found.handle
        status.creation_time = status.creation_time or created
        if found.size_bytes > 0 and not status.restore_size:
            status.restore_size = found.size_bytes
        status.ready_to_use = found.ready_to_use
        status.error = None

    _write(context, content, change)


def mirror(context: ControlContext, snapshot: VolumeSnapshot, content: VolumeSnapshotContent) -> None:
    """The snapshot tells what its content tells; events when it was cut and when it became ready."""
    status = content.status
    was_cut, was_ready = snapshot.status.creation_time is not None, bool(snapshot.status.ready_to_use)

    def change(fresh: VolumeSnapshot) -> None:
        new = fresh.status
        new.bound_volume_snapshot_content_name = content.metadata.name
        if status.creation_time is not None and new.creation_time is None:
            new.creation_time = timestamp(status.creation_time / _NANOSECONDS)
        if status.restore_size:
            new.restore_size = str(Quantity.of(status.restore_size))
        new.ready_to_use = bool(status.ready_to_use)
        new.error = status.error

    new = _write(context, snapshot, change)
    if new is None:
        return
    label = f"{new.metadata.namespace}/{new.metadata.name}"
    if new.status.creation_time is not None and not was_cut:
        context.event(new, "Normal", "SnapshotCreated", f"Snapshot {label} was successfully created by the CSI driver.")
    if new.status.ready_to_use and not was_ready:
        context.event(new, "Normal", "SnapshotReady", f"Snapshot {label} is ready to use.")


def _write(context: ControlContext, obj: T, change: Callable[[T], None]) -> T | None:
    try:
        return update_status(context.api, obj, change)
    except ObjectNotFoundError:
        return None
