"""Answers whether something is mounted exactly at a path, in a few microseconds and without waiting for the mount.

Used by the mounter, by the removal and clean-up of directories, and by the node's reconciler. The kernel's mount-root
attribute sees bind mounts too (MOUNT-30); what may block, a stopped daemon or a dead server, runs under a deadline.
"""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass
from typing import Final

from volumehost.errors import CorruptedMountError
from volumehost.mount import syscalls
from volumehost.mount.corrupted import CORRUPTED_ERRNOS
from volumehost.mount.deadline import DeadlineExceededError, DeadlineRunner
from volumehost.mount.mountinfo import read_mount_table

#: How long a mount may take to answer a stat before it counts as corrupted, in seconds.
ANSWER_SECONDS: Final = 5.0

#: Filesystems in which the kernel itself, or a local disk, answers: a stat of their root cannot hang on a peer.
LOCAL_FS_TYPES: Final = frozenset(
    {
        "autofs",
        "binfmt_misc",
        "bpf",
        "btrfs",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "efivarfs",
        "erofs",
        "exfat",
        "ext2",
        "ext3",
        "ext4",
        "f2fs",
        "hugetlbfs",
        "iso9660",
        "mqueue",
        "nsfs",
        "overlay",
        "proc",
        "pstore",
        "ramfs",
        "rootfs",
        "securityfs",
        "selinuxfs",
        "squashfs",
        "sysfs",
        "tmpfs",
        "tracefs",
        "udf",
        "vfat",
        "xfs",
        "zfs",
    }
)

# Even a look-up in the kernel's cache asks the server again when it ends at the root of one of these.
_REVALIDATING: Final = (b"nfs", b"9p")
_KNOWN_FILESYSTEMS: Final = "/proc/filesystems"
_FLAGS: Final = syscalls.AT_STATX_DONT_SYNC | syscalls.AT_NO_AUTOMOUNT | syscalls.AT_EMPTY_PATH
_MASK: Final = syscalls.STATX_TYPE | syscalls.STATX_INO | syscalls.STATX_MNT_ID_UNIQUE


@dataclass(frozen=True, slots=True)
class Place:
    """What the kernel says about a path: the file there and the mount that it belongs to.

    ``mount_root`` is None where the kernel cannot tell; ``fs_type`` is "" where it is not known.
    """

    stat: syscalls.Statx
    mount_root: bool | None
    fs_type: str

    @property
    def local(self) -> bool:
        """Whether the filesystem is known to answer without a peer."""
        return self.fs_type in LOCAL_FS_TYPES


class MountPoints:
    """Looks at places without ever hanging on one of them."""

    def __init__(self, runner: DeadlineRunner, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._runner = runner
        self._answer_seconds = answer_seconds
        self._cached_lookups = True
        self._checked_filesystems = float("-inf")
        self._revalidating = True

    def look(self, path: str) -> Place:
        """Look at what is mounted at, or lies at, the path (links followed), asking no server or daemon.

        :raises OSError: the path cannot be reached.
        :raises DeadlineExceededError: a directory on the way does not answer.
        """
        if self._cached_lookups and not self._may_revalidate():
            try:
                return _look(path, syscalls.RESOLVE_CACHED)
            except OSError as error:
                if error.errno in {errno.ENOSYS, errno.EINVAL}:
                    self._cached_lookups = False
                elif error.errno != errno.EAGAIN:
                    raise
        return self._runner.run(_look, path, 0, timeout=self._answer_seconds, what=f"look at {path}")

    def is_mount_point(self, path: str) -> bool:
        """Whether something is mounted exactly there (MOUNT-31, -32).

        :raises FileNotFoundError: the path does not exist.
        :raises CorruptedMountError: it is a mount point, and the mount does not answer (MOUNT-41).
        :raises OSError: the path cannot be looked at for another reason.
        """
        try:
            place = self.look(path)
        except DeadlineExceededError as error:
            raise self._corrupted(path, str(error), errno.ETIMEDOUT) from error
        except PermissionError:
            return self._in_table(path)
        except OSError as error:
            if error.errno in CORRUPTED_ERRNOS:
                raise self._corrupted(path, os.strerror(error.errno), error.errno) from error
            raise
        if place.mount_root is None:
            return self._in_table(path)
        if place.mount_root and not place.local:
            self._ask(path)
        return place.mount_root

    def is_likely_not_mount_point(self, path: str) -> bool:
        """The quick test, negated (MOUNT-30): misses bind mounts only on kernels before 5.8.

        :raises OSError: the path cannot be looked at.
        """
        place = self.look(path)
        if place.mount_root is not None:
            return not place.mount_root
        parent = self.look(os.path.join(path, ".."))
        return place.stat.device == parent.stat.device and place.stat.inode != parent.stat.inode

    def _ask(self, path: str) -> None:
        """Make the mount at the path answer; raises what the class promises when it does not."""
        try:
            self._runner.run(os.stat, path, timeout=self._answer_seconds, what=f"stat {path}")
        except DeadlineExceededError as error:
            raise self._corrupted(path, str(error), errno.ETIMEDOUT) from error
        except OSError as error:
            if isinstance(error, PermissionError) or error.errno not in CORRUPTED_ERRNOS:
                return
            raise self._corrupted(path, os.strerror(error.errno), error.errno) from error

    def _in_table(self, path: str) -> bool:
        resolved = self._runner.run(os.path.realpath, path, timeout=self._answer_seconds, what=f"resolve {path}")
        deleted = resolved + "//deleted"
        return any(entry.path in {resolved, deleted} for entry in read_mount_table())

    def _may_revalidate(self) -> bool:
        # A module of a network filesystem is loaded long before a server of it can have died: look once a second.
        now = time.monotonic()
        if now - self._checked_filesystems > 1.0:
            try:
                with open(_KNOWN_FILESYSTEMS, "rb") as file:
                    known = file.read()
            except OSError:
                known = b"nfs"
            self._revalidating = any(name in known for name in _REVALIDATING)
            self._checked_filesystems = now
        return self._revalidating

    @staticmethod
    def _corrupted(path: str, reason: str, number: int) -> CorruptedMountError:
        return CorruptedMountError(
            f"the mount does not answer: {reason}",
            action=f"look at the mount point {path}",
            subject=path,
            hint="its server or daemon is gone; it has to be unmounted and mounted again",
            errno=number,
        )


def is_mount_point(path: str) -> bool:
    """``MountPoints.is_mount_point`` for callers that have no mounter."""
    return MountPoints(DeadlineRunner()).is_mount_point(path)


def _look(path: str, resolve: int) -> Place:
    if resolve:
        fd = syscalls.openat2(syscalls.AT_FDCWD, path, os.O_PATH, resolve)
    else:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        stat = syscalls.statx(fd, "", _FLAGS, _MASK)
    finally:
        os.close(fd)
    fs_type = ""
    if stat.mount_root and stat.unique_id and stat.mount_id is not None:
        try:
            fs_type = syscalls.mount_fs_type(stat.mount_id)
        except OSError:
            fs_type = ""  # an older kernel, or unmounted in the meantime: not known to be local
    return Place(stat=stat, mount_root=stat.mount_root, fs_type=fs_type)
