"""Mounts of the root directory that processes in other mount namespaces have: containers above all.

An unmount here does not take such a mount away, and while it is there the volume below stays busy.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from volumehost.errors import MountError
from volumehost.inspection.processes import command_of, pids
from volumehost.mount.mountinfo import parse_line, read_consistently, split_table

if TYPE_CHECKING:
    from volumehost.host_services import MountPoint
    from volumehost.inspection.mounts import MountIndex

#: Which part of which filesystem a mount shows.
Shown = tuple[int, int, str]

#: At most so many namespaces are looked at, for so many seconds.
_NAMESPACES: Final = 1024
_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class ForeignMount:
    """A mount in another namespace, with one of the processes that live there.

    ``follows``: it goes when the same mount here goes, since the kernel keeps the directories around both in step. A
    container's own bind of a volume does not, whatever its propagation: that is about what is mounted in it.
    """

    pid: int
    command: str
    mount: MountPoint
    follows: bool

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command}) has it mounted at {self.mount.path} in a namespace of its own"


@dataclass(frozen=True, slots=True)
class OtherNamespaces:
    """What was found; ``complete`` is False when there was no time, or no right, to look at all of them."""

    mounts: tuple[ForeignMount, ...] = ()
    complete: bool = True

    def holding(self, mount: MountPoint) -> list[ForeignMount]:
        """Who shows what this mount shows, and goes on doing so when it is unmounted here."""
        same = (mount.major, mount.minor, mount.root)
        return [each for each in self.mounts if _shown(each.mount) == same and not each.follows]


def look_at_other_namespaces(index: MountIndex) -> OtherNamespaces:
    """The mounts of other namespaces that lie below the root directory, or show what is mounted there."""
    until = time.monotonic() + _SECONDS
    found: list[ForeignMount] = []
    shown: dict[Shown, list[MountPoint]] = {}
    for path in index.paths():
        for mount in index.at(path) if path != index.root else ():
            shown.setdefault(_shown(mount), []).append(mount)
    seen = {_namespace("thread-self")}
    for pid in pids():
        namespace = _namespace(str(pid))
        if namespace in seen:
            continue
        if len(seen) > _NAMESPACES or time.monotonic() > until:
            return OtherNamespaces(tuple(found), complete=False)
        seen.add(namespace)
        try:
            text = read_consistently(f"/proc/{pid}/mountinfo")
            found += [
                ForeignMount(pid, command_of(pid), mount, _follows(parent, shown.get(_shown(mount), ()), index))
                for mount, parent in _concerning(text, index.root, shown)
            ]
        except MountError:
            seen.discard(namespace)  # the process has ended: another one of that namespace may be there
    return OtherNamespaces(tuple(found), complete="" not in seen)


def _concerning(
    text: str, root: str, shown: Mapping[Shown, Sequence[MountPoint]]
) -> Iterator[tuple[MountPoint, MountPoint | None]]:
    """(mount, the mount around it) for each that lies below the root, or shows what a mount there shows."""
    parts = {key[2] for key in shown}
    table = split_table(text)
    lines = {line.partition(" ")[0]: line for line, _, _ in table}
    for line, part, path in table:
        if not path.startswith(f"{root}/") and part not in parts:
            continue
        mount = parse_line(line)
        if path.startswith(f"{root}/") or _shown(mount) in shown:
            around = lines.get(str(mount.parent_id))
            yield mount, parse_line(around) if around is not None else None


def _follows(parent: MountPoint | None, same: Sequence[MountPoint], index: MountIndex) -> bool:
    """Whether what is unmounted here is unmounted there: the mounts around both are peers, or that one is a slave."""
    if parent is None:
        return False
    groups = {item.partition(":")[2] for item in parent.optional_fields if item.startswith(("shared:", "master:"))}
    around = (index.around(mount) for mount in same)
    return any(
        item.startswith("shared:") and item.partition(":")[2] in groups
        for mount in around
        if mount is not None
        for item in mount.optional_fields
    )


def _shown(mount: MountPoint) -> Shown:
    return mount.major, mount.minor, mount.root


def _namespace(pid: str) -> str:
    """Which mount namespace the process is in; "" when that cannot be known."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except FileNotFoundError:
        return _namespace("thread-self") if pid != "thread-self" else ""  # it has ended: nothing to look at
    except OSError:
        return ""
