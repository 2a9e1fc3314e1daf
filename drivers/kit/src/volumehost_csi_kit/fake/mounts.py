"""What a fake driver does on the node: nothing, directories only, or real mounts by plain system calls."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import subprocess
from typing import Literal

from volumehost_csi_kit.server.errors import FailedPreconditionError, InternalError

MountMode = Literal["none", "mkdir", "bind"]

MS_RDONLY = 1
MS_REMOUNT = 32
MS_BIND = 4096
_UMOUNT_NOFOLLOW = 8

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, fs_type: str = "", flags: int = MS_BIND, data: str = "") -> None:
    """Mount by the system call; a bind mount unless told otherwise.

    :raises OSError: the kernel's answer.
    """
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), fs_type.encode() or None, ctypes.c_ulong(flags), data.encode() or None
    )
    if result != 0:
        _raise(target)


def unmount(target: str) -> bool:
    """umount2(2) the topmost mount at ``target``; False when nothing is mounted there.

    :raises OSError: the kernel's answer, when it is busy say.
    """
    if _libc.umount2(os.fsencode(target), _UMOUNT_NOFOLLOW) == 0:
        return True
    if ctypes.get_errno() in (errno.EINVAL, errno.ENOENT):
        return False
    _raise(target)
    return False


def _raise(path: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), path)


def make_target(target: str, *, block: bool) -> None:
    """The last component of a publish target: a directory, or a file for a block volume. Its parent must be there."""
    try:
        if block:
            os.close(os.open(target, os.O_CREAT | os.O_CLOEXEC, 0o640))
        else:
            with contextlib.suppress(FileExistsError):
                os.mkdir(target, 0o750)
    except FileNotFoundError as error:
        raise FailedPreconditionError(f"target_path: the parent of {target} is not there") from error


def remove_target(target: str, *, mounted: bool) -> None:
    """Remove what :func:`make_target` made, with all that is mounted there if anything can be."""
    while mounted and unmount(target):
        pass
    with contextlib.suppress(FileNotFoundError):
        try:
            os.rmdir(target)
        except NotADirectoryError:
            os.unlink(target)


def backing_file(path: str, size_bytes: int) -> str:
    """The file behind a block volume, made or grown to at least this size."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_size < size_bytes:
            os.ftruncate(descriptor, size_bytes)
    finally:
        os.close(descriptor)
    return path


def loop_device(backing: str) -> str:
    """A loop device for the file: the one it has, or a new one."""
    return attached_loop_device(backing) or _losetup("--find", "--show", backing)


def attached_loop_device(backing: str) -> str:
    """The loop device that the file has; "" for none."""
    return _losetup("--associated", backing, "--output", "NAME", "--noheadings").split("\n")[0].strip()


def detach_loop_device(backing: str) -> None:
    """Give the file's loop device back."""
    if device := attached_loop_device(backing):
        _losetup("--detach", device)


def grow_loop_device(backing: str) -> None:
    """Let the loop device see that its file has grown."""
    if device := attached_loop_device(backing):
        _losetup("--set-capacity", device)


def _losetup(*arguments: str) -> str:
    done = subprocess.run(["losetup", *arguments], capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise InternalError(f"losetup {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()
