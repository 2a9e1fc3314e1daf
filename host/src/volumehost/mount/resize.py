"""Grows the filesystem on a device to the size of the device (MOUNT-70, -71); called when a volume is expanded."""

from __future__ import annotations

import fcntl
import os
import re
import struct
from typing import Final

from volumehost.errors import MountError
from volumehost.mount.format import FORMAT_SECONDS, PROBE_SECONDS, device_size, get_disk_format
from volumehost.mount.programs import Programs

_BLKROGET: Final = 0x125E
_EXT_HINT: Final = "growing a mounted ext filesystem needs the capability CAP_SYS_RESOURCE"
_RESIZABLE: Final = ("ext3", "ext4", "xfs", "btrfs")


def resize(device: str, mount_path: str, programs: Programs | None = None) -> bool:
    """Grow the filesystem on the device, mounted at ``mount_path``; whether there was one to grow (MOUNT-70).

    :raises MountError: the filesystem cannot be grown here, or growing it failed.
    """
    programs = programs if programs is not None else Programs()
    found = get_disk_format(device, programs)
    if not found:
        return False
    if found in {"ext3", "ext4"}:
        command = ["resize2fs", device]
    elif found == "xfs":
        command = ["xfs_growfs", "-d", mount_path]
    elif found == "btrfs":
        command = ["btrfs", "filesystem", "resize", "max", mount_path]
    else:
        raise _unsupported(found, device, mount_path)
    result = programs.run(command, timeout=FORMAT_SECONDS)
    if result.returncode != 0:
        raise MountError(
            f"{command[0]}: {result.describe()}: {result.output}",
            action=f"resize {found} on {device}",
            subject=device,
            hint=_EXT_HINT if "Permission denied to resize" in result.output else "",
        )
    return True


def need_resize(device: str, mount_path: str, programs: Programs | None = None) -> bool:
    """Whether ``resize`` should run (MOUNT-71): the device is writable and holds a filesystem that can grow.

    Sizes are compared for btrfs alone; the tools of the others do nothing where nothing is to do.

    :raises MountError: the filesystem cannot be grown here, or its size cannot be read.
    """
    programs = programs if programs is not None else Programs()
    if is_read_only(device):
        return False
    found = get_disk_format(device, programs)
    if not found:
        return False
    if found not in _RESIZABLE:
        raise _unsupported(found, device, mount_path)
    if found != "btrfs":
        return True
    total, sector = _btrfs_size(device, programs)
    return device_size(device) > total + sector


def is_read_only(device: str) -> bool:
    """Whether the block device refuses writes."""
    try:
        fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        try:
            (flag,) = struct.unpack("i", fcntl.ioctl(fd, _BLKROGET, struct.pack("i", 0)))
        finally:
            os.close(fd)
    except OSError as error:
        raise MountError(
            error.strerror or str(error),
            action=f"find out whether {device} is read-only",
            subject=device,
            errno=error.errno,
        ) from error
    return bool(flag)


def _btrfs_size(device: str, programs: Programs) -> tuple[int, int]:
    result = programs.run(["btrfs", "inspect-internal", "dump-super", "-f", device], timeout=PROBE_SECONDS)
    total = re.search(r"^total_bytes\s+(\d+)", result.stdout, re.MULTILINE)
    sector = re.search(r"^sectorsize\s+(\d+)", result.stdout, re.MULTILINE)
    if result.returncode != 0 or total is None or sector is None:
        raise MountError(
            f"btrfs: {result.describe()}: {result.output}", action=f"read the size of btrfs on {device}", subject=device
        )
    return int(total[1]), int(sector[1])


def _unsupported(found: str, device: str, mount_path: str) -> MountError:
    return MountError(
        f"resize of format {found} is not supported for device {device} mounted at {mount_path}",
        action=f"resize the filesystem on {device}",
        subject=device,
    )
