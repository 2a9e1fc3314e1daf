"""Pod directories that no pod owns: what keeps them, and their removal, which never deletes data (ORPHAN rules)."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.errors import RemovalError, StillMountedError, VolumeHostError
from volumehost.mount.removal import open_without_crossing, remove_all_at, remove_dirs_at
from volumehost.sdk.directories import DIRECTORY_FLAGS

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

    Below ``volumes`` only empty directories go, never a file; a mount anywhere stops it. Works by descriptors: what
    is a link, or a mount, where a directory should be is never entered. Success when it is gone.

    :raises StillMountedError: something is mounted below it; it was left untouched.
    :raises RemovalError: files are left in a volume's directory, and were kept; or it is no directory at all.
    """
    pod_dir = layout.pod_dir(pod_uid)
    try:
        pods = os.open(layout.pods_dir(), DIRECTORY_FLAGS)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _not_a_directory(pod_dir, error) from error
    try:
        _remove_pod(pods, pod_uid, pod_dir)
    finally:
        os.close(pods)


def _remove_pod(pods: int, pod_uid: str, pod_dir: str) -> None:
    try:
        pod = open_without_crossing(pods, pod_uid)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _not_a_directory(pod_dir, error) from error
    try:
        children = os.listdir(pod)
        if "volumes" in children:
            remove_dirs_at(pod, "volumes", f"{pod_dir}/volumes")
        if "volume-subpaths" in children:
            remove_empty_subpaths(pod, f"{pod_dir}/volume-subpaths")
        if children != ["volumes"]:
            _remove_other_children(pod, pod_dir)
    finally:
        os.close(pod)
    try:
        os.rmdir(pod_uid, dir_fd=pods)
    except FileNotFoundError:
        return
    except OSError as error:
        raise RemovalError(error.strerror or str(error), action=f"remove {pod_dir}", subject=pod_dir) from error


def _remove_other_children(pod: int, pod_dir: str) -> None:
    """All but ``volumes``; the first failure is told when the others have been tried."""
    first: VolumeHostError | None = None
    for name in sorted(os.listdir(pod)):
        path = f"{pod_dir}/{name}"
        if name == "volumes":  # came back after it was removed: never to be touched here
            first = first or RemovalError("it appeared meanwhile", action=f"remove {path}", subject=path)
            continue
        try:
            remove_all_at(pod, name, path)
        except (StillMountedError, RemovalError) as error:
            first = first or error
    if first is not None:
        raise first


def remove_empty_subpaths(pod: int, path: str) -> None:
    """Remove the subpaths of a pod: targets are empty directories or empty files; one with content is kept (ORPHAN-09).

    :param pod: a descriptor of the pod's directory.
    :param path: what errors call the directory of its subpaths.
    :raises StillMountedError: one is mounted.
    :raises RemovalError: one has content.
    """
    with ExitStack() as opened:
        for volume in _entries(pod, "volume-subpaths", opened):
            for container in _entries(*volume, opened):
                for directory, name in _entries(*container, opened):
                    _remove_empty_file(directory, name)
    remove_dirs_at(pod, "volume-subpaths", path)


def _entries(parent: int, name: str, opened: ExitStack) -> list[tuple[int, str]]:
    """(descriptor of the directory, entry) for each entry; none where there is no directory of this filesystem."""
    try:
        directory = opened.enter_context(_directory(open_without_crossing(parent, name)))
        return [(directory, entry) for entry in os.listdir(directory)]
    except OSError:
        return []


def _remove_empty_file(directory: int, name: str) -> None:
    """A mounted file is busy and stays; so does one with content."""
    with contextlib.suppress(OSError):
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISREG(found.st_mode) and found.st_size == 0:
            os.unlink(name, dir_fd=directory)


@contextlib.contextmanager
def _directory(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _not_a_directory(path: str, error: OSError) -> VolumeHostError:
    action = f"remove {path}"
    if error.errno == errno.EXDEV:
        return StillMountedError("it is a mount point itself", action=action, subject=path, hint="unmount it first")
    return RemovalError(error.strerror or str(error), action=action, subject=path, hint="look what it is", paths=[path])


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
