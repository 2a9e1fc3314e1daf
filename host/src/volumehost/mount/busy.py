"""Finds who keeps a mount busy: processes, mounts on top of it, loop devices on its files.

Called when an unmount fails with "busy", to say so in the error instead of leaving the user to search (BR-84).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from volumehost.errors import MountError
from volumehost.host_services import MountPoint
from volumehost.mount import syscalls
from volumehost.mount.mountinfo import read_mount_table
from volumehost.mount.refs import find_containing_mount

_FLAGS: Final = syscalls.AT_STATX_DONT_SYNC | syscalls.AT_NO_AUTOMOUNT
_SCAN_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a mount: ``how`` is "working directory", "root directory", "open file ..." and so on."""

    pid: int
    command: str
    how: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command}): {self.how}"


def find_holders(target: str, *, proc: str = "/proc", limit: int = 10) -> list[Holder]:
    """Processes that hold the mount at the resolved path, at most ``limit``; one line for each process.

    Looks for two seconds at most; processes of other users are only seen by root.
    """
    entry = next((entry for entry in reversed(read_mount_table()) if entry.path == target), None)
    if entry is None:
        return []
    return find_holders_of([entry], proc=proc, limit=limit).get(entry.mount_id, [])


def find_holders_of(
    mounts: Iterable[MountPoint], *, proc: str = "/proc", limit: int = 10, seconds: float = _SCAN_SECONDS
) -> dict[int, list[Holder]]:
    """The same for many mounts with one look at the processes, by the mounts' ids; those without holders are left out.

    This process is named last: whoever reads of it has to end the others.

    :param limit: at most so many for each mount.
    :param seconds: how long to look at most.
    """
    wanted = {mount.mount_id: mount for mount in mounts}
    until = time.monotonic() + seconds
    holders: dict[int, list[Holder]] = {}
    own = str(os.getpid())
    for name in sorted(os.listdir(proc), key=own.__eq__) if wanted else ():
        if not name.isdigit():
            continue
        if time.monotonic() > until or all(len(holders.get(each, ())) >= limit for each in wanted):
            break
        for mount_id, how in _first_of_each(_held(f"{proc}/{name}", wanted), len(wanted)).items():
            found = holders.setdefault(mount_id, [])
            if len(found) < limit:
                found.append(Holder(int(name), _command(f"{proc}/{name}"), how))
    return holders


def _first_of_each(held: Iterable[tuple[int, str]], enough: int) -> dict[int, str]:
    found: dict[int, str] = {}
    for mount_id, how in held:
        found.setdefault(mount_id, how)
        if len(found) == enough:
            break
    return found


def find_other_reasons(target: str, *, sys_block: str = "/sys/block") -> list[str]:
    """What else keeps the mount at the resolved path busy: mounts below it, loop devices on its files."""
    table = read_mount_table()
    entry = next((entry for entry in reversed(table) if entry.path == target), None)
    if entry is None:
        return []
    reasons = [f"{child.path} is mounted in it" for child in table if child.parent_id == entry.mount_id]
    try:
        devices = [name for name in os.listdir(sys_block) if name.startswith("loop")]
    except OSError:
        devices = []
    for name in devices:
        backing_file = _read_text(f"{sys_block}/{name}/loop/backing_file").rstrip("\n")
        if backing_file and _lies_on(backing_file, entry.mount_id, table):
            reasons.append(f"/dev/{name} is attached to {backing_file}")
    return reasons


def _lies_on(path: str, mount_id: int, table: list) -> bool:  # type: ignore[type-arg]
    try:
        return find_containing_mount(path, table).mount_id == mount_id
    except MountError:
        return False


def _held(process: str, wanted: Mapping[int, MountPoint]) -> Iterator[tuple[int, str]]:
    """(id of a mount, how the process holds it) for each of the mounts that it holds."""
    for link, how in (("cwd", "working directory"), ("root", "root directory"), ("exe", "running program")):
        mount_id = _mount_id(f"{process}/{link}")
        if mount_id is not None and mount_id in wanted:
            yield mount_id, f"{how} {_link_text(f'{process}/{link}')}"
    try:
        descriptors = os.listdir(f"{process}/fd")
    except OSError:
        return
    for number in descriptors:
        mount_id = _fd_mount_id(f"{process}/fdinfo/{number}")
        if mount_id is not None and mount_id in wanted:
            yield mount_id, f"open file {_link_text(f'{process}/fd/{number}')}"
    devices = {f"{mount.major:02x}:{mount.minor:02x}" for mount in wanted.values()}
    for line in _read_text(f"{process}/maps").splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[3] in devices:
            # Several mounts may have the device: the path tells which it is.
            for mount in wanted.values():
                if f"{mount.major:02x}:{mount.minor:02x}" == fields[3] and fields[5].startswith(f"{mount.path}/"):
                    yield mount.mount_id, f"mapped file {fields[5]}"


def _mount_id(path: str) -> int | None:
    try:
        return syscalls.statx(syscalls.AT_FDCWD, path, _FLAGS, syscalls.STATX_MNT_ID).mount_id
    except OSError:
        return None


def _fd_mount_id(path: str) -> int | None:
    for line in _read_text(path).splitlines():
        name, _, value = line.partition(":")
        if name == "mnt_id":
            return int(value)
    return None


def _link_text(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return "?"


def _command(process: str) -> str:
    return _read_text(f"{process}/comm").strip() or "?"


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""
