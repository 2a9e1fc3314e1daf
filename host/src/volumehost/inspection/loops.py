"""Loop devices by what the kernel shows of them in ``/sys``; hardly any is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from volumehost.mount.block_path import mapping_label
from volumehost.mount.loop import label_of

if TYPE_CHECKING:
    from volumehost.host_services import MountPoint

_SYS_BLOCK: Final = "/sys/block"
_DELETED: Final = " (deleted)"


@dataclass(frozen=True, slots=True)
class LoopUse:
    """An attached loop device. ``mounted_at``: where its filesystem, or the device itself, is mounted.

    ``holders``: devices that are made of it, loop devices over it that are in use among them. ``deleted``: its file
    has no name any more. ``lock_of``: the mapped device that it only keeps from going away (BLOCK-07).
    """

    device: str
    major: int
    minor: int
    backing_file: str
    deleted: bool
    mounted_at: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    lock_of: str = ""

    @property
    def used(self) -> bool:
        """Whether a mount or another device needs it."""
        return bool(self.mounted_at or self.holders)


def loops_below(
    root: str, table: Iterable[MountPoint], locks: Iterable[str] = (), *, sys_block: str = _SYS_BLOCK
) -> list[LoopUse]:
    """The loop devices whose file lies, or lay, below the root.

    :param table: the mounts of all namespaces that were looked at.
    :param locks: places of mapped devices, each of which a loop device may lock. One whose place has vanished is known
        by its label, for which alone the device is opened.
    """
    mounted = _Mounted(table)
    labels = {mapping_label(path): path for path in locks}
    looked = (_look(f"{sys_block}/{name}", name, mounted) for name in _names(sys_block))
    every = {each.device: each for each in looked if each is not None}
    for upper in every.values():
        lower = every.get(upper.backing_file)
        if lower is not None and upper.used:
            every[lower.device] = replace(lower, holders=(*lower.holders, upper.device))
    return [found for each in every.values() if (found := _of_root(each, root, labels)) is not None]


def _of_root(device: LoopUse, root: str, labels: Mapping[str, str]) -> LoopUse | None:
    """The device if it is one of this root directory."""
    if device.backing_file.startswith(f"{root}/"):
        return replace(device, lock_of=device.backing_file if device.backing_file in labels.values() else "")
    if not _has_lost_its_path(device.backing_file):
        return None
    label = label_of(device.device)
    lock_of = labels.get(label, label if label.startswith(f"{root}/") else "")  # losetup's label is the path
    return replace(device, lock_of=lock_of) if lock_of else None


class _Mounted:
    """Where block devices are mounted, by their numbers and by their nodes."""

    def __init__(self, table: Iterable[MountPoint]) -> None:
        self._by_number: dict[tuple[int, int], list[str]] = {}
        self._by_node: dict[str, list[str]] = {}
        for mount in table:
            self._by_number.setdefault((mount.major, mount.minor), []).append(mount.path)
            if mount.fs_type == "devtmpfs":  # a device node that is bound somewhere
                self._by_node.setdefault(mount.root, []).append(mount.path)

    def places(self, number: tuple[int, int], name: str) -> tuple[str, ...]:
        return (*self._by_number.get(number, ()), *self._by_node.get(f"/{name}", ()))


def _look(directory: str, name: str, mounted: _Mounted) -> LoopUse | None:
    text = _read(f"{directory}/loop/backing_file")
    major, _, minor = _read(f"{directory}/dev").partition(":")
    if not text or not major.isdecimal() or not minor.isdecimal():
        return None
    number, backing = (int(major), int(minor)), text.removesuffix(_DELETED)
    holders = tuple(_names(f"{directory}/holders", pattern=r".+"))
    return LoopUse(f"/dev/{name}", *number, backing, backing != text, mounted.places(number, name), holders)


def _has_lost_its_path(backing_file: str) -> bool:
    """Whether the kernel shows a mere name, since the mount through which the file was attached is gone."""
    return re.fullmatch(r"/?[^/]*", backing_file) is not None


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
