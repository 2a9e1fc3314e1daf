"""Faults in a driver's own replies that the caller would otherwise meet much later, as a volume without an id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.message import Message

from volumehost_csi_kit import csi
from volumehost_csi_kit.server.checks import NODE_ID_BYTES
from volumehost_csi_kit.server.errors import InternalError


def checked(method: str, reply_class: type[Message], reply: object) -> Message:
    """The reply, or an empty one for None.

    :raises InternalError: it is another type, or lacks what the specification requires.
    """
    if reply is None:
        reply = reply_class()
    elif not isinstance(reply, reply_class):
        raise InternalError(
            f"the driver's {method} returned {type(reply).__name__}, not {reply_class.__name__}: a fault of the driver"
        )
    fault = _FAULTS.get(method)
    if fault is not None and (text := fault(reply)):
        raise InternalError(f"the driver's {method} {text}: a fault of the driver")
    return reply


def _node_info(reply: Any) -> str:
    if not reply.node_id:
        return "returned no node_id"
    if len(reply.node_id.encode()) > NODE_ID_BYTES:
        return f"returned a node_id of more than {NODE_ID_BYTES} bytes"
    return "returned a negative max_volumes_per_node" if reply.max_volumes_per_node < 0 else ""


def _volume(reply: csi.CreateVolumeResponse) -> str:
    return "" if reply.volume.volume_id else "returned no volume.volume_id"


def _snapshot(reply: csi.CreateSnapshotResponse) -> str:
    if not reply.snapshot.snapshot_id:
        return "returned no snapshot.snapshot_id"
    return "" if reply.snapshot.HasField("creation_time") else "returned no snapshot.creation_time"


_FAULTS: Mapping[str, Callable[[Any], str]] = {
    "NodeGetInfo": _node_info,
    "CreateVolume": _volume,
    "CreateSnapshot": _snapshot,
}
