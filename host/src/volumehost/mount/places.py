"""Looks at paths of the host without ever hanging on one of them; everything in this room that would stat uses it.

A lookup that the kernel can answer from its cache costs a few microseconds in the caller's thread; one that would have
to ask a disk, a server or a daemon runs under a deadline (BR-52).
"""

from __future__ import annotations

import errno
import functools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

from volumehost.errors import VolumeHostError
from volumehost.mount import syscalls
from volumehost.mount.deadline import DeadlineExceededError, DeadlineRunner

T = TypeVar("T")

#: How long a path may take to answer, in seconds.
ANSWER_SECONDS: Final = 5.0

#: Filesystems in which the kernel itself, or a local disk, answers: a stat of their root cannot hang on a peer.
LOCAL_FS_TYPES: Final = frozenset(
    {
        *("autofs", "binfmt_misc", "bpf", "btrfs", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs"),
        *("efivarfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hugetlbfs", "iso9660", "mqueue", "nsfs"),
        *("overlay", "proc", "pstore", "ramfs", "rootfs", "securityfs", "selinuxfs", "squashfs", "sysfs", "tmpfs"),
        *("tracefs", "udf", "vfat", "xfs", "zfs"),
    }
)

_CACHED: Final = syscalls.OpenPath(syscalls.RESOLVE_CACHED)
_CACHED_WITHOUT_LINKS: Final = syscalls.OpenPath(syscalls.RESOLVE_CACHED | syscalls.RESOLVE_NO_SYMLINKS)
# Even a lookup in the kernel's cache asks the server again when it ends at the root of one of these.
_REVALIDATING: Final = (b"nfs", b"9p")
_KNOWN_FILESYSTEMS: Final = "/proc/filesystems"
_STATX_FLAGS: Final = syscalls.AT_STATX_DONT_SYNC | syscalls.AT_NO_AUTOMOUNT | syscalls.AT_EMPTY_PATH
_STATX_MASK: Final = (
    syscalls.STATX_TYPE
    | syscalls.STATX_MODE
    | syscalls.STATX_UID
    | syscalls.STATX_GID
    | syscalls.STATX_INO
    | syscalls.STATX_MNT_ID_UNIQUE
)


class Place(NamedTuple):
    """What the kernel says about a path: the file there, whether it is the root of a mount, and of which type.

    ``mount_root`` is None where the kernel cannot tell; ``fs_type`` is "" where it is not known or not a mount root.
    """

    stat: syscalls.Statx
    mount_root: bool | None
    fs_type: str

    @property
    def local(self) -> bool:
        """Whether the filesystem mounted here is known to answer without a peer."""
        return self.fs_type in LOCAL_FS_TYPES


#: For how many seconds what was found is still there: no longer than it may take from the question to the next call.
_MOMENT: Final = 0.005
_NOT_CHECKED: Final = "", Place(syscalls.Statx(0, 0, 0, 0, (0, 0), None, None, False), None, ""), 0.0


class Places:
    """Looks at places, each within ``answer_seconds``.

    :param known_filesystems: where the kernel lists the filesystems it knows; for tests.
    """

    def __init__(
        self,
        runner: DeadlineRunner | None = None,
        *,
        answer_seconds: float = ANSWER_SECONDS,
        known_filesystems: str = _KNOWN_FILESYSTEMS,
    ) -> None:
        self._runner = runner if runner is not None else DeadlineRunner()
        self._answer_seconds = answer_seconds
        self._known_filesystems = known_filesystems
        #: The mounts in which something did not answer: path, which ends in a slash, to mount id.
        self._silent: dict[str, int] = {}
        self._cached_lookups = True
        #: What was checked last, what was there, and when.
        self._checked = _NOT_CHECKED
        self._checked_filesystems = float("-inf")
        self._revalidating = True

    def look(self, path: str, *, follow: bool = True) -> Place:
        """Look at what lies at the path, asking no server or daemon about it.

        :param follow: whether a symbolic link at the end of the path is followed.
        :raises OSError: the path cannot be reached.
        :raises DeadlineExceededError: a directory on the way does not answer.
        """
        return self.without_hanging(_look, path, follow, what="look at", path=path)

    def has_mount(self, path: str) -> bool | None:
        """Whether the path is the root of a mount, None where the kernel cannot tell; asks nobody about the mount.

        :raises OSError: the path cannot be reached.
        :raises DeadlineExceededError: a directory on the way does not answer.
        """
        return self.without_hanging(_has_mount, path, what="look at", path=path)

    def resolve(self, path: str) -> str:
        """The path with every link resolved; OSError when something on it does not exist."""
        return self.without_hanging(_resolve, path, what="resolve", path=path)

    def ask(self, path: str) -> os.stat_result:
        """Stat the path for real, so that a server or daemon has to answer.

        :raises OSError: it answers with an error.
        :raises DeadlineExceededError: it does not answer.
        """
        return self.under_deadline(os.stat, path, what=f"stat {path}")

    def check(self, path: str) -> Place:
        """Look at the path, and make it answer if it is a mount of something that may be dead.

        :raises OSError: it cannot be reached, or answers with an error.
        :raises DeadlineExceededError: it does not answer.
        """
        place = self.look(path)
        if place.mount_root and not place.local:
            self.ask(path)
        self._checked = path, place, time.monotonic()
        return place

    def look_or_recall(self, path: str) -> Place:
        """What :meth:`check` has just found there, the first time, else look.

        Who takes a mount away has asked about it before.

        :raises OSError: the path cannot be reached.
        :raises DeadlineExceededError: a directory on the way does not answer.
        """
        (checked, place, at), self._checked = self._checked, _NOT_CHECKED
        return place if checked == path and time.monotonic() - at < _MOMENT else self.look(path)

    def under_deadline(self, function: Callable[..., T], path: str, *args: Any, what: str) -> T:
        """``function(path, *args)``, which may touch something that does not answer.

        :raises DeadlineExceededError: it did not come back.
        """
        return self._ask(function, path, *args, timeout=self._answer_seconds, what=what, path=path)

    def exists(self, path: str) -> bool:
        """Whether the path exists, links followed; a dead mount is an error, not an absence (MOUNT-40).

        :raises OSError: it is there, but cannot be looked at: ESTALE also where a server says "not found" for
            something that can still be reached (seen on CIFS).
        """
        try:
            self.check(path)
        except (FileNotFoundError, NotADirectoryError):
            if self.under_deadline(os.access, path, os.F_OK, what=f"access {path}"):
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path) from None
            return False
        return True

    def without_hanging(
        self, function: Callable[..., T], *args: Any, what: str, path: str, timeout: float | None = None
    ) -> T:
        """``function(*args, resolve)`` with RESOLVE_CACHED here if that is enough, else with 0 under a deadline.

        :param function: raises EAGAIN for what it cannot do with RESOLVE_CACHED.
        :param timeout: in seconds, in place of the usual one.
        """
        if self.cached_lookups_are_safe():
            try:
                return function(*args, syscalls.RESOLVE_CACHED)
            except OSError as error:
                if error.errno == errno.ENOSYS or (error.errno == errno.EINVAL and not _resolve_cached_works()):
                    self._cached_lookups = False
                elif error.errno != errno.EAGAIN:
                    raise
        seconds = self._answer_seconds if timeout is None else timeout
        return self._ask(function, *args, 0, timeout=seconds, what=f"{what} {path}", path=path)

    def _ask(self, function: Callable[..., T], *args: Any, timeout: float, what: str, path: str) -> T:
        """Under the deadline. Of a mount that does not answer, one question is under way at a time, whatever it is."""
        silent = self._silent_mount(path) if self._silent else ""
        answered = True
        try:
            return self._runner.run(
                function,
                *args,
                timeout=timeout,
                what=what,
                about=silent,
                when_stuck=lambda: silent or self._has_not_answered(path, what),
            )
        except DeadlineExceededError:
            answered = False
            raise
        finally:
            if silent and answered:
                self._silent.pop(silent.partition("\0")[0], None)

    def _has_not_answered(self, path: str, what: str) -> str:
        """Remember the mount that the path leads into; what calls about it are known by."""
        for place, number in _mount_that_may_hang(path).items():
            self._silent[place] = number
            return f"{place}\0{number}"
        return what

    def _silent_mount(self, path: str) -> str:
        """The mount around the path that did not answer, if it is still the one that is mounted there."""
        for place, number in list(self._silent.items()):
            if f"{path}/".startswith(place):
                if number == _mount_that_may_hang(path).get(place):
                    return f"{place}\0{number}"
                self._silent.pop(place, None)
        return ""

    def cached_lookups_are_safe(self) -> bool:
        """Whether a lookup with RESOLVE_CACHED cannot hang: the kernel has it, and no filesystem that undermines it."""
        if not self._cached_lookups:
            return False
        # A module of a network filesystem is loaded long before a server of it can have died: look once a second.
        now = time.monotonic()
        if now - self._checked_filesystems > 1.0:
            try:
                with open(self._known_filesystems, "rb") as file:
                    known = file.read()
            except OSError:
                known = b"nfs"
            self._revalidating = any(name in known for name in _REVALIDATING)
            self._checked_filesystems = now
        return not self._revalidating


