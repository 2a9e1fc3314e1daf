"""Finds the other places where a directory is mounted, and how paths lie in each other.

Used before a device or a global mount is taken away: what is mounted elsewhere is still in use. All functions take the
table as an argument, so that one reading serves many questions; paths must be resolved (BR-69).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from volumehost.errors import MountError
from volumehost.host_services import MountPoint
from volumehost.mount.mountinfo import parse_line, split_table


def path_within_base(path: str, base: str) -> bool:
    """Whether ``path`` is ``base`` or lies below it, by text alone (MOUNT-39).

    Both are cleaned first. ``/a/..b`` is within ``/a``; everything absolute is within ``/``. Links are not resolved:
    resolve both before, or open by descriptors, where somebody else can write.
    """
    relative = os.path.relpath(path, base)
    return relative != ".." and not relative.startswith("../")


def find_containing_mount(path: str, table: Sequence[MountPoint]) -> MountPoint:
    """The mount through which the resolved path is seen (HOSTUTIL-07), found as the kernel finds it: from the top down.

    The order of the table decides nothing: after a ``pivot_root`` the root mount stands behind others, and a mount
    can hide one that was there before it.

    :raises MountError: no entry contains it.
    """
    candidates = [entry for entry in table if entry.path == path or _contains(entry.path, path)]
    known = {entry.mount_id for entry in candidates}
    found: MountPoint | None = None
    within = [entry for entry in candidates if entry.parent_id not in known or entry.parent_id == entry.mount_id]
    while within:
        # On the way down the shortest mount point comes first; of several at one place the last lies on top.
        found = min(reversed(within), key=lambda entry: len(entry.path))
        above = found.mount_id
        within = [entry for entry in candidates if entry.parent_id == above and entry.mount_id != above]
    if found is None:
        raise MountError(f'cannot find mount point for "{path}"', action="search the mount table", subject=path)
    return found


def _contains(base: str, path: str) -> bool:
    # Both are absolute and clean, so text decides, at a tenth of the cost of relpath.
    return base == "/" or path.startswith(base + "/")


def search_mount_refs(path: str, table: Sequence[MountPoint]) -> list[str]:
    """Mount points that show the same directory of the same filesystem as ``path`` (MOUNT-35, -36).

    ``path`` need not be a mount point itself. Sources are not compared: two tmpfs have the same source name.

    :raises MountError: no entry of the table contains the path.
    """
    containing = _containing(path, table)
    return _showing(containing, _join_root(containing, path), table)


def search_mount_refs_in_text(path: str, text: str) -> list[str]:
    """The same from the text of the table, of which only the lines that matter are parsed."""
    table = split_table(text)
    above = _with_parents(path)
    containing = _containing(path, [parse_line(line) for line, _, at in table if at in above])
    root = _join_root(containing, path)
    return _showing(containing, root, [parse_line(line) for line, shown, _ in table if shown == root])


def _with_parents(path: str) -> set[str]:
    found = {path, "/"}
    end = path.rfind("/")
    while end > 0:
        found.add(path[:end])
        end = path.rfind("/", 0, end)
    return found


def _containing(path: str, table: Sequence[MountPoint]) -> MountPoint:
    try:
        return find_containing_mount(path, table)
    except MountError as error:
        raise MountError(
            f"failed to get root path and major:minor for {path}", action="search the mount table", subject=path
        ) from error


def _showing(containing: MountPoint, root: str, table: Sequence[MountPoint]) -> list[str]:
    device = (containing.major, containing.minor)
    return [
        entry.path
        for entry in table
        if entry.root == root and (entry.major, entry.minor) == device and entry.mount_id != containing.mount_id
    ]


def _join_root(containing: MountPoint, path: str) -> str:
    if containing.path == path:
        return containing.root
    rest = path if containing.path == "/" else path[len(containing.path) :]
    return rest if containing.root == "/" else containing.root + rest


def device_name_from_mount(path: str, table: Sequence[MountPoint]) -> tuple[str, int]:
    """The device mounted at the resolved path, and how many entries have that device; ("", 0) if none (MOUNT-37)."""
    device = next((entry.source for entry in table if entry.path == path), "")
    if not device:
        return "", 0
    return device, sum(entry.source == device for entry in table)


def device_name_from_refs(path: str, refs: Sequence[str], plugin_dir: str) -> str:
    """The volume's name below a plugin's directory, found among the references of a mount (MOUNT-38).

    :raises MountError: nothing refers to it, so it is not mounted.
    """
    if not refs:
        raise MountError(f"directory {path} is not mounted", action="find the device of a mount", subject=path)
    for ref in refs:
        if path_within_base(ref, plugin_dir) and ref != plugin_dir:
            return os.path.relpath(ref, plugin_dir)
    return os.path.basename(path)
