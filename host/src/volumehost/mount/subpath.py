"""LinuxSubpather: gives containers a part of a volume, safe against whoever can write to the volume (SUBPATH rules).

Handed to the code that prepares a container's mounts. What the volume's users can change is walked by descriptors and
bound from a descriptor, so that nothing they swap in between is followed (BR-71).
"""

from __future__ import annotations

import contextlib
import errno
import functools
import logging
import os
import stat
from collections.abc import Callable
from typing import Any, Final, TypeVar

from volumehost.errors import MountError, RemovalError, UnsafePathError, VolumeHostError
from volumehost.host_services import MountInterface, Subpath
from volumehost.mount.cleanup import cleanup_mount_point
from volumehost.mount.deadline import DeadlineExceededError, DeadlineRunner
from volumehost.mount.places import Places, look_at_fd
from volumehost.mount.refs import path_within_base
from volumehost.mount.safe_path import (
    check_relative,
    make_dirs_beneath,
    open_base,
    open_beneath,
    open_existing_prefix,
    open_inside,
    path_of,
    resolved_within,
)
from volumehost.mount.turns import Turns

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: The directory of a pod that holds the subpaths of its volumes (SUBPATH-22).
SUBPATH_DIRECTORY: Final = "volume-subpaths"
_STACKED: Final = 16  # mounts stacked on one place that are taken away before giving up
_DIR_MODE: Final = 0o750
_FILE_MODE: Final = 0o640
_PERMISSIONS: Final = 0o7777


