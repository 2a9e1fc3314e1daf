"""Between the contract's types and CSI's messages; nothing here calls anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from volumehost.storage_driver import Topology, VolumeCapability
    from volumehost_csi_kit import csi


def capability_message(capability: VolumeCapability) -> csi.VolumeCapability:
    """CSI-CLI-13 to -15: an empty filesystem type stays empty, no group is no group."""
    from volumehost_csi_kit import csi

    proto: Any = csi.VolumeCapability
    mode = proto.AccessMode(mode=proto.AccessMode.Mode.Value(capability.access_mode))
    if capability.block:
        return proto(access_mode=mode, block=proto.BlockVolume())  # type: ignore[no-any-return]
    mount = proto.MountVolume(
        fs_type=capability.fs_type,
        mount_flags=capability.mount_flags,
        volume_mount_group=capability.volume_mount_group,
    )
    return proto(access_mode=mode, mount=mount)  # type: ignore[no-any-return]


def range_message(required_bytes: int, limit_bytes: int = 0) -> csi.CapacityRange | None:
    """None where nothing is asked for: a range without a bound is none (CSI-WIRE-09)."""
    from volumehost_csi_kit import csi

    if not required_bytes and not limit_bytes:
        return None
    return csi.CapacityRange(required_bytes=required_bytes, limit_bytes=limit_bytes)


def topology_messages(topologies: Iterable[Topology]) -> list[csi.Topology]:
    """Segments as messages (CSI-WIRE-12)."""
    from volumehost_csi_kit import csi

    return [csi.Topology(segments=dict(topology)) for topology in topologies]


def topologies_of(messages: Iterable[csi.Topology]) -> tuple[Topology, ...]:
    """Messages as segments."""
    return tuple(dict(message.segments) for message in messages)


def enum_names(values: Iterable[int], enum: Any) -> frozenset[str]:
    """Names of enum values; those of a newer specification have no name here and are left out."""
    known = set(enum.values())
    return frozenset(enum.Name(value) for value in values if value in known)


def requirement_message(requisite: Sequence[Topology], preferred: Sequence[Topology]) -> csi.TopologyRequirement | None:
    """None where the driver has no topology."""
    from volumehost_csi_kit import csi

    if not requisite and not preferred:
        return None
    return csi.TopologyRequirement(requisite=topology_messages(requisite), preferred=topology_messages(preferred))
