"""Helpers for calls that may come twice: every CSI call can be repeated after a lost reply (CSI-WIRE-13)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from google.protobuf.message import Message

from volumehost_csi_kit import csi
from volumehost_csi_kit.redaction import TOKEN_KEY
from volumehost_csi_kit.server.errors import OutOfRangeError


def fingerprint(request: Message, *, without: Collection[str] = ()) -> str:
    """A digest of what a request asks for, to remember beside the result and to compare a repetition with.

    Secrets and service account tokens do not count, as they may have been renewed (CSI-WIRE-17); nor do the fields in
    ``without``. Safe to store: nothing can be read from it.
    """
    counted = type(request)()
    counted.CopyFrom(request)
    for name in ("secrets", *without):
        if name in counted.DESCRIPTOR.fields_by_name:
            counted.ClearField(name)
    context = getattr(counted, "volume_context", None)
    if context is not None and TOKEN_KEY in context:
        del context[TOKEN_KEY]
    return hashlib.sha256(counted.SerializeToString(deterministic=True)).hexdigest()


def fits(size_bytes: int, capacity: csi.CapacityRange) -> bool:
    """Whether a volume of this size is what ``capacity`` asks for; zero bounds ask for nothing."""
    high = capacity.limit_bytes
    return size_bytes >= capacity.required_bytes and (not high or size_bytes <= high)


def chosen_size(capacity: csi.CapacityRange, *, default: int, multiple_of: int = 1) -> int:
    """The size in bytes to make a volume of: what is required, or else ``default``, rounded up to a multiple.

    A default that does not fit gives way to the largest size that does.

    :raises OutOfRangeError: the limit is below what can be made.
    """
    wanted = capacity.required_bytes or default
    size = -(-wanted // multiple_of) * multiple_of
    if not capacity.required_bytes and capacity.limit_bytes and size > capacity.limit_bytes:
        size = capacity.limit_bytes - capacity.limit_bytes % multiple_of
    if not size or not fits(size, capacity):
        raise OutOfRangeError(
            f"no size between {capacity.required_bytes} and {capacity.limit_bytes} bytes is a multiple of {multiple_of}"
        )
    return size
