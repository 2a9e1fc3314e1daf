"""LinuxHostUtils: questions about paths of the host (HOSTUTIL rules), handed to plugins by the node host."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

from volumehost.errors import VolumeHostError
from volumehost.host_services import MountInterface
from volumehost.mount.places import Places, shared_places
from volumehost.mount.refs import find_containing_mount
from volumehost.mount.selinux import SELinux
from volumehost.mount.sharing import make_rshared

if TYPE_CHECKING:
    from volumehost.api.objects import SELinuxOptions


class UnrecognisedFileTypeError(VolumeHostError):
    """The path is neither file, directory, socket, block device nor character device (HOSTUTIL-03)."""


class LinuxHostUtils:
    """Answers from the machine itself; a path that does not answer raises DeadlineExceededError (a TimeoutError).

    :param selinux: stands in for the machine's SELinux.
    """

    def __init__(
        self, mounter: MountInterface, *, places: Places | None = None, selinux: SELinux | None = None
    ) -> None:
        self._mounter = mounter
        self._places = places if places is not None else shared_places()
        self._selinux = selinux if selinux is not None else SELinux()

    def device_opened(self, path: str) -> bool:
        """Whether somebody holds the device open exclusively, as a mount does (HOSTUTIL-01).

        :raises VolumeHostError: the path cannot be looked at.
        """
        try:
            is_device = self.path_is_device(path)
        except OSError as error:
            raise VolumeHostError(
                f'PathIsDevice failed for path "{path}": {error.strerror}',
                action="find out who uses a device",
                subject=path,
            ) from error
        if not is_device:
            return False
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError as error:
            if error.errno == errno.EBUSY:
                return True
            raise
        return False

    def path_is_device(self, path: str) -> bool:
        """Whether it is a block or character device; OSError when it cannot be looked at (HOSTUTIL-02)."""
        mode = self._places.check(path).stat.mode
        return stat.S_ISBLK(mode) or stat.S_ISCHR(mode)

    def get_file_type(self, path: str) -> str:
        """``Directory``, ``File``, ``Socket``, ``CharDevice`` or ``BlockDevice``, links followed (HOSTUTIL-03).

        :raises FileNotFoundError: the path does not exist.
        :raises UnrecognisedFileTypeError: it is something else, a FIFO for example.
        """
        try:
            mode = self._places.check(path).stat.mode
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(errno.ENOENT, f'path "{path}" does not exist', path) from None
        for test, name in _FILE_TYPES:
            if test(mode):
                return name
        raise UnrecognisedFileTypeError(
            "only recognise file, directory, socket, block device and character device",
            action=f"find out what {path} is",
            subject=path,
        )

    def path_exists(self, path: str) -> bool:
        """Whether it exists, links followed; any error but "does not exist" is raised (HOSTUTIL-04)."""
        try:
            self._places.check(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def make_dir(self, path: str) -> None:
        """Create the directory with its parents, 0755."""
        self._places.under_deadline(_make_dirs, path, what=f"create {path}")

    def make_file(self, path: str) -> None:
        """Create an empty file 0644 unless it exists; parents must exist (HOSTPATH-26)."""
        self._places.under_deadline(_make_file, path, what=f"create {path}")

    def eval_host_symlinks(self, path: str) -> str:
        """The path with every link resolved; a dangling link is an error (HOSTUTIL-05)."""
        return self._places.resolve(path)

    def get_owner(self, path: str) -> tuple[int, int]:
        """(uid, gid), links followed (HOSTUTIL-06)."""
        found = self._places.ask(path)
        return found.st_uid, found.st_gid

    def get_mode(self, path: str) -> int:
        """Permission bits with setuid, setgid and sticky."""
        return stat.S_IMODE(self._places.ask(path).st_mode)

    def make_rshared(self, path: str) -> None:
        """Put the path on a shared mount, so that later mounts reach containers (HOSTUTIL-08, -09).

        :raises MountError: it cannot be bound on itself or made shared; the bind is undone then.
        """
        make_rshared(path, self._places.resolve(path), self._mounter)

    def selinux_enabled(self) -> bool:
        """Whether the kernel has SELinux on."""
        return self._selinux.enabled()

    def selinux_file_label(self, options: SELinuxOptions) -> str:
        """By the system's policy, and checked by the kernel (SEL-01)."""
        return self._selinux.file_label(options)

    def get_selinux_support(self, path: str) -> bool:
        """Whether the mount that holds the path carries SELinux labels (HOSTUTIL-10)."""
        if not self._selinux.enabled():
            return False
        entry = find_containing_mount(self._places.resolve(path), self._mounter.list_mounts())
        return "seclabel" in entry.super_options or "seclabel" in entry.options

    def get_selinux_mount_context(self, path: str) -> str:
        """The mount's ``context=`` option without quotes, "" when there is none (HOSTUTIL-11)."""
        if not self._selinux.enabled():
            return ""
        entry = find_containing_mount(self._places.resolve(path), self._mounter.list_mounts())
        for option in entry.super_options:
            name, _, value = option.partition("=")
            if name == "context":
                return value.strip('"')
        return ""


_FILE_TYPES: Final = (
    (stat.S_ISDIR, "Directory"),
    (stat.S_ISREG, "File"),
    (stat.S_ISSOCK, "Socket"),
    (stat.S_ISCHR, "CharDevice"),
    (stat.S_ISBLK, "BlockDevice"),
)


def _make_dirs(path: str) -> None:
    os.makedirs(path, mode=0o755, exist_ok=True)


def _make_file(path: str) -> None:
    # A FIFO in the place must not make the open wait for a writer.
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC, 0o644))
