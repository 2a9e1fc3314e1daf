"""What the attacher writes into the status of a VolumeAttachment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from volumehost.control.messages import message_of, timestamp
from volumehost.control.writes import update_status
from volumehost.errors import ObjectNotFoundError, StorageDriverError, error_chain

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import VolumeAttachment, VolumeError

#: The names of gRPC's codes; the number of a code is its place.
GRPC_CODES = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)


def mark_attached(api: ApiClient, attachment: VolumeAttachment, publish_context: Mapping[str, str]) -> None:
    """Attached, with what the node needs to know (CSI-EXA-07); nothing when the attachment has gone meanwhile."""

    def change(fresh: VolumeAttachment) -> None:
        fresh.status.attached = True
        fresh.status.attachment_metadata = dict(publish_context)
        fresh.status.attach_error = None

    _write(api, attachment, change)


def mark_detached(api: ApiClient, attachment: VolumeAttachment) -> None:
    """Detached; the object may have gone with its finalizer (CSI-EXA-13)."""

    def change(fresh: VolumeAttachment) -> None:
        fresh.status.attached = False
        fresh.status.attachment_metadata = {}
        fresh.status.detach_error = None

    _write(api, attachment, change)


def save_attach_error(api: ApiClient, attachment: VolumeAttachment, error: BaseException, now: float) -> None:
    """Why attaching failed, with the gRPC code if there was one (CSI-EXA-10)."""

    def change(fresh: VolumeAttachment) -> None:
        fresh.status.attach_error = _volume_error(error, now, with_code=True)

    _write(api, attachment, change)


def save_detach_error(api: ApiClient, attachment: VolumeAttachment, error: BaseException, now: float) -> None:
    """Why detaching failed, without a code (CSI-EXA-13)."""

    def change(fresh: VolumeAttachment) -> None:
        fresh.status.detach_error = _volume_error(error, now, with_code=False)

    _write(api, attachment, change)


def _volume_error(error: BaseException, now: float, *, with_code: bool) -> VolumeError:
    from volumehost.api.objects import VolumeError

    code = next((link.code for link in error_chain(error) if isinstance(link, StorageDriverError) and link.code), "")
    number = GRPC_CODES.index(code) if with_code and code in GRPC_CODES else None
    return VolumeError(time=timestamp(now), message=message_of(error), error_code=number)


def _write(api: ApiClient, attachment: VolumeAttachment, change: Callable[[VolumeAttachment], None]) -> None:
    try:
        update_status(api, attachment, change)
    except ObjectNotFoundError:
        return