class LinuxSubpather:
    """Prepares and cleans subpaths.

    :param seconds: how long one call may take: the volume may be on a server that does not answer.
    """

    def __init__(self, mounter: MountInterface, *, runner: DeadlineRunner | None = None, seconds: float = 60.0) -> None:
        self._mounter = mounter
        self._runner = runner if runner is not None else _shared_runner()
        self._places = Places(self._runner)
        self._seconds = seconds

    # --- creating -----------------------------------------------------------------------------------------

    def safe_make_dir(self, subdir: str, base: str, mode: int) -> None:
        """Create ``base/subdir`` without ever leaving ``base`` (SUBPATH-10 to -17).

        :param mode: of every level that is created, exact, with setuid, setgid and sticky bits.
        :raises UnsafePathError: the path leads outside, or was tampered with.
        :raises NotADirectoryError: it exists and is no directory.
        :raises OSError: it cannot be created.
        """
        self._within_deadline(_safe_make_dir, subdir, base, mode & _PERMISSIONS, what=f"create {subdir} in {base}")

    def prepare_safe_subpath(self, subpath: Subpath) -> str:
        """Bind the subpath to a place that the container cannot change; returns that place (SUBPATH-20 to -29).

        It stays until ``clean_sub_paths``. Repeating the call for the same subpath changes nothing.

        :raises UnsafePathError: the subpath leads out of the volume, or was tampered with.
        :raises OSError: the subpath does not exist.
        :raises MountError: the bind mount failed; nothing is left behind.
        """
        what = f"open subpath {subpath.path} of volume {subpath.volume_name}"
        fd = self._within_deadline(_open_subpath, subpath.path, subpath.volume_path, what=what, discard=os.close)
        try:
            return self._bind(fd, subpath)
        finally:
            os.close(fd)

    def _bind(self, fd: int, subpath: Subpath) -> str:
        target = _target(subpath)
        try:
            with _shared_turns().taken(target, self._seconds):
                return self._bind_in_turn(fd, target, subpath)
        except TimeoutError as error:
            raise MountError(str(error), action=_action(subpath), subject=target, errno=errno.ETIMEDOUT) from error

    def _bind_in_turn(self, fd: int, target: str, subpath: Subpath) -> str:
        if self._reuse_or_clear(fd, target):
            return target
        try:
            _make_target(target, subpath.pod_dir, is_directory=stat.S_ISDIR(look_at_fd(fd).stat.mode))
            # The kernel resolves this to the open file itself. The number is this process's, not "self": a mount
            # program would have a process of its own.
            source = f"/proc/{os.getpid()}/fd/{fd}"
            self._mounter.mount(source, target, "", ["bind"], mount_flags=["--no-canonicalize"], systemd=False)
            if not self._shows(target, fd):
                raise MountError("another file than the subpath was bound", action=_action(subpath), subject=target)
        except (VolumeHostError, OSError):
            self._undo(target, subpath.pod_dir)
            raise
        logger.debug("bound a subpath of volume %s at %s", subpath.volume_name, target)
        return target

    def _reuse_or_clear(self, fd: int, target: str) -> bool:
        """Whether the target shows the subpath already; anything else that is mounted there goes (SUBPATH-22)."""
        try:
            if not self._mounter.is_mount_point(target):
                return False
            if self._shows(target, fd):
                return True
        except FileNotFoundError:
            return False
        except MountError as error:
            logger.warning("the old subpath at %s is dead and is replaced: %s", target, error)
        for _ in range(_STACKED):
            self._mounter.unmount(target)
            if self._places.look(target, follow=False).mount_root is not True:
                return False
        raise MountError("more is mounted there than can be taken away", action=f"clear {target}", subject=target)

    def _shows(self, target: str, fd: int) -> bool:
        """Whether the very file or directory of the descriptor is mounted at the target."""
        there, here = self._places.look(target, follow=False).stat, look_at_fd(fd).stat
        return (there.device, there.inode) == (here.device, here.inode)

    def _undo(self, target: str, pod_dir: str) -> None:
        try:
            cleanup_mount_point(target, self._mounter, extensive=True)
            remove_empty_dirs(pod_dir, os.path.dirname(target))
        except (VolumeHostError, OSError):
            logger.exception("cleaning up after a failed subpath at %s failed too", target)

    # --- cleaning -----------------------------------------------------------------------------------------

    def clean_sub_paths(self, pod_dir: str, volume_name: str) -> None:
        """Unmount and remove all subpaths of a volume; success when there are none (SUBPATH-30 to -35).

        Never descends into a subpath: it can be the whole volume.

        :raises VolumeHostError: something is still in use or in the way; what else can be cleaned is.
        """
        check_name(volume_name, "volume name")
        top = os.path.join(pod_dir, SUBPATH_DIRECTORY)
        directory = os.path.join(top, volume_name)
        try:
            containers = _list(directory)
        except FileNotFoundError:
            return
        except OSError as error:
            raise RemovalError(
                error.strerror or str(error), action=f"clean the subpaths in {directory}", subject=directory
            ) from error
        failures: list[VolumeHostError] = []
        for name in containers:
            failures += self._clean_container(os.path.join(directory, name))
        if failures:
            raise _first_of(failures)
        _rmdir(directory)
        _rmdir_unless_used(top)

    def _clean_container(self, container: str) -> list[VolumeHostError]:
        failures: list[VolumeHostError] = []
        try:
            names = _list(container)
        except OSError:
            # A stray file, a stale handle: passed over, it makes the removal of the directory fail (SUBPATH-32).
            return failures
        for name in names:
            try:
                # First-level entries only; one call takes one of several mounts stacked there (MOUNT-54).
                cleanup_mount_point(os.path.join(container, name), self._mounter, extensive=True)
            except VolumeHostError as error:
                failures.append(error)
        if not failures:
            _rmdir(container)
        return failures

    def _within_deadline(
        self, function: Callable[..., T], *args: Any, what: str, discard: Callable[[T], object] | None = None
    ) -> T:
        try:
            return self._runner.run(function, *args, timeout=self._seconds, what=what, discard=discard)
        except DeadlineExceededError as error:
            raise MountError(
                str(error), action=what, errno=errno.ETIMEDOUT, hint="the server or daemon of the volume may be gone"
            ) from error


@functools.cache
def _shared_runner() -> DeadlineRunner:
    """The process's own: what is stuck counts together, whoever asked."""
    return DeadlineRunner()


@functools.cache
def _shared_turns() -> Turns:
    """The process's own: two who prepare the same subpath would mount twice."""
    return Turns()


def check_name(name: str, what: str) -> None:
    """Refuse a name that is not one path component.

    :raises UnsafePathError: it is empty, ``.`` or ``..``, or holds a slash or NUL.
    """
    if name in {"", ".", ".."} or "/" in name or "\0" in name:
        raise UnsafePathError(f"it is not usable as a directory name: {name!r}", action=f"use the {what}", subject=name)


def remove_empty_dirs(base: str, end: str) -> None:
    """Remove ``end`` and its parents up to, without, ``base``, as long as they are empty (SUBPATH-34).

    :raises UnsafePathError: ``end`` does not lie in ``base``.
    :raises RemovalError: one is no directory, or cannot be removed.
    """
    base, end = os.path.normpath(base), os.path.normpath(end)
    if not path_within_base(end, base):
        raise UnsafePathError(
            f"it does not lie in {base}", action=f"remove empty directories up from {end}", subject=end
        )
    while end != base:
        try:
            os.rmdir(end)
        except FileNotFoundError:
            pass
        except OSError as error:
            # Not empty; FileExistsError does not cover ENOTEMPTY.
            if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
                return
            raise RemovalError(
                error.strerror or str(error), action=f"remove {end}", subject=end, paths=[end]
            ) from error
        end = os.path.dirname(end)


