"""Mounts of the root directory that processes in other mount namespaces have: containers above all.

An unmount here does not take such a mount away, and while it is there the volume below stays busy.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from volumehost.errors import MountError
from volumehost.inspection.processes import command_of, pids
from volumehost.mount.mountinfo import parse_line, read_consistently, split_table

if TYPE_CHECKING:
    from volumehost.host_services import MountPoint
    from volumehost.inspection.mounts import MountIndex

#: At most so many namespaces are looked at, for so many seconds.
_NAMESPACES: Final = 1024
_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class ForeignMount:
    """A mount in another namespace, with one of the processes that live there.

    ``follows``: it goes when the same mount here goes, since unmounting propagates to it.
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
    shown = {_shown(mount): mount for path in index.paths() for mount in index.at(path) if path != index.root}
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
            found += [ForeignMount(pid, command_of(pid), mount, _follows(mount, index)) for mount in
                      _concerning(text, index.root, shown)]  # fmt: skip
        except MountError:
            seen.discard(namespace)  # the process has ended: another one of that namespace may be there
    return OtherNamespaces(tuple(found), complete="" not in seen)


def _concerning(text: str, root: str, shown: dict[tuple[int, int, str], MountPoint]) -> Iterator[MountPoint]:
    roots = {key[2] for key in shown}
    for line, part, path in split_table(text):
        if path.startswith(f"{root}/"):
            yield parse_line(line)
        elif part in roots:
            mount = parse_line(line)
            if _shown(mount) in shown:
                yield mount


def _follows(mount: MountPoint, index: MountIndex) -> bool:
    """Whether it is a copy that the kernel keeps in step with a mount here: same place, same group or slave of it."""
    groups = {item.partition(":")[2] for item in mount.optional_fields if item.startswith(("shared:", "master:"))}
    return any(
        item.startswith("shared:") and item.partition(":")[2] in groups
        for here in index.at(mount.path)
        for item in here.optional_fields
    )


def _shown(mount: MountPoint) -> tuple[int, int, str]:
    return mount.major, mount.minor, mount.root


def _namespace(pid: str) -> str:
    """Which mount namespace the process is in; "" when that cannot be known."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except FileNotFoundError:
        return _namespace("thread-self") if pid != "thread-self" else ""  # it has ended: nothing to look at
    except OSError:
        return ""
