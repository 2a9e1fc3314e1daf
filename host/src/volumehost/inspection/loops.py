"""Loop devices by what the kernel shows of them in ``/sys``: none is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from volumehost.host_services import MountPoint

_SYS_BLOCK: Final = "/sys/block"
_DELETED: Final = " (deleted)"


@dataclass(frozen=True, slots=True)
class LoopUse:
    """An attached loop device. ``mounted_at``: where its filesystem, or the device itself, is mounted.

    ``holders``: devices that are made of it. ``deleted``: its file has no name any more.
    """

    device: str
    major: int
    minor: int
    backing_file: str
    deleted: bool
    mounted_at: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()

    @property
    def used(self) -> bool:
        """Whether a mount or another device needs it."""
        return bool(self.mounted_at or self.holders)


def loops_below(root: str, table: Iterable[MountPoint], *, sys_block: str = _SYS_BLOCK) -> list[LoopUse]:
    """The loop devices whose file lies, or lay, below the root.

    :param table: the mounts of all namespaces that were looked at.
    """
    by_device: dict[tuple[int, int], list[str]] = {}
    by_node: dict[str, list[str]] = {}
    for mount in table:
        by_device.setdefault((mount.major, mount.minor), []).append(mount.path)
        if mount.fs_type == "devtmpfs":  # a device node that is bound somewhere
            by_node.setdefault(mount.root, []).append(mount.path)
    found = []
    for name in _names(sys_block):
        text = _read(f"{sys_block}/{name}/loop/backing_file")
        backing = text.removesuffix(_DELETED)
        major, _, minor = _read(f"{sys_block}/{name}/dev").partition(":")
        if backing.startswith(f"{root}/") and major.isdecimal() and minor.isdecimal():
            number = int(major), int(minor)
            mounted = (*by_device.get(number, ()), *by_node.get(f"/{name}", ()))
            holders = tuple(_names(f"{sys_block}/{name}/holders", pattern=r".+"))
            found.append(LoopUse(f"/dev/{name}", *number, backing, backing != text, mounted, holders))
    return found


def _names(directory: str, pattern: str = r"loop\d+") -> list[str]:
    try:
        found = [name for name in os.listdir(directory) if re.fullmatch(pattern, name)]
    except OSError:
        return []
    return sorted(found, key=lambda name: (len(name), name))


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().rstrip("\n")
    except OSError:
        return ""