def _target(subpath: Subpath) -> str:
    check_name(subpath.volume_name, "volume name")
    check_name(subpath.container_name, "container name")
    index = str(int(subpath.volume_mount_index))
    return os.path.join(subpath.pod_dir, SUBPATH_DIRECTORY, subpath.volume_name, subpath.container_name, index)


def _action(subpath: Subpath) -> str:
    return f"prepare subpath {subpath.path} of volume {subpath.volume_name} for container {subpath.container_name}"


def _open_subpath(path: str, volume_path: str) -> int:
    """A path-only descriptor of the subpath: where links lead is decided once, by the kernel where it can.

    Otherwise the path is resolved, and then opened without any link: what was changed meanwhile is refused.
    """
    full = os.path.join(volume_path, path)
    base_fd = open_base(volume_path)
    try:
        relative = os.path.relpath(full, volume_path)
        # A ".." after a link leads elsewhere than its text says.
        fd = open_inside(base_fd, relative) if ".." not in full.split("/") else None
        return fd if fd is not None else open_beneath(base_fd, resolved_within(full, volume_path))
    finally:
        os.close(base_fd)


def _make_parents(directory: str, pod_dir: str) -> None:
    """Each level with its mode: makedirs() applies one to the last level only."""
    os.makedirs(pod_dir, _DIR_MODE, exist_ok=True)
    current = pod_dir
    for name in os.path.relpath(directory, pod_dir).split("/"):
        current = os.path.join(current, name)
        with contextlib.suppress(FileExistsError):
            os.mkdir(current, _DIR_MODE)


def _make_target(target: str, pod_dir: str, *, is_directory: bool) -> None:
    """Something to mount on, a directory or a file. The other kind may be there from what the subpath was before."""
    _make_parents(os.path.dirname(target), pod_dir)
    try:
        found = os.lstat(target)
    except FileNotFoundError:
        pass
    else:
        if stat.S_ISDIR(found.st_mode) == is_directory:
            return
        (os.rmdir if stat.S_ISDIR(found.st_mode) else os.unlink)(target)
    if is_directory:
        os.mkdir(target, _DIR_MODE)
    else:
        # A file serves files, sockets, devices and FIFOs alike.
        flags = os.O_CREAT | os.O_EXCL | os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(target, flags, _FILE_MODE))


def _safe_make_dir(subdir: str, base: str, mode: int) -> None:
    components = check_relative(os.path.normpath(subdir.lstrip("/") or "."))
    base_fd = open_base(base)
    try:
        prefix_fd, existing = open_existing_prefix(base_fd, components)
        try:
            _make_below(base_fd, prefix_fd, components[existing:], mode)
        finally:
            os.close(prefix_fd)
    finally:
        os.close(base_fd)


def _make_below(base_fd: int, prefix_fd: int, missing: list[str], mode: int) -> None:
    if not stat.S_ISDIR(os.fstat(prefix_fd).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path_of(prefix_fd))
    if not missing:
        # Where it leads is decided when it is bound: an answer given now would not last (SUBPATH-11).
        return
    base, prefix = path_of(base_fd), path_of(prefix_fd)
    if not path_within_base(prefix, base):
        raise UnsafePathError(f"it leads to {prefix}, outside of {base}", action=f"create a directory in {base}")
    parent_fd = open_beneath(base_fd, os.path.relpath(prefix, base))
    try:
        make_dirs_beneath(parent_fd, missing, mode)
    finally:
        os.close(parent_fd)


def _list(directory: str) -> list[str]:
    """Names in a directory of the host's own, links to elsewhere refused."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return sorted(os.listdir(fd))
    finally:
        os.close(fd)


def _rmdir(directory: str) -> None:
    try:
        os.rmdir(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise RemovalError(
            error.strerror or str(error),
            action=f"remove the subpath directory {directory}",
            subject=directory,
            hint="something that is not ours lies in it" if error.errno == errno.ENOTEMPTY else "",
            paths=[directory],
        ) from error


def _rmdir_unless_used(directory: str) -> None:
    try:
        os.rmdir(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise RemovalError(
                error.strerror or str(error), action=f"remove {directory}", subject=directory, paths=[directory]
            ) from error


def _first_of(failures: list[VolumeHostError]) -> VolumeHostError:
    first, *others = failures
    for other in others:
        first.add_note(f"also: {other}")
    return first
