"""What the driver remembers of volumes and snapshots, and of what a node has set up, as small JSON files."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

MiB = 1 << 20
GiB = 1 << 30


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What can be changed on a volume in use (VolumeAttributesClass).

    ``read_ahead_kib`` of the loop device, in KiB, None for the kernel's default; ``direct_io``: past the page cache.
    """

    read_ahead_kib: int | None = None
    direct_io: bool = False


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a volume was copied from: a snapshot's or a volume's handle, or neither."""

    snapshot_id: str = ""
    volume_id: str = ""

    def __bool__(self) -> bool:
        return bool(self.snapshot_id or self.volume_id)


class VolumeRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A volume. It exists exactly as long as this record does; its image is ``<key>.img`` beside it.

    ``id`` is the handle, which for an inline ephemeral volume somebody else has chosen, so that it names no file;
    ``key`` is our own. ``size`` in bytes. ``fs_type`` is empty when the volume was asked for as a raw block device.
    ``first_settings`` are those that it was created with: repeating the call compares them.
    ``published_node`` is the node that it is published to by the controller, empty when it is not.
    """

    id: str
    key: str
    name: str
    size: int
    fs_type: str = ""
    thick: bool = False
    source: Source = Source()
    settings: Settings = Settings()
    first_settings: Settings = Settings()
    published_node: str = ""
    published_read_only: bool = False
    ephemeral: bool = False


class SnapshotRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A snapshot: a whole image of its own. ``size`` in bytes, ``created_ns`` nanoseconds since the epoch."""

    id: str
    key: str
    name: str
    source_volume_id: str
    size: int
    created_ns: int
    fs_type: str = ""
    group_id: str = ""


class GroupRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Snapshots of several volumes at one instant. They promise their own space, so ``size`` is 0 here."""

    id: str
    key: str
    name: str
    created_ns: int
    snapshot_ids: tuple[str, ...]
    source_volume_ids: tuple[str, ...]
    size: int = 0


class Capability(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a volume is to be used. ``mode`` is the name of a CSI access mode; ``fs_type`` may be empty.

    ``mount_group`` is a group id to whom the volume's files shall belong, None when nobody asked.
    """

    block: bool
    mode: str
    fs_type: str = ""
    mount_flags: tuple[str, ...] = ()
    mount_group: int | None = None

    def same_use(self, other: Capability) -> bool:
        """Whether both are the same but for the group, which is the pod's, not the volume's."""
        return replace(self, mount_group=None) == replace(other, mount_group=None)


class Publication(msgspec.Struct, frozen=True, omit_defaults=True):
    """One target path that shows the volume. ``device`` is its own read-only device, when it needed one."""

    capability: Capability
    read_only: bool = False
    device: str = ""


class StagedVolume(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is set up on this node, since this boot: the device, where it is staged, and the paths that show it.

    ``staging_path`` is empty for an inline ephemeral volume. ``frozen`` while a snapshot holds its filesystem still.
    """

    id: str
    key: str
    device: str
    capability: Capability
    staging_path: str = ""
    read_only: bool = False
    frozen: bool = False
    publications: dict[str, Publication] = {}
