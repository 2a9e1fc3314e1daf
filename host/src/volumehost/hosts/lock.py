"""One volume manager works on a root directory at a time, and one agent lives there: locks that end with their process.

Also by ``kill -9``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os

from volumehost.errors import RootDirectoryLockedError
from volumehost.hosts.layout import Layout
from volumehost.hosts.root_dir import root_directory_error
from volumehost.mount.mountinfo import read_mount_table


class RootDirLock:
    """Holds the root directory for this process until :meth:`release` or the end of the process.

    The kernel drops an flock with the last descriptor of its open file, so nothing is left to clean after a crash.
    The file itself stays; its content, the holder's process id, only serves messages.

    :param of_agent: not the manager's lock but the agent's, which it has for as long as it lives, also while it waits
        for the manager's because a command works.
    """

    def __init__(self, root_dir: str, *, of_agent: bool = False) -> None:
        self._root_dir = root_dir
        layout = Layout(root_dir)
        self._path = layout.agent_lock_file() if of_agent else layout.lock_file()
        self._who = "another agent runs for it" if of_agent else "another volume manager works on it"
        self._descriptor = -1

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor >= 0

    def acquire(self) -> None:
        """Take the lock; does not wait.

        :raises RootDirectoryLockedError: another manager has it; ``pid`` is its process when that is known.
        :raises RootDirectoryError: the file cannot be made or written.
        """
        if self.held:
            return
        action = f"locking the root directory {self._root_dir}"
        while True:
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                raise root_directory_error(error, self._root_dir, action) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not _is_at(descriptor, self._path):  # somebody removed the file between open and lock
                    os.close(descriptor)
                    continue
                os.truncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            except BlockingIOError:
                pid = _read_pid(descriptor)
                os.close(descriptor)
                raise RootDirectoryLockedError(
                    f"{self._who}{f' (process {pid})' if pid else ''}",
                    pid=pid,
                    action=action,
                    subject=self._root_dir,
                    hint="wait until it has ended, or stop it",
                ) from None
            except OSError as error:
                os.close(descriptor)
                raise root_directory_error(error, self._root_dir, action) from error
            self._descriptor = descriptor
            return

    def release(self) -> None:
        """Let go of the root directory; nothing happens when it is not held."""
        if self.held:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


def lock_holder(root_dir: str) -> int | None:
    """The process that holds the root directory now, None when nobody does. Takes no lock itself.

    Read from ``/proc/locks``; a holder in another process namespace, whose id means nothing here, counts as 0.
    """
    try:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # what lies there may be a pipe
        descriptor = os.open(Layout(root_dir).lock_file(), flags)
    except OSError:
        return None
    try:
        wanted = f"{_filesystem_of(descriptor)}:{os.fstat(descriptor).st_ino}"
        with open("/proc/locks", encoding="ascii", errors="replace") as table:
            locks = table.read().splitlines()
    except OSError:
        return None
    finally:
        os.close(descriptor)
    for line in locks:
        fields = line.split()
        # "1: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> 0 EOF"; a waiter has "->" after the number.
        if len(fields) > 5 and fields[1] == "FLOCK" and fields[5] == wanted:
            with contextlib.suppress(ValueError):
                return max(0, int(fields[4]))
    return None


def _filesystem_of(descriptor: int) -> str:
    """``major:minor`` as ``/proc/locks`` writes it. On overlay and btrfs ``stat`` tells another number."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
        mount_id = next((int(line[7:]) for line in file if line.startswith("mnt_id:")), None)
    for mount in read_mount_table():
        if mount.mount_id == mount_id:
            return f"{mount.major:02x}:{mount.minor:02x}"
    device = os.fstat(descriptor).st_dev
    return f"{os.major(device):02x}:{os.minor(device):02x}"


def _is_at(descriptor: int, path: str) -> bool:
    try:
        there = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _read_pid(descriptor: int) -> int | None:
    try:
        return int(os.pread(descriptor, 32, 0).decode("ascii").strip())
    except (OSError, ValueError, UnicodeDecodeError):
        return None
