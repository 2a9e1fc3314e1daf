"""Spec: the host's own view of a volume, whichever API object it came from; and VolumeConfig, what plugins are told.

Every hook that concerns a volume takes a :class:`Spec`. It is borrowed, never owned: plugins must not change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume, Pod, Volume

#: StorageClass parameter that names the wanted filesystem; plugins that format should honour it (SPEC-06).
VOLUME_PARAMETER_FS_TYPE = "fstype"

FILESYSTEM_MODE = "Filesystem"
BLOCK_MODE = "Block"


@dataclass(frozen=True, slots=True, eq=False)
class Spec:
    """A volume as the pod or the PersistentVolume describes it (SPEC-01).

    Exactly one of ``volume`` and ``persistent_volume`` is meant to be set. ``read_only`` comes from the claim's
    source in the pod, never from the PersistentVolume (SPEC-05).
    """

    volume: Volume | None = None
    persistent_volume: PersistentVolume | None = None
    read_only: bool = False
    inline_volume_spec_for_csi_migration: bool = False
    migrated: bool = False
    _source: str | None = field(default=None, init=False, repr=False)

    @classmethod
    def from_volume(cls, volume: Volume) -> Spec:
        """A spec from a pod's own volume."""
        return cls(volume=volume)

    @classmethod
    def from_persistent_volume(cls, persistent_volume: PersistentVolume, read_only: bool) -> Spec:
        """A spec from a PersistentVolume, with the read-only flag of the claim source that led to it."""
        return cls(persistent_volume=persistent_volume, read_only=read_only)

    def name(self) -> str:
        """The volume's name in the pod, else the PersistentVolume's name, else "" (SPEC-02)."""
        if self.volume is not None:
            return self.volume.name
        if self.persistent_volume is not None:
            return self.persistent_volume.metadata.name
        return ""

    def source(self) -> str:
        """The kind of source in snake case (``host_path``, ``csi``), "" when there is none.

        Computed once per spec: plugin look-up indexes by it.
        """
        known = self._source
        if known is None:
            holder: Any = self.volume
            if holder is None and self.persistent_volume is not None:
                holder = self.persistent_volume.spec
            known = _source_of(holder)
            object.__setattr__(self, "_source", known)
        return known

    def volume_mode(self) -> str:
        """``Filesystem`` or ``Block``; an unset mode of a PersistentVolume is Filesystem (SPEC-10, improved)."""
        if self.persistent_volume is None:
            return FILESYSTEM_MODE
        return self.persistent_volume.spec.volume_mode or FILESYSTEM_MODE

    def is_kubelet_expandable(self) -> bool:
        """Whether only the node can expand it, which is so for FlexVolume alone (SPEC-03)."""
        if self.volume is not None:
            return self.volume.flex_volume is not None
        if self.persistent_volume is not None:
            return self.persistent_volume.spec.flex_volume is not None
        return False

    def kubelet_expandable_plugin_name(self) -> str:
        """The FlexVolume driver's name, else "" (SPEC-04)."""
        if self.volume is not None and self.volume.flex_volume is not None:
            return self.volume.flex_volume.driver
        if self.persistent_volume is not None and self.persistent_volume.spec.flex_volume is not None:
            return self.persistent_volume.spec.flex_volume.driver
        return ""

    def __repr__(self) -> str:
        """Name and kind only: sources can hold attributes that are nobody's business."""
        kind = "persistent volume" if self.volume is None and self.persistent_volume is not None else "volume"
        read_only = ", read-only" if self.read_only else ""
        return f"<Spec {kind} {self.name()!r} source={self.source() or 'none'}{read_only}>"


def _source_of(holder: Any) -> str:
    """The name of the one set source field of a Volume or PersistentVolumeSpec."""
    if holder is None:
        return ""
    for name in getattr(type(holder), "SOURCES", ()):
        if getattr(holder, name) is not None:
            return str(name)
    return ""


@dataclass(frozen=True, slots=True)
class VolumeConfig:
    """What the host tells a plugin about how to behave (SPEC-09); ``VolumeHost.get_volume_config`` hands it out.

    Times are in seconds. ``other_attributes`` is for settings that only one plugin knows.
    """

    recycler_pod_template: Pod | None = None
    recycler_minimum_timeout: int = 60
    recycler_timeout_increment: int = 30
    pv_name: str = ""
    other_attributes: Mapping[str, str] = field(default_factory=dict)
    provisioning_enabled: bool = False
