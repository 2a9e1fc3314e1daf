"""Removes what is left of pods, devices and writes: empty directories and files of a known kind, nothing else.

Everything goes by descriptors from the root directory down: no link is followed, no mount entered, and what somebody
has put in the place of a directory is not taken for one.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from volumehost.errors import RemovalError
from volumehost.hosts.layout import Layout
from volumehost.inspection.pod_directories import MARKERS, is_generation
from volumehost.inspection.records import VOL_DATA, VOL_DATA_TEMPORARY
from volumehost.mount.removal import open_without_crossing, remove_all_at, remove_dirs_at
from volumehost.node.restart.orphans import remove_empty_subpaths
from volumehost.sdk.directories import DIRECTORY_FLAGS

_RECORDS: Final = frozenset({VOL_DATA, VOL_DATA_TEMPORARY})
_CSI: Final = "kubernetes.io~csi"

Wanted = Callable[[str, os.stat_result], bool]


def remove_pod(root: str, uid: str) -> None:
    """Remove a pod's directory: known small files first, then directories that are empty. Success when it is gone.

    :raises StillMountedError: something is mounted below it.
    :raises RemovalError: files are left, which were kept.
    """
    path = Layout(root).pod_dir(uid)
    with _holding(root, path) as (pods, name):
        if pods < 0:
            return
        with _below(pods, name) as pod:
            if pod >= 0:
                _remove_known_files(pod, path)
        remove_dirs_at(pods, name, path)


def _remove_known_files(pod: int, path: str) -> None:
    with _below(pod, "volumes") as volumes, _below(volumes, _CSI) as directory:
        for name in _names(directory):
            with _below(directory, name) as volume:
                _remove_record(volume, "mount")
    with _below(pod, "volumeDevices") as devices:
        for name in _names(devices):
            _unlink(devices, name, lambda _, found: stat.S_ISLNK(found.st_mode))
    if "volume-subpaths" in _names(pod):
        remove_empty_subpaths(pod, f"{path}/volume-subpaths")
    with _below(pod, "plugins") as plugins:
        for plugin in _names(plugins):
            with _below(plugins, plugin) as directory:
                for each in _names(directory):
                    _unlink(directory, each, lambda name, found: name in MARKERS and stat.S_ISREG(found.st_mode))
    with _below(pod, "containers") as containers:
        for container in _names(containers):  # termination messages
            _unlink(containers, container, lambda _, found: stat.S_ISREG(found.st_mode))
    _unlink_entry(pod, "etc-hosts", lambda _, found: stat.S_ISREG(found.st_mode))


def remove_volume(root: str, path: str) -> None:
    """Remove the directory of a pod's volume, with the record of a CSI volume, once nothing is mounted there.

    :raises StillMountedError: something is.
    :raises RemovalError: files are left, which were kept.
    """
    with _holding(root, path) as (plugin, name):
        if plugin >= 0:
            with _below(plugin, name) as volume:
                if path.rpartition("/")[0].endswith(f"/{_CSI}"):
                    _remove_record(volume, "mount")
            remove_dirs_at(plugin, name, path)


def remove_payload(root: str, path: str) -> None:
    """Remove the generations of a payload, and the links into them, from a volume's directory, which stays.

    :raises StillMountedError: something is mounted in a generation.
    :raises RemovalError: a part of it cannot be removed.
    """
    with _holding(root, path) as (plugin, name), _below(plugin, name) as volume:
        for entry in _names(volume):
            if is_generation(entry):
                remove_all_at(volume, entry, f"{path}/{entry}")
            elif _leads_into_payload(volume, entry):
                os.unlink(entry, dir_fd=volume)


def _leads_into_payload(directory: int, name: str) -> bool:
    """Whether it is a link into a payload, or the one that says which generation counts."""
    try:
        target = os.readlink(name, dir_fd=directory)
    except OSError:
        return False
    return target.startswith("..data/") or (name.startswith("..") and is_generation(target))


def remove_device(root: str, directory: str) -> None:
    """Remove the directory of a CSI volume's global mount with its record; of a raw block volume all its directories.

    :raises StillMountedError: something is mounted there.
    :raises RemovalError: files are left, which were kept.
    """
    parent, _, name = directory.rpartition("/")
    is_block = parent.endswith("/volumeDevices")
    with _holding(root, directory) as (above, last):
        if above < 0:
            return
        with _below(above, last) as device:
            if is_block:
                with _below(device, "data") as data:
                    _remove_record(data, "")
                _unlink(device, "dev", _is_placeholder)
            else:
                _remove_record(device, "globalmount")
        if is_block:
            for base in ("publish", "staging"):
                with _below(above, base) as places:
                    _unlink(places, name, _is_placeholder)
                    if places >= 0:
                        remove_dirs_at(places, name, f"{parent}/{base}/{name}")
        remove_dirs_at(above, last, directory)


def remove_subpath(root: str, path: str) -> None:
    """Remove the place of one subpath, and the directories above it that are empty with that, up to the pod's.

    :raises RemovalError: it has content, or is mounted.
    """
    with _holding(root, path) as (directory, name):
        if directory >= 0 and not _unlink_entry(directory, name, _is_placeholder):
            remove_dirs_at(directory, name, path)
    for above in (os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
        with _holding(root, above) as (directory, name), contextlib.suppress(OSError):
            if directory >= 0:
                os.rmdir(name, dir_fd=directory)


def remove_small_file(root: str, path: str) -> None:
    """Remove a temporary file, or a socket. Success when it is gone.

    :raises RemovalError: something else is there.
    """
    with _holding(root, path) as (directory, name):
        if directory < 0:
            return
        gone = _unlink_entry(
            directory, name, lambda _, found: stat.S_ISREG(found.st_mode) or stat.S_ISSOCK(found.st_mode)
        )
        if not gone and name in _names(directory):
            raise RemovalError("it is no file of the kind that it was", action=f"remove {path}", subject=path)


# --- parts ----------------------------------------------------------------------------------------------------


def _remove_record(volume: int, mount: str) -> None:
    """Remove a record once nothing is mounted beside it, and what was mounted there is empty."""
    if volume < 0:
        return
    if mount and mount in _names(volume):
        try:
            os.rmdir(mount, dir_fd=volume)
        except OSError:
            return  # mounted, or not empty: the record is needed
    for name in _RECORDS:
        _unlink_entry(volume, name, lambda _, found: stat.S_ISREG(found.st_mode))


def _is_placeholder(_name: str, found: os.stat_result) -> bool:
    """Whether it is the empty file that something was mounted on."""
    return stat.S_ISREG(found.st_mode) and found.st_size == 0


def _unlink(parent: int, name: str, wanted: Wanted) -> None:
    """Unlink what is wanted among the entries of a directory."""
    with _below(parent, name) as directory:
        for entry in _names(directory):
            _unlink_entry(directory, entry, wanted)


def _unlink_entry(directory: int, name: str, wanted: Wanted) -> bool:
    """Unlink one entry if it is of the kind that is wanted; whether it went. What is mounted on is busy, and stays."""
    if directory < 0:
        return False
    try:
        if not wanted(name, os.stat(name, dir_fd=directory, follow_symlinks=False)):
            return False
        os.unlink(name, dir_fd=directory)
    except OSError:
        return False
    return True


def _names(directory: int) -> list[str]:
    return sorted(os.listdir(directory)) if directory >= 0 else []


@contextmanager
def _below(parent: int, name: str) -> Iterator[int]:
    """A descriptor of a directory in another; -1 where there is none of this filesystem."""
    try:
        descriptor = open_without_crossing(parent, name) if parent >= 0 else -1
    except OSError:
        descriptor = -1
    try:
        yield descriptor
    finally:
        if descriptor >= 0:
            os.close(descriptor)


@contextmanager
def _holding(root: str, path: str) -> Iterator[tuple[int, str]]:
    """(descriptor of the directory that holds the path, its name there); -1 where there is no such directory.

    The first level below the root may be a mount: that is where an administrator puts another disk.

    :raises RemovalError: the path does not lie below the root.
    """
    if not path.startswith(f"{root}/") or os.path.normpath(path) != path:
        raise RemovalError(f"it does not lie below {root}", action=f"remove {path}", subject=path)
    *above, name = path.removeprefix(f"{root}/").split("/")
    opened = os.open(root, DIRECTORY_FLAGS)
    try:
        for number, level in enumerate(above):
            try:
                below = (
                    os.open(level, DIRECTORY_FLAGS, dir_fd=opened)
                    if not number
                    else open_without_crossing(opened, level)
                )
            except OSError:
                os.close(opened)
                opened = -1
                break
            os.close(opened)
            opened = below
        yield opened, name
    finally:
        if opened >= 0:
            os.close(opened)
