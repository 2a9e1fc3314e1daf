"""Finds who keeps a mount busy: processes, mounts on top of it, loop devices on its files.

Called when an unmount fails with "busy", to say so in the error instead of leaving the user to search (BR-84).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from volumehost.errors import MountError
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
    until = time.monotonic() + _SCAN_SECONDS
    holders: list[Holder] = []
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        if len(holders) >= limit or time.monotonic() > until:
            break
        how = next(_how(f"{proc}/{name}", entry.mount_id, target, f"{entry.major:02x}:{entry.minor:02x}"), "")
        if how:
            holders.append(Holder(int(name), _command(f"{proc}/{name}"), how))
    return holders


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


def _how(process: str, mount_id: int, target: str, device: str) -> Iterator[str]:
    for link, how in (("cwd", "working directory"), ("root", "root directory"), ("exe", "running program")):
        if _mount_id(f"{process}/{link}") == mount_id:
            yield f"{how} {_link_text(f'{process}/{link}')}"
    try:
        descriptors = os.listdir(f"{process}/fd")
    except OSError:
        return
    for number in descriptors:
        if _fd_mount_id(f"{process}/fdinfo/{number}") == mount_id:
            yield f"open file {_link_text(f'{process}/fd/{number}')}"
    for line in _read_text(f"{process}/maps").splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[3] == device and fields[5].startswith(f"{target}/"):
            yield f"mapped file {fields[5]}"


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
