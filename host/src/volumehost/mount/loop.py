"""Loop devices by their own ioctls: attach a file as a block device, find it again, let go of it (BLOCK-07).

Called by the block path code, which locks devices with them, and by drivers whose volumes are files.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import stat
import struct
import time
from dataclasses import dataclass
from typing import Final, NamedTuple

from volumehost.errors import MountError

logger = logging.getLogger(__name__)

_CONTROL: Final = "/dev/loop-control"
_SYS_BLOCK: Final = "/sys/block"
_LOOP_SET_FD: Final = 0x4C00
_LOOP_CLR_FD: Final = 0x4C01
_LOOP_SET_STATUS64: Final = 0x4C04
_LOOP_GET_STATUS64: Final = 0x4C05
_LOOP_SET_CAPACITY: Final = 0x4C07
_LOOP_SET_DIRECT_IO: Final = 0x4C08
_LOOP_CONFIGURE: Final = 0x4C0A
_LOOP_CTL_GET_FREE: Final = 0x4C82
_FLAG_READ_ONLY: Final = 1
_FLAG_AUTOCLEAR: Final = 4
_FLAG_DIRECT_IO: Final = 16
# device, inode, rdevice, offset, size limit; number, encrypt type, key size, flags; file name, crypt name, key, init
_INFO: Final = struct.Struct("=QQQQQIIII64s64s32sQQ")
_NAME_BYTES: Final = 64
_ATTEMPTS: Final = 64
_DELETED: Final = " (deleted)"


@dataclass(frozen=True, slots=True)
class LoopDevice:
    """An attached loop device: its node, the file behind it as the kernel prints it, and that file's identity.

    ``label`` is what the one who attached it called it: the file's path, unless ``attach`` was given another.
    """

    device: str
    backing_file: str
    file_device: int
    file_inode: int
    offset: int
    read_only: bool
    label: str = ""


def attach(
    backing_file: str,
    *,
    read_only: bool = False,
    direct_io: bool = False,
    autoclear: bool = False,
    offset: int = 0,
    size_limit: int = 0,
    block_size: int = 0,
    label: str = "",
) -> str:
    """Attach a file or block device to a free loop device; the path of the device, such as ``/dev/loop3``.

    A device is never left half attached. Every call takes another device: look with ``find`` first.

    :param autoclear: let go of it by itself when the last user closes it.
    :param offset, size_limit, block_size: in bytes; 0 for the whole file and the default.
    :param label: kept by the kernel with the device, so that its owner knows it again; 63 bytes; the path when empty.
    :raises MountError: it cannot be attached.
    """
    action = f"attach {backing_file} to a loop device"
    flags = _FLAG_READ_ONLY * read_only | _FLAG_DIRECT_IO * direct_io | _FLAG_AUTOCLEAR * autoclear
    info = pack_info(label or backing_file, flags, offset, size_limit)
    try:
        file_fd = os.open(backing_file, (os.O_RDONLY if read_only else os.O_RDWR) | os.O_CLOEXEC)
        try:
            return _attach_to_free(file_fd, info, block_size, read_only)
        finally:
            os.close(file_fd)
    except OSError as error:
        raise MountError(
            error.strerror or str(error), action=action, subject=backing_file, hint=_hint(error), errno=error.errno
        ) from error


def pack_info(name: str, flags: int, offset: int, size_limit: int) -> bytes:
    """The kernel's description of a loop device."""
    shown = os.fsencode(name)[: _NAME_BYTES - 1]
    return _INFO.pack(0, 0, 0, offset, size_limit, 0, 0, 0, flags, shown, b"", b"", 0, 0)


