"""The mount table below one root directory, put in order: what lies at a place, what lies upon it, what is seen."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from volumehost.inspection.report import MountFacts

if TYPE_CHECKING:
    from volumehost.host_services import MountPoint

#: Filesystems whose content ends with their last mount.
MEMORY_FS_TYPES: Final = frozenset({"tmpfs", "ramfs", "hugetlbfs"})

#: How the kernel marks a mount point whose directory was removed elsewhere.
DELETED: Final = "//deleted"

_SECRET: Final = re.compile(r"pass|secret|token|credential|(^|[^a-z])key|cred", re.IGNORECASE)
_MASK: Final = "<masked>"


class MountIndex:
    """The mounts at or below ``root``, found by their places."""

    def __init__(self, root: str, table: Iterable[MountPoint]) -> None:
        self.root = root
        self.table: Sequence[MountPoint] = list(table)
        self._by_id = {mount.mount_id: mount for mount in self.table}
        self._by_path: dict[str, list[MountPoint]] = {}
        start = f"{root}/"
        for mount in self.table:
            if mount.path == root or mount.path.startswith(start):
                self._by_path.setdefault(mount.path, []).append(mount)
        for path, mounts in self._by_path.items():
            if len(mounts) > 1:
                self._by_path[path] = sorted(mounts, key=self._depth)

    def paths(self) -> list[str]:
        """Every place below the root at which something is mounted, in the order of the table."""
        return list(self._by_path)

    def at(self, path: str) -> list[MountPoint]:
        """What is mounted exactly there, the lowest first."""
        return self._by_path.get(path, [])

    def below(self, path: str) -> list[MountPoint]:
        """What is mounted there and anywhere below, deepest places last."""
        places = self._places
        begin, end = bisect_left(places, f"{path}/"), bisect_left(places, f"{path}0")  # "0" comes after "/"
        found = [path, *places[begin:end]] if path in self._by_path else places[begin:end]
        return [mount for place in found for mount in self._by_path[place]]

    @cached_property
    def _places(self) -> list[str]:
        return sorted(self._by_path)

    def around(self, mount: MountPoint) -> MountPoint | None:
        """The mount in which it lies."""
        return self._by_id.get(mount.parent_id)

    def is_hidden(self, mount: MountPoint) -> bool:
        """Whether another mount lies over the place, or over a directory on the way to it, so that no path leads there.

        Only mounts within the root are looked at.
        """
        above = self._ancestors(mount)
        if self.at(mount.path)[-1] is not mount:
            return True
        end = mount.path.rfind("/")
        while end > len(self.root):
            on_the_way = self._by_path.get(mount.path[:end])
            if on_the_way and on_the_way[-1].mount_id not in above:
                return True
            end = mount.path.rfind("/", 0, end)
        return False

    def showing_the_same(self, mount: MountPoint) -> list[MountPoint]:
        """Other mounts, anywhere, of the same part of the same filesystem."""
        return [
            other
            for other in self._same.get((mount.major, mount.minor, mount.root), ())
            if other.mount_id != mount.mount_id
        ]

    def showing_device(self, major: int, minor: int) -> list[MountPoint]:
        """Mounts of the filesystem on that device."""
        return [mount for mount in self.table if (mount.major, mount.minor) == (major, minor)]

    @cached_property
    def _same(self) -> dict[tuple[int, int, str], list[MountPoint]]:
        found: dict[tuple[int, int, str], list[MountPoint]] = {}
        for mount in self.table:
            found.setdefault((mount.major, mount.minor, mount.root), []).append(mount)
        return found

    def _ancestors(self, mount: MountPoint) -> set[int]:
        found: set[int] = set()
        parent = mount.parent_id
        while parent in self._by_id and parent not in found:
            found.add(parent)
            parent = self._by_id[parent].parent_id
        return found

    def _depth(self, mount: MountPoint) -> int:
        return len(self._ancestors(mount))


def mount_facts(mount: MountPoint) -> MountFacts:
    """The mount for people and programs: options of both kinds without repetitions, secret ones masked."""
    options = dict.fromkeys((*mount.options, *mount.super_options))
    if "ro" in options:
        options.pop("rw", None)
    return MountFacts(
        path=mount.path,
        source=mount.source,
        fs_type=mount.fs_type,
        options=tuple(_masked(option) for option in options),
        root=mount.root,
        device=f"{mount.major}:{mount.minor}",
        mount_id=mount.mount_id,
    )


def _masked(option: str) -> str:
    name, equals, _ = option.partition("=")
    return f"{name}={_MASK}" if equals and _SECRET.search(name) else option
