"""Pod directories that no pod owns: what keeps them, and their removal, which never deletes data (ORPHAN rules)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.errors import RemovalError, StillMountedError, VolumeHostError
from volumehost.mount.removal import remove_all_one_filesystem, remove_dirs_one_filesystem

if TYPE_CHECKING:
    from volumehost.host_services import MountInterface, MountPoint
    from volumehost.hosts.layout import Layout


@dataclass(frozen=True, slots=True)
class OrphanedPod:
    """A pod directory of no known pod. ``keeps`` has one line for each thing that keeps it from being removed."""

    pod_uid: str
    path: str
    mounts: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    removed: bool = False


def orphaned_pods(layout: Layout, known: Iterable[str], mounts: Iterable[MountPoint]) -> list[OrphanedPod]:
    """Pods on disk minus the known ones (ORPHAN-01), with the mounts that lie below each.

    :raises OSError: the pods directory cannot be listed.
    """
    known = set(known)
    table = [mount.path for mount in mounts]
    found = []
    for uid in sorted(os.listdir(layout.pods_dir())):
        if uid in known:
            continue
        path = f"{layout.pods_dir()}/{uid}"
        below = tuple(mounted for mounted in table if mounted == path or mounted.startswith(f"{path}/"))
        keeps = tuple(f"still mounted: {mounted}" for mounted in below)
        found.append(OrphanedPod(uid, path, below, keeps))
    return found


def remove_pod_directory(layout: Layout, pod_uid: str) -> None:
    """Remove the directory of a pod none of whose volumes is mounted any more (ORPHAN-04 to -06).

    Below ``volumes`` only empty directories go, never a file; a mount anywhere stops it. Success when it is gone.

    :raises StillMountedError: something is mounted below it; it was left untouched.
    :raises RemovalError: files are left in a volume's directory; they were kept.
    """
    pod_dir = layout.pod_dir(pod_uid)
    remove_dirs_one_filesystem(layout.pod_volumes_dir(pod_uid))
    _remove_subpaths(layout.pod_subpaths_dir(pod_uid))
    try:
        names = os.listdir(pod_dir)
    except FileNotFoundError:
        return
    first: VolumeHostError | None = None
    for name in sorted(names):
        if name == "volumes":  # came back after it was removed: never to be touched here
            first = first or RemovalError(
                "volumes appeared while it was being removed", action=f"remove {pod_dir}", subject=pod_dir
            )
            continue
        try:
            remove_all_one_filesystem(f"{pod_dir}/{name}")
        except (StillMountedError, RemovalError) as error:
            first = first or error
    if first is not None:
        raise first
    try:
        os.rmdir(pod_dir)
    except FileNotFoundError:
        return
    except OSError as error:
        raise RemovalError(error.strerror or str(error), action=f"remove {pod_dir}", subject=pod_dir) from error


def _remove_subpaths(base: str) -> None:
    """Subpath targets are empty directories or empty files; one with content is kept (ORPHAN-09)."""
    if not os.path.lexists(base):
        return
    for volume in _listed(base):
        for container in _listed(f"{base}/{volume}"):
            for index in _listed(f"{base}/{volume}/{container}"):
                _remove_empty_file(f"{base}/{volume}/{container}/{index}")
    remove_dirs_one_filesystem(base)


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _remove_empty_file(path: str) -> None:
    """A mounted file is busy and stays; so does one with content."""
    try:
        if os.path.isfile(path) and not os.path.islink(path) and os.stat(path).st_size == 0:
            os.unlink(path)
    except OSError:
        return


def remove_orphans(orphans: Iterable[OrphanedPod], layout: Layout, mounter: MountInterface) -> list[OrphanedPod]:
    """Unmount what is mounted below each orphan, deepest first, then remove its directory; tells what keeps the rest.

    A busy mount stays, and everything with it (BR-84).
    """
    results = []
    for orphan in orphans:
        keeps = []
        for mounted in sorted(orphan.mounts, key=len, reverse=True):
            try:
                mounter.unmount(mounted)
            except VolumeHostError as error:
                keeps.append(str(error))
        if not keeps:
            try:
                remove_pod_directory(layout, orphan.pod_uid)
            except VolumeHostError as error:
                keeps.append(str(error))
        results.append(OrphanedPod(orphan.pod_uid, orphan.path, orphan.mounts, tuple(keeps), removed=not keeps))
    return results