def _mount_that_may_hang(path: str) -> dict[str, int]:
    """The mount that the path leads into by its names, unless it is one of a local disk: its path/, and its id."""
    from volumehost.mount.mountinfo import read_mount_table

    try:
        around = [mount for mount in read_mount_table() if f"{path}/".startswith(f"{mount.path.rstrip('/')}/")]
    except (OSError, VolumeHostError):
        return {}
    nearest = max(reversed(around), key=lambda mount: len(mount.path), default=None)
    if nearest is None or nearest.fs_type in LOCAL_FS_TYPES:
        return {}
    return {f"{nearest.path.rstrip('/')}/": nearest.mount_id}


@functools.cache
def shared_places() -> Places:
    """The process's own, for callers without a mounter: what it knows of the kernel is found out once."""
    return Places()


def open_place(path: str, resolve: int, *, follow: bool = True) -> int:
    """A path-only descriptor of what lies at the path; the caller closes it.

    :param resolve: RESOLVE flags of openat2(2); 0 works on any kernel.
    :param follow: whether a symbolic link at the end of the path is followed.
    """
    flags = os.O_PATH if follow else os.O_PATH | os.O_NOFOLLOW
    if resolve == syscalls.RESOLVE_CACHED and follow:
        fd = _CACHED.open(syscalls.AT_FDCWD, path)
        if fd >= 0:
            return fd
    if resolve:
        try:
            return syscalls.openat2(syscalls.AT_FDCWD, path, flags, resolve)
        except BlockingIOError:
            # Also when anybody on the machine mounted or renamed something during a lookup in the kernel's cache.
            return syscalls.openat2(syscalls.AT_FDCWD, path, flags, resolve)
    return os.open(path, flags | os.O_CLOEXEC)