def _attach_to_free(file_fd: int, info: bytes, block_size: int, read_only: bool) -> str:
    for _ in range(_ATTEMPTS):
        control_fd = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
        try:
            number = fcntl.ioctl(control_fd, _LOOP_CTL_GET_FREE)
        finally:
            os.close(control_fd)
        device = f"/dev/loop{number}"
        device_fd = os.open(device, (os.O_RDONLY if read_only else os.O_RDWR) | os.O_CLOEXEC)
        try:
            _configure(device_fd, file_fd, info, block_size)
        except OSError as error:
            # Somebody else took it between the question and the answer.
            if error.errno != errno.EBUSY:
                raise
        else:
            logger.debug("attached %s", device)
            return device
        finally:
            os.close(device_fd)
    raise OSError(errno.EBUSY, f"every free loop device was taken by another process, {_ATTEMPTS} times")


def _configure(device_fd: int, file_fd: int, info: bytes, block_size: int) -> None:
    config = struct.pack("=II", file_fd, block_size) + info + bytes(64)
    try:
        fcntl.ioctl(device_fd, _LOOP_CONFIGURE, config)
    except OSError as error:
        if error.errno not in {errno.ENOTTY, errno.ENOSYS} and not (error.errno == errno.EINVAL and _is_old_kernel()):
            raise
        configure_in_two_steps(device_fd, file_fd, info)


def configure_in_two_steps(device_fd: int, file_fd: int, info: bytes) -> None:
    """For kernels before 5.8; undone when the second step fails."""
    fcntl.ioctl(device_fd, _LOOP_SET_FD, file_fd)
    try:
        fcntl.ioctl(device_fd, _LOOP_SET_STATUS64, info)
    except OSError:
        fcntl.ioctl(device_fd, _LOOP_CLR_FD)
        raise


def _is_old_kernel() -> bool:
    match = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return match is None or (int(match[1]), int(match[2])) < (5, 8)


def detach(device: str, *, timeout: float = 5.0) -> bool:
    """Let go of the file; success when nothing is attached. Whether it is gone now.

    While something has the device open, a mount above all, the kernel only notes the wish, and lets go when the last
    user closes it; programs that look at new devices hold one for a moment, which is waited for.

    :param timeout: in seconds.
    :raises MountError: it cannot be detached.
    """
    try:
        fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise _detach_error(device, error) from error
    try:
        status = _status(fd)
        if status is None:
            return True
        before = (status.file_device, status.file_inode)
        fcntl.ioctl(fd, _LOOP_CLR_FD)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return True
        raise _detach_error(device, error) from error
    finally:
        os.close(fd)
    return _wait_until_free(device, before, timeout)


def _wait_until_free(device: str, before: tuple[int, int], timeout: float) -> bool:
    until = time.monotonic() + timeout
    pause = 0.0005
    while True:
        now = _identity(device)
        # Attached again to another file by somebody else: gone as well.
        if now is None or now != before:
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def _detach_error(device: str, error: OSError) -> MountError:
    return MountError(
        error.strerror or str(error), action=f"detach {device}", subject=device, hint=_hint(error), errno=error.errno
    )


def refresh_capacity(device: str) -> None:
    """Make the device as large as its file has become.

    :raises MountError: it is not attached, or cannot be changed.
    """
    try:
        fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(fd, _LOOP_SET_CAPACITY)
        finally:
            os.close(fd)
    except OSError as error:
        raise MountError(
            error.strerror or str(error), action=f"update the size of {device}", subject=device, errno=error.errno
        ) from error


def set_direct_io(device: str, on: bool) -> None:
    """Let the device read and write its file past the page cache, or through it again.

    :raises MountError: it is not attached, or the file's filesystem cannot do it.
    """
    try:
        fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(fd, _LOOP_SET_DIRECT_IO, int(on))
        finally:
            os.close(fd)
    except OSError as error:
        raise MountError(
            error.strerror or str(error),
            action=f"switch direct I/O of {device} {'on' if on else 'off'}",
            subject=device,
            errno=error.errno,
        ) from error


def is_attached_to(device: str, backing_file: str) -> bool:
    """Whether the device is attached to this very file, whatever it was called when it was attached.

    :raises OSError: the file cannot be looked at.
    """
    status = os.stat(backing_file)
    return _identity(device) == (_kernel_device(status.st_dev), status.st_ino)


