"""Where a storm rages: a tmpfs of its own with everything in it, taken away again whatever happened."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any, Self, TypeVar

from volumehost.errors import VolumeHostError
from volumehost.host_services import MountPoint
from volumehost.mount import syscalls
from volumehost.mount.loop import LoopDevice, detach, list_attached
from volumehost.mount.mountinfo import read_mount_table

T = TypeVar("T")

MS_REMOUNT = 32
_AT_SYMLINK_NOFOLLOW = 0x100
_STATX_FLAGS = _AT_SYMLINK_NOFOLLOW | syscalls.AT_STATX_DONT_SYNC
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Place:
    """A directory on a filesystem of its own. ``root`` is the root directory, which nobody has made yet.

    The directory's name is unique on the machine: whatever process, mount or loop device names it belongs to it.
    """

    def __init__(self, *, size: str = "2g") -> None:
        self.base = tempfile.mkdtemp(prefix="storm-", dir="/tmp")
        self.root = f"{self.base}/n/r"
        self.sockets = f"{self.base}/s"
        self.manifests = f"{self.base}/manifests"
        self.host_data = f"{self.base}/host"
        self.logs = f"{self.base}/logs"
        for directory in (self.sockets, self.logs, f"{self.base}/n"):
            os.mkdir(directory)
        syscalls.mount("storm", f"{self.base}/n", "tmpfs", 0, f"size={size}")
        self._filesystem = _kernel_device(os.stat(f"{self.base}/n").st_dev)
        for directory in (self.manifests, self.host_data):
            os.mkdir(directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def configure(self, **attributes: float) -> None:
        """Make the root directory with the CSI plugin's times in it, in seconds."""
        os.makedirs(self.root, 0o750, exist_ok=True)
        table = ", ".join(f'{name} = "{value}"' for name, value in attributes.items())
        with open(f"{self.root}/config.toml", "w", encoding="utf-8") as file:
            file.write(f'[plugins."kubernetes.io/csi"]\nattributes = {{ {table} }}\n')

    # --- what is there ----------------------------------------------------------------------------------------------

    def mounts(self) -> list[MountPoint]:
        """The mounts below the root directory, in the kernel's order."""
        return [mount for mount in read_mount_table() if mount.path.startswith(f"{self.root}/")]

    def mount_ids(self) -> dict[str, int]:
        """What is mounted at each path: ids that the kernel gives to no other mount ever, unlike those of its table."""
        found = {}
        for mount in self.mounts():
            with contextlib.suppress(FileNotFoundError):  # gone since
                status = syscalls.statx(syscalls.AT_FDCWD, mount.path, _STATX_FLAGS, syscalls.STATX_MNT_ID_UNIQUE)
                if not status.unique_id or status.mount_id is None:
                    raise RuntimeError("a storm needs unique mount ids, of Linux 6.8 or later")
                found[mount.path] = status.mount_id
        return found

    def loop_devices(self) -> list[LoopDevice]:
        """The loop devices of files in this place, and those on top of them, which lock them; the topmost come first.

        They are known by their files' filesystem too: a path means nothing any more when its mount has gone.
        """
        attached = list_attached()
        found = [loop for loop in attached if self.base in loop.backing_file or loop.file_device == self._filesystem]
        nodes = {_identity(loop.device) for loop in found}
        locks = [loop for loop in attached if (loop.file_device, loop.file_inode) in nodes]
        return [*locks, *(loop for loop in found if loop not in locks)]

    def processes(self) -> dict[int, str]:
        """Every other process that names this place, in its command line or its environment, with its command line."""
        found, base = {}, self.base.encode()
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            with contextlib.suppress(OSError):
                command, variables = _read(f"/proc/{pid}/cmdline"), _read(f"/proc/{pid}/environ")
                if pid != os.getpid() and (base in command or base in variables):
                    found[pid] = command.replace(b"\0", b" ").decode(errors="replace").strip()
        return found

    # --- faults of the machine --------------------------------------------------------------------------------------

    def unmount_all(self) -> None:
        """Unmount everything below the root directory behind everybody's back."""
        for _ in range(20):
            paths = [mount.path for mount in self.mounts()]
            for path in reversed(paths):
                with contextlib.suppress(OSError):
                    syscalls.umount2(path, syscalls.MNT_DETACH)
            if not paths:
                return

    def detach_loop_devices(self) -> None:
        """Detach what nobody has mounted any more."""
        for loop in self.loop_devices():
            with contextlib.suppress(VolumeHostError, OSError):
                detach(loop.device)

    def kill_processes(self) -> None:
        """End, by SIGKILL, everything that belongs here, and what that starts meanwhile."""

        def gone() -> bool:
            there = self.processes()
            for pid in there:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not there

        until(gone, f"the processes of {self.base} are gone", 20)

    def limit(self, *, pages: int | None = None, inodes: int | None = None) -> None:
        """Leave exactly so much of the root directory's filesystem; None for plenty. A page is the least there is."""
        usage = os.statvfs(f"{self.base}/n")
        blocks = (usage.f_blocks - usage.f_bfree) * usage.f_frsize
        files = usage.f_files - usage.f_ffree
        size = blocks + pages * _PAGE if pages is not None else 2 << 30
        number = files + inodes if inodes is not None else 1 << 20
        syscalls.mount("storm", f"{self.base}/n", "tmpfs", MS_REMOUNT, f"size={size},nr_inodes={number}")

    # --- the end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End what runs here, unmount and detach everything, remove the directory."""
        with contextlib.suppress(TimeoutError):
            self.kill_processes()
        for _ in range(20):
            below = [m.path for m in read_mount_table() if f"{m.path}/".startswith(f"{self.base}/")]
            for path in reversed(below):
                with contextlib.suppress(OSError):
                    syscalls.umount2(path, syscalls.MNT_DETACH)
            self.detach_loop_devices()
            if not below and not self.loop_devices():
                break
        shutil.rmtree(self.base, ignore_errors=True)


def _identity(path: str) -> tuple[int, int]:
    """Of a file, as a loop device tells it."""
    status = os.stat(path)
    return _kernel_device(status.st_dev), status.st_ino


def _kernel_device(device: int) -> int:
    """A device number as the kernel encodes it for a loop device's status."""
    major, minor = os.major(device), os.minor(device)
    return (minor & 0xFF) | (major << 8) | ((minor & ~0xFF) << 12)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def until(condition: Callable[[], T], what: str, seconds: float = 30.0, *, every: float = 0.02) -> T:
    """Wait until the condition is true; its value.

    :raises TimeoutError: it is not in time.
    """
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        value: Any = condition()
        if value:
            return value  # type: ignore[no-any-return]
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s until {what}")
        pause.wait(every)