@contextmanager
def opened_place(path: str, resolve: int) -> Iterator[int]:
    """``open_place`` as a context."""
    fd = open_place(path, resolve)
    try:
        yield fd
    finally:
        os.close(fd)


def look_at_fd(fd: int) -> Place:
    """What the kernel says about an open descriptor, a path-only one too."""
    stat = syscalls.statx(fd, "", _STATX_FLAGS, _STATX_MASK)
    fs_type = ""
    if stat.mount_root and stat.unique_id and stat.mount_id is not None:
        try:
            fs_type = syscalls.mount_fs_type(stat.mount_id)
        except OSError:
            fs_type = ""  # an older kernel, or unmounted in the meantime: not known to be local
    return Place(stat, stat.mount_root, fs_type)


def _look(path: str, follow: bool, resolve: int) -> Place:
    fd = open_place(path, resolve, follow=follow)
    try:
        return look_at_fd(fd)
    finally:
        os.close(fd)


def _has_mount(path: str, resolve: int) -> bool | None:
    fd = open_place(path, resolve)
    try:
        return syscalls.statx(fd, "", _STATX_FLAGS, syscalls.STATX_INO).mount_root
    finally:
        os.close(fd)


def _resolve(path: str, resolve: int) -> str:
    if resolve and _is_clean(path):
        # Nearly always there is no link on the way. To ask the kernel how it calls the place takes as long again.
        fd = _CACHED_WITHOUT_LINKS.open(syscalls.AT_FDCWD, path)
        if fd >= 0:
            os.close(fd)
            return path
    with opened_place(path, resolve) as fd:
        resolved = os.readlink(f"/proc/thread-self/fd/{fd}")
    if resolved.startswith("/") and not resolved.endswith(" (deleted)"):
        return resolved
    # A name that ends like the kernel's mark for deleted files, a pipe, a place outside of this root.
    if resolve:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
    return os.path.realpath(path, strict=True)


def _is_clean(path: str) -> bool:
    """Whether the path is absolute and has no parts that lead nowhere; one with a hidden directory may not count."""
    return path[:1] == "/" and path[-1:] != "/" and "//" not in path and "/." not in path


def _resolve_cached_works() -> bool:
    try:
        os.close(open_place("/", syscalls.RESOLVE_CACHED))
    except OSError as error:
        return error.errno == errno.EAGAIN
    return True
