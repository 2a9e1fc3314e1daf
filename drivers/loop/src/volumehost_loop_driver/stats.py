"""How full a volume is, and what is wrong with it, as the node sees it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from volumehost_loop_driver.errors import NotFoundError
from volumehost_loop_driver.filesystems import is_read_only
from volumehost_loop_driver.records import StagedVolume, VolumeRecord
from volumehost_loop_driver.state import DriverState, mounted_at, shown
from volumehost_loop_driver.volumes import Volumes


@dataclass(frozen=True, slots=True)
class Usage:
    """Of bytes or inodes."""

    total: int
    used: int = 0
    available: int = 0


@dataclass(frozen=True, slots=True)
class VolumeStats:
    """``inodes`` is None for a raw block device; ``condition`` says what is wrong, "" when nothing is."""

    bytes: Usage
    inodes: Usage | None
    condition: str


class Stats:
    """Answers without the volume's lock: a volume that is busy is asked about most."""

    def __init__(self, state: DriverState, volumes: Volumes) -> None:
        self._state = state
        self._volumes = volumes

    def of(self, id: str, path: str) -> VolumeStats:
        """Figures and condition of a volume at one of its paths.

        :raises NotFoundError: there is no such volume, or it is not at the path.
        """
        record = self._state.volume(id)
        staged = self._state.node.get(id)
        if staged is None or (path != staged.staging_path and path not in staged.publications):
            raise NotFoundError("it is not there", action=f"measure the volume {shown(id)} at {path}", subject=path)
        condition = self._condition(record, staged, path)
        if staged.capability.block:
            # What is allocated of a thin image; what its user means by used nobody knows (CSI-WIRE-21).
            status = self._state.images.status(record.key)
            used = min(status.allocated, record.size) if status is not None else 0
            return VolumeStats(Usage(record.size, used, record.size - used), None, condition)
        try:
            found = os.statvfs(path)
        except OSError as error:
            return VolumeStats(Usage(record.size), None, condition or f"it does not answer: {error.strerror}")
        unit = found.f_frsize
        return VolumeStats(
            Usage(found.f_blocks * unit, (found.f_blocks - found.f_bfree) * unit, found.f_bavail * unit),
            Usage(found.f_files, found.f_files - found.f_ffree, found.f_favail),
            condition,
        )

    def _condition(self, record: VolumeRecord, staged: StagedVolume, path: str) -> str:
        problem = self._volumes.condition(record)
        if problem:
            return problem
        device = self._state.device(record)
        if device is None:
            return f"its device {staged.device} is gone"
        if staged.capability.block:
            return "" if _is_block_device(device) else f"its device {device} is gone"
        if not self._state.is_mounted(path, device):
            return f"nothing is mounted at {path}"
        if not staged.read_only and is_read_only(mounted_at(staged)):
            return "its filesystem has become read-only, as it does after errors; look into the kernel's log"
        return ""


def _is_block_device(path: str) -> bool:
    try:
        return stat.S_ISBLK(os.stat(path).st_mode)
    except FileNotFoundError:
        return False
