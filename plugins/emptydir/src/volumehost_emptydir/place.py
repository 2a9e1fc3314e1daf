"""Where a volume lies and what is really there: facts from the kernel, which markers cannot replace (BR-61)."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from volumehost.errors import CorruptedMountError, MountError, UnsafePathError
from volumehost.sdk import HUGETLBFS_MAGIC, TMPFS_MAGIC, filesystem_magic, make_directories, set_ready
from volumehost_emptydir.plugin import PLUGIN_NAME
from volumehost_emptydir.size import DEFAULT_MEDIUM, HUGE_PAGES, MEMORY

if TYPE_CHECKING:
    from volumehost.host_services import MountInterface
    from volumehost.volume_host import VolumeHost

#: In the meta directory, beside ``ready``: the volume lies on a mount of its own, so the directory below is empty.
ON_MOUNT_FILE = "on-mount"
#: In the meta directory: mode and ownership were applied once.
READY_FILE = "ready"

_MEDIA = {TMPFS_MAGIC: MEMORY, HUGETLBFS_MAGIC: HUGE_PAGES}


class VolumePlace(NamedTuple):
    """A volume's directories: its data, and its meta directory, which no container sees (EMPTYDIR-02)."""

    name: str
    pod_uid: str
    data_dir: str
    meta_dir: str

    @classmethod
    def of(cls, host: VolumeHost, pod_uid: str, volume_name: str) -> VolumePlace:
        """Where the host's layout puts them."""
        return cls(
            name=volume_name,
            pod_uid=pod_uid,
            data_dir=host.get_pod_volume_dir(pod_uid, PLUGIN_NAME, volume_name),
            meta_dir=f"{host.get_pod_plugin_dir(pod_uid, PLUGIN_NAME)}/{volume_name}",
        )


class Found(NamedTuple):
    """What is at a path. ``medium`` is that of the filesystem, also where it is not a mount of its own."""

    exists: bool = False
    mounted: bool = False
    corrupted: bool = False
    medium: str = DEFAULT_MEDIUM

    @property
    def on_own_mount(self) -> bool:
        """Whether it is a mount of a kind that this plugin makes."""
        return self.mounted and self.medium != DEFAULT_MEDIUM


def look(path: str, mounter: MountInterface) -> Found:
    """Look at the path (EMPTYDIR-20, -35).

    :raises UnsafePathError: a link or a file is in the directory's place.
    :raises MountError: it cannot be looked at.
    """
    try:
        mounted = mounter.is_mount_point(path)
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        # Missing, or a link to nowhere: the latter is not gone.
        if not os.path.lexists(path):
            return Found()
        mounted, mode = False, stat.S_IFLNK
    except CorruptedMountError:
        return Found(exists=True, mounted=True, corrupted=True)
    except OSError as error:
        raise MountError(error.strerror or str(error), action=f"looking at {path}", subject=path) from error
    if not stat.S_ISDIR(mode):
        raise UnsafePathError(
            "it is not a directory",
            action=f"looking at the volume directory {path}",
            subject=path,
            hint="something else was put in its place; remove that by hand",
        )
    return Found(exists=True, mounted=mounted, medium=_medium(path))


def medium_of(path: str, mounter: MountInterface) -> str:
    """The medium of the volume mounted at the path, the default one when nothing is mounted."""
    found = look(path, mounter)
    return found.medium if found.on_own_mount else DEFAULT_MEDIUM


def _medium(path: str) -> str:
    try:
        magic = filesystem_magic(path)
    except OSError as error:
        raise MountError(
            error.strerror or str(error), action=f"looking at the filesystem of {path}", subject=path
        ) from error
    return _MEDIA.get(magic, DEFAULT_MEDIUM)


def write_on_mount_marker(place: VolumePlace, *, new_pod: bool = False) -> bool:
    """Record that the volume lies on a mount, before the mount is made or taken away.

    Whatever is in the directory below once nothing is mounted there was written by somebody who kept the path after
    the unmount: it is not the volume, and is kept (BR-70). Returns whether nothing was recorded of it before.

    :param new_pod: there was nothing of the pod a moment ago.
    """
    path = f"{place.meta_dir}/{ON_MOUNT_FILE}"
    try:
        new = make_directories(place.meta_dir, new_parents=2 if new_pod else 0)
        if not _link_to_last_marker(place.pod_uid, path):
            try:
                os.mknod(path, stat.S_IFREG | 0o640)
            except OSError:  # it is there, or the filesystem makes files only so
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640))
    except OSError as error:
        raise MountError(error.strerror or str(error), action=f"writing {path}", subject=path) from error
    return new


#: The pod whose marker was written last, and where that is.
_last_marker = "", ""


def _link_to_last_marker(pod_uid: str, path: str) -> bool:
    """Give the marker of another volume of the pod a second name: see :func:`mark_ready`. Whether that is done."""
    global _last_marker
    (pod, marker), _last_marker = _last_marker, (pod_uid, path)
    if pod != pod_uid:
        return False
    try:
        os.link(marker, path, follow_symlinks=False)
    except OSError:  # that one has gone, say
        return False
    return True


def has_on_mount_marker(place: VolumePlace) -> bool:
    """Whether it was recorded."""
    return os.path.lexists(f"{place.meta_dir}/{ON_MOUNT_FILE}")


def mark_ready(place: VolumePlace) -> None:
    """Record that mode and ownership were applied.

    All markers are empty files, so where there is one a second name for it will do: on a disk that takes a quarter of
    the time of a new file.
    """
    try:
        os.link(f"{place.meta_dir}/{ON_MOUNT_FILE}", f"{place.meta_dir}/{READY_FILE}")
    except OSError:
        set_ready(place.meta_dir)