def label_of(device: str) -> str:
    """The label that the device was attached with, "" when nothing is attached."""
    status = _open_and_ask(device)
    return status.label if status is not None else ""


def list_attached() -> list[LoopDevice]:
    """All attached loop devices."""
    try:
        names = [name for name in os.listdir(_SYS_BLOCK) if re.fullmatch(r"loop\d+", name)]
    except OSError:
        return []
    found = (_describe(name) for name in sorted(names, key=lambda name: int(name[4:])))
    return [device for device in found if device is not None]


def _describe(name: str) -> LoopDevice | None:
    backing_file = _read(f"{_SYS_BLOCK}/{name}/loop/backing_file")
    status = _open_and_ask(f"/dev/{name}")
    if not backing_file or status is None:
        return None
    return LoopDevice(
        device=f"/dev/{name}",
        backing_file=backing_file.removesuffix(_DELETED),
        file_device=status.file_device,
        file_inode=status.file_inode,
        offset=int(_read(f"{_SYS_BLOCK}/{name}/loop/offset") or 0),
        read_only=_read(f"{_SYS_BLOCK}/{name}/ro") == "1",
        label=status.label,
    )


def find(backing_file: str) -> list[str]:
    """Loop devices of the file, found by its resolved path, and by its identity if it is a regular file (BLOCK-07).

    A block device has one identity under every name, so there the path alone decides.
    """
    resolved = os.path.realpath(backing_file)
    identity: tuple[int, int] | None = None
    try:
        status = os.stat(resolved)
        if stat.S_ISREG(status.st_mode):
            identity = (_kernel_device(status.st_dev), status.st_ino)
    except OSError:
        logger.debug("%s does not exist any more, its loop device is looked for by its path", resolved)
    return [
        loop.device
        for loop in list_attached()
        if (identity == (loop.file_device, loop.file_inode) if identity else loop.backing_file == resolved)
    ]


def get_loop_device(backing_file: str) -> str:
    """The loop device of the file.

    :raises MountError: there is none (``device not found``).
    """
    devices = find(backing_file)
    if not devices:
        raise MountError(
            "device not found",
            action=f"find the loop device of {backing_file}",
            subject=backing_file,
            errno=errno.ENOENT,
        )
    return devices[0]


class _Status(NamedTuple):
    """What the kernel tells of an attached device: the file behind it, and its label."""

    file_device: int
    file_inode: int
    label: str


def _identity(device: str) -> tuple[int, int] | None:
    status = _open_and_ask(device)
    return None if status is None else (status.file_device, status.file_inode)


def _open_and_ask(device: str) -> _Status | None:
    try:
        fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return _status(fd)
    finally:
        os.close(fd)


def _status(fd: int) -> _Status | None:
    """What is attached to an open loop device, None when nothing is."""
    try:
        answer = fcntl.ioctl(fd, _LOOP_GET_STATUS64, bytes(_INFO.size))
    except OSError as error:
        if error.errno == errno.ENXIO:
            return None
        raise
    device, inode, *_, name, _, _, _, _ = _INFO.unpack(answer)
    return _Status(device, inode, os.fsdecode(name.split(b"\0", 1)[0]))


def _kernel_device(device: int) -> int:
    """A device number as the loop driver reports it (the kernel's own "huge" encoding)."""
    major, minor = os.major(device), os.minor(device)
    return (minor & 0xFF) | (major << 8) | ((minor & ~0xFF) << 12)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().rstrip("\n")
    except OSError:
        return ""


def _hint(error: OSError) -> str:
    if error.errno == errno.ENOENT and str(error.filename or "").startswith("/dev/loop"):
        return (
            "the kernel's loop devices are not there: load the module loop; in a container, mount /dev of the machine"
        )
    if error.errno in {errno.EPERM, errno.EACCES}:
        return "loop devices need root"
    return ""
