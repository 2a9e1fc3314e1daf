"""What the kernel says about paths, as ``findmnt`` shows it; ``demo`` prints it.

Read from the mount table and ``statvfs`` alone, from no record of ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.mount.mountinfo import read_mount_table

if TYPE_CHECKING:
    from volumehost.host_services import MountPoint

HEADERS = ("target", "mounted at", "source", "fstype", "options", "size")


@dataclass(frozen=True, slots=True)
class KernelView:
    """A path, and the mount through which it is seen.

    ``target`` is the path with links resolved. ``source`` has the part of the filesystem that is mounted in brackets
    when that is not the whole. ``size`` is that of the filesystem, in bytes.
    """

    target: str
    mounted_at: str
    source: str
    fs_type: str
    options: tuple[str, ...]
    size: int

    @property
    def own_mount(self) -> bool:
        """Whether the path itself is a mount point."""
        return self.target == self.mounted_at

    def row(self) -> tuple[str, ...]:
        """Cells under :data:`HEADERS`."""
        options = ",".join(self.options)
        return (self.target, self.mounted_at, self.source, self.fs_type, options, format_size(self.size))


def view_paths(paths: Iterable[str]) -> list[KernelView]:
    """The kernel's view of each path, from one reading of the mount table.

    :raises OSError: a path cannot be resolved.
    :raises MountError: the mount table cannot be read.
    """
    table = {entry.mount_id: entry for entry in read_mount_table()}
    return [_view(os.path.realpath(path, strict=True), table) for path in paths]


def mounts_below(directory: str) -> list[MountPoint]:
    """Every mount at or under the directory, in the mount table's order."""
    root = os.path.realpath(directory)
    return [entry for entry in read_mount_table() if entry.path == root or entry.path.startswith(f"{root}/")]


def loop_devices_below(directory: str) -> list[str]:
    """Loop devices whose file is below the directory."""
    found = []
    for name in os.listdir("/sys/block"):
        try:
            with open(f"/sys/block/{name}/loop/backing_file", encoding="utf-8") as file:
                backing = file.read().strip()
        except OSError:
            continue  # no loop device, or one without a file
        if backing.startswith(f"{directory}/"):
            found.append(f"/dev/{name}")
    return found


def _view(path: str, table: Mapping[int, MountPoint]) -> KernelView:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        entry = table[_mount_id(descriptor)]
        filesystem = os.fstatvfs(descriptor)
    finally:
        os.close(descriptor)
    part = "" if entry.root == "/" else f"[{entry.root}]"
    return KernelView(
        target=path,
        mounted_at=entry.path,
        source=f"{entry.source}{part}",
        fs_type=entry.fs_type,
        options=_merged(entry.options, entry.super_options),
        size=filesystem.f_blocks * filesystem.f_frsize,
    )


def _mount_id(descriptor: int) -> int:
    """The mount through which the descriptor was opened: its number in the mount table."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name == "mnt_id":
                return int(value)
    raise OSError(f"the kernel does not tell the mount of descriptor {descriptor}")


def _merged(options: Sequence[str], super_options: Sequence[str]) -> tuple[str, ...]:
    """Both kinds of options without repetitions, as ``findmnt`` joins them; ``ro`` of either wins over ``rw``."""
    joined = dict.fromkeys((*options, *super_options))
    if "ro" in joined:
        joined.pop("rw", None)
    return tuple(joined)


def format_size(size: int) -> str:
    """Bytes in the binary unit that reads best: ``16M``, ``58.4G``."""
    value, units = float(size), "BKMGTPE"
    for unit in units[:-1]:
        if value < 1024:
            return f"{value:.4g}{unit}"
        value /= 1024
    return f"{value:.4g}{units[-1]}"
