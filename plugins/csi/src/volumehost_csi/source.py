"""Reading a Spec: which CSI source it has, and how its volume is to be used (CSI-PLUG-05, CSI-CLI-08, -10)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from volumehost.errors import SpecError
from volumehost.storage_driver import VolumeCapability
from volumehost_csi.client import SINGLE_NODE_MULTI_WRITER

if TYPE_CHECKING:
    from volumehost.api.objects import CSIPersistentVolumeSource, CSIVolumeSource
    from volumehost.spec import Spec

PERSISTENT: Final = "Persistent"
EPHEMERAL: Final = "Ephemeral"

READ_WRITE_ONCE: Final = "ReadWriteOnce"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"

_MODES: Final = {
    "ReadWriteOnce": "SINGLE_NODE_WRITER",
    "ReadOnlyMany": "MULTI_NODE_READER_ONLY",
    "ReadWriteMany": "MULTI_NODE_MULTI_WRITER",
    "ReadWriteOncePod": "SINGLE_NODE_WRITER",
}
_MODES_OF_MULTI_WRITERS: Final = {
    **_MODES,
    "ReadWriteOnce": "SINGLE_NODE_MULTI_WRITER",
    "ReadWriteOncePod": "SINGLE_NODE_SINGLE_WRITER",
}


def sources(spec: Spec) -> tuple[CSIVolumeSource | None, CSIPersistentVolumeSource | None]:
    """(inline source, source of the PersistentVolume); exactly one is not None.

    :raises SpecError: the spec has both a volume and a PersistentVolume, or no CSI source.
    """
    volume, persistent = spec.volume, spec.persistent_volume
    if volume is not None and persistent is not None:
        raise _error(spec, "the spec has both a volume and a PersistentVolume")
    if volume is not None and volume.csi is not None:
        return volume.csi, None
    if persistent is not None and persistent.spec.csi is not None:
        return None, persistent.spec.csi
    raise _error(spec, "the spec does not reference a CSI volume")


def persistent_source(spec: Spec) -> CSIPersistentVolumeSource:
    """The source of a PersistentVolume.

    :raises SpecError: there is none; an inline volume has none either.
    """
    inline, persistent = sources(spec)
    if persistent is None or inline is not None:
        raise _error(spec, "the spec describes an inline CSI volume, not a PersistentVolume")
    return persistent


def driver_name(spec: Spec) -> str:
    """The driver that either source names."""
    inline, persistent = sources(spec)
    source = inline if inline is not None else persistent
    assert source is not None
    return source.driver


def lifecycle_mode(spec: Spec) -> str:
    """``Ephemeral`` for an inline volume, else ``Persistent`` (CSI-PLUG-26)."""
    return EPHEMERAL if sources(spec)[0] is not None else PERSISTENT


def capability(
    spec: Spec, node_capabilities: Collection[str], *, mount_flags: Sequence[str] = (), group: int | None = None
) -> VolumeCapability:
    """How the driver is to stage or publish it; an explicit flag says block, not a filesystem type (CSI-CLI-13).

    :param node_capabilities: those of the driver's node service: they decide the access mode (CSI-CLI-08).
    :param group: the pod's group when the driver is to apply it; 0 is a group (CSI-CLI-14).
    """
    inline, persistent = sources(spec)
    if inline is not None:
        fs_type = inline.fs_type or ""
    else:
        assert persistent is not None
        fs_type = persistent.fs_type
        if spec.volume_mode() == "Block":
            return VolumeCapability(access_mode(spec, node_capabilities), block=True)
    return VolumeCapability(
        access_mode(spec, node_capabilities),
        fs_type=fs_type,
        mount_flags=mount_flags,
        volume_mount_group="" if group is None else str(group),
    )


def access_mode(spec: Spec, node_capabilities: Collection[str]) -> str:
    """CSI's name of the PersistentVolume's first access mode, ReadWriteOnce where it has none (CSI-CLI-10)."""
    persistent = spec.persistent_volume
    modes = persistent.spec.access_modes if persistent is not None else []
    table = _MODES_OF_MULTI_WRITERS if SINGLE_NODE_MULTI_WRITER in node_capabilities else _MODES
    return table.get(modes[0] if modes else READ_WRITE_ONCE, "UNKNOWN")


def _error(spec: Spec, reason: str) -> SpecError:
    return SpecError(reason, action="reading a CSI volume", subject=spec.name())
