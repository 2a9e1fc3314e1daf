"""From access modes and volume modes of the API to the volume capabilities that drivers are told (BR-42)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from volumehost.errors import SpecError
from volumehost.spec import BLOCK_MODE
from volumehost.storage_driver import DriverCapabilities, VolumeCapability

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume

MULTI_WRITER = "SINGLE_NODE_MULTI_WRITER"

_MODES = {
    "ReadOnlyMany": "MULTI_NODE_READER_ONLY",
    "ReadWriteMany": "MULTI_NODE_MULTI_WRITER",
    "ReadWriteOnce": "SINGLE_NODE_WRITER",
    "ReadWriteOncePod": "SINGLE_NODE_WRITER",
}
_MULTI_WRITER_MODES = _MODES | {
    "ReadWriteOnce": "SINGLE_NODE_MULTI_WRITER",
    "ReadWriteOncePod": "SINGLE_NODE_SINGLE_WRITER",
}


def provisioning_capabilities(
    access_modes: Sequence[str],
    driver: DriverCapabilities,
    *,
    volume_mode: str | None,
    fs_type: str = "",
    mount_flags: Sequence[str] = (),
) -> list[VolumeCapability]:
    """One capability for each access mode that a new volume is to have.

    :raises SpecError: an access mode is not known.
    """
    names = _MULTI_WRITER_MODES if driver.controls(MULTI_WRITER) else _MODES
    unknown = [mode for mode in access_modes if mode not in names]
    if unknown or not access_modes:
        raise SpecError(f"unknown access mode {', '.join(unknown)}" if unknown else "no access mode is given")
    return [_capability(names[mode], volume_mode, fs_type, mount_flags) for mode in access_modes]


def attached_capability(volume: PersistentVolume, driver: DriverCapabilities) -> VolumeCapability:
    """The one capability with which a volume that has all its access modes is attached or grown (CSI-EXA-09).

    :raises SpecError: its access modes cannot be told to a driver in one.
    """
    modes = set(volume.spec.access_modes)
    names = _MULTI_WRITER_MODES if driver.controls(MULTI_WRITER) else _MODES
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        raise SpecError("ReadWriteOncePod cannot be combined with other access modes", subject=volume.metadata.name)
    if "ReadWriteMany" in modes:
        mode = "ReadWriteMany"
    elif len(modes) == 1 and modes <= names.keys():
        (mode,) = modes
    else:
        shown = ", ".join(sorted(modes)) or "none"
        raise SpecError(f"the access modes {shown} cannot be used together", subject=volume.metadata.name)
    source = volume.spec.csi
    fs_type = source.fs_type if source is not None else ""
    return _capability(names[mode], volume.spec.volume_mode, fs_type, volume.spec.mount_options)


def _capability(
    access_mode: str, volume_mode: str | None, fs_type: str, mount_flags: Sequence[str]
) -> VolumeCapability:
    if volume_mode == BLOCK_MODE:
        return VolumeCapability(access_mode, block=True)
    return VolumeCapability(access_mode, fs_type=fs_type, mount_flags=tuple(mount_flags))
