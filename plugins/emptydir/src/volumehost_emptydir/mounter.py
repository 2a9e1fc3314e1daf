"""Sets an emptyDir up: a directory, with a filesystem in memory or on huge pages on it where the medium says so.

What is there decides, not a marker: is the directory there, is it a mount, of the right kind (BR-61). The marker
``ready`` only says that mode and ownership were applied once, so that a restarted host does not touch what the pod
has changed since.
"""

from __future__ import annotations

import logging
import os
import stat
from dataclasses import replace
from typing import TYPE_CHECKING

from volumehost import Attributes
from volumehost.errors import MountError, SpecError, UncertainProgressError, VolumeHostError
from volumehost.sdk import is_ready, make_directories
from volumehost_emptydir.place import Found, VolumePlace, has_on_mount_marker, look, mark_ready, write_on_mount_marker
from volumehost_emptydir.size import (
    DEFAULT_MEDIUM,
    HUGE_PAGES,
    MEMORY,
    is_huge_pages,
    page_size,
    size_limit,
)
from volumehost_emptydir.swap import NO_SWAP, SwapControl

if TYPE_CHECKING:
    from volumehost.api.objects import EmptyDirVolumeSource, Pod
    from volumehost.host_services import MountInterface
    from volumehost.volumes import MounterArgs, VolumeMetrics

logger = logging.getLogger(__name__)

_MODE = 0o777
_ATTRIBUTES = Attributes(read_only=False, managed=True, selinux_relabel=True)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class EmptyDirMounter:
    """Mounts one emptyDir of one pod. ``size`` is in bytes, 0 for media other than memory."""

    def __init__(
        self,
        *,
        place: VolumePlace,
        source: EmptyDirVolumeSource,
        pod: Pod,
        size: int,
        mounter: MountInterface,
        swap_control: SwapControl,
        sticky: bool = False,
    ) -> None:
        self._place = place
        self._medium = source.medium
        self._source = source
        self._pod = pod
        self._size = size
        self._mounter = mounter
        self._swap_control = swap_control
        self._first = False
        self._mode = _MODE | stat.S_ISVTX if sticky else _MODE

    # --- what it is ---------------------------------------------------------------------------------------

    def get_path(self) -> str:
        """The data directory."""
        return self._place.data_dir

    def get_attributes(self) -> Attributes:
        """Writable, and the host's own to give to a group and to label (EMPTYDIR-04)."""
        return _ATTRIBUTES

    @property
    def metric_source(self) -> str:
        """How it is measured."""
        return "statfs" if self._medium == MEMORY else "du"

    def get_metrics(self) -> VolumeMetrics:
        """Usage: of a volume in memory from its filesystem, which is its own; of others by adding up."""
        from volumehost_emptydir.usage import measure

        return measure(self._place, self._medium, size_limit(self._source))

    # --- setting up ---------------------------------------------------------------------------------------

    def set_up(self, args: MounterArgs) -> None:
        """Set up at the plugin's own path."""
        self.set_up_at(self._place.data_dir, args)

    def set_up_at(self, directory: str, args: MounterArgs) -> None:
        """Make the volume at ``directory`` what it should be; does nothing when it is (EMPTYDIR-21 to -26).

        :raises SpecError: the medium is unknown, or the pod's requests do not fit it.
        :raises MountError: it cannot be made, or something else is mounted in its place.
        :raises UncertainProgressError: the volume is there, but giving it to the pod's group failed.
        """
        self._check_medium()
        # To make it tells in one step that nothing was there; otherwise what is there has to be looked at. Whether
        # huge pages fit the pod is found out before anything is made.
        created = not is_huge_pages(self._medium) and self._create(directory)
        found = Found() if created else self._usable(directory)
        if self._medium == DEFAULT_MEDIUM and has_on_mount_marker(self._place):
            self._forget()  # left by a teardown that met a foreign mount here and did not end
        # A mount is made anew where nothing was there, so that what a marker says of it then does not matter.
        complete = (not created or self._medium == DEFAULT_MEDIUM) and is_ready(self._place.meta_dir)
        if not self._is_there(directory, found):
            if complete:
                logger.warning("%s was set up before, but is not there any more: setting it up again", directory)
                self._forget()
            self._make(directory, created=created, existed=found.exists)
            complete = False
        elif not complete and self._medium == DEFAULT_MEDIUM:
            self._open_up(directory)  # a set-up was killed before the mode was right
        if complete:
            return
        self._apply_ownership(directory, args)
        mark_ready(self._place)

    def _check_medium(self) -> None:
        if self._medium not in {DEFAULT_MEDIUM, MEMORY} and not is_huge_pages(self._medium):
            raise SpecError(
                f'unknown storage medium "{self._medium}"',
                action=f"setting up the emptyDir {self._place.name}",
                subject=self._place.name,
                hint='media are "", Memory, HugePages and HugePages-<size>',
            )

    def _usable(self, directory: str) -> Found:
        """What is there, after taking a dead mount away; a live one of another kind is refused, never covered."""
        found = look(directory, self._mounter)
        if found.corrupted:
            logger.warning("the mount at %s does not answer: unmounting it to set up again", directory)
            self._mounter.unmount(directory)
            found = look(directory, self._mounter)
        if found.mounted and (found.corrupted or found.medium != self._mounted_medium()):
            raise MountError(
                f"something else is mounted there already: {self._describe_mount(directory)}",
                action=f"setting up the emptyDir {self._place.name} at {directory}",
                subject=directory,
                hint="unmount it; an emptyDir is not set up over another mount",
            )
        return found

    def _mounted_medium(self) -> str | None:
        """The medium that a mount at the directory must have; None when nothing may be mounted."""
        if self._medium == DEFAULT_MEDIUM:
            return None
        return MEMORY if self._medium == MEMORY else HUGE_PAGES

    def _is_there(self, directory: str, found: Found) -> bool:
        if self._medium == DEFAULT_MEDIUM:
            return found.exists
        if found.mounted and is_huge_pages(self._medium):
            self._check_page_size(directory)
        elif found.mounted:
            self._note_size(directory)
        return found.mounted

    def _note_size(self, directory: str) -> None:
        """A mounted volume keeps its size, whatever the pod says now; changing it is another call (EMPTYDIR-14)."""
        filesystem = os.statvfs(directory)
        mounted = filesystem.f_blocks * filesystem.f_frsize
        if mounted != -(-self._size // filesystem.f_frsize) * filesystem.f_frsize:
            logger.info("%s keeps its size of %d bytes; the pod asks for %d", directory, mounted, self._size)

    def _make(self, directory: str, *, created: bool, existed: bool) -> None:
        options: list[str] = []
        if self._medium == MEMORY:
            source, fs_type, options = "tmpfs", "tmpfs", self._tmpfs_options()
        elif is_huge_pages(self._medium):
            source, fs_type = "nodev", "hugetlbfs"
            options = [f"pagesize={page_size(self._medium, self._pod)}"]
        else:
            if not created:
                self._make_directory(directory)
            return
        try:
            if not write_on_mount_marker(self._place, new_pod=self._first) and created:
                self._forget()  # left by a volume of that name whose directory somebody has removed
                write_on_mount_marker(self._place)
            if not created:
                self._make_directory(directory)
            self._mounter.mount(source, directory, fs_type, options, systemd=False)
        except VolumeHostError:
            if not existed:
                self._undo(directory)
            raise

    def _tmpfs_options(self) -> list[str]:
        options = [f"size={self._size}"] if self._size > 0 else []
        if self._swap_control.supported():
            options.append(NO_SWAP)
        return options

    def _make_directory(self, directory: str) -> None:
        """The directory with its mode, whether it was there or not."""
        if not self._create(directory) and self._medium == DEFAULT_MEDIUM:
            self._open_up(directory)

    def _create(self, directory: str) -> bool:
        """Make the directory with its mode, which those above it do not get; False when something is there."""
        try:
            try:
                os.mkdir(directory, self._mode)
            except FileNotFoundError:
                # Nearly always it is the pod's first volume, and there is nothing of the pod but what is made here.
                make_directories(os.path.dirname(directory), new_parents=2)
                self._first = True
                os.mkdir(directory, self._mode)
        except FileExistsError:
            return False
        except OSError as error:
            raise _not_made(directory, error) from error
        if self._medium == DEFAULT_MEDIUM:  # else it will lie under a mount, whose own mode counts
            self._open_up(directory)
        return True

    def _open_up(self, directory: str) -> None:
        """Open it to containers of all users, whatever the umask took away (EMPTYDIR-25)."""
        try:
            fd = os.open(directory, _DIRECTORY)
            try:
                mode = stat.S_IMODE(os.fstat(fd).st_mode)
                if mode & self._mode != self._mode:
                    os.fchmod(fd, mode | self._mode)
            finally:
                os.close(fd)
        except OSError as error:
            raise _not_made(directory, error) from error

    def _check_page_size(self, directory: str) -> None:
        """A mounted volume must have the page size that the medium names (EMPTYDIR-29)."""
        if self._medium == HUGE_PAGES:
            return
        wanted = page_size(self._medium, self._pod)
        mounted = self._mounted_page_size(directory)
        if mounted != wanted:
            reason = (
                f"mounted pagesize '{mounted}' and requested medium size '{wanted}' differ"
                if mounted
                else "the mounted pagesize is not determined"
            )
            raise MountError(reason, action=f"setting up the emptyDir {self._place.name}", subject=directory)

    def _mounted_page_size(self, directory: str) -> str:
        from volumehost.sdk import parse_quantity

        resolved = os.path.realpath(directory)
        for mount in reversed(self._mounter.list_mounts()):
            if mount.path == resolved:
                for option in (*mount.super_options, *mount.options):
                    name, _, value = option.partition("=")
                    if name == "pagesize":
                        return str(parse_quantity(value if value.endswith("i") else value + "i"))
                break
        return ""

    def _describe_mount(self, directory: str) -> str:
        resolved = os.path.realpath(directory)
        for mount in reversed(self._mounter.list_mounts()):
            if mount.path == resolved:
                return f"{mount.fs_type} from {mount.source}"
        return "of unknown kind"

    # --- the rest -----------------------------------------------------------------------------------------

    def _apply_ownership(self, directory: str, args: MounterArgs) -> None:
        """Give the volume to the pod's group, only after success, and say when it failed (EMPTYDIR-23, improved)."""
        if args.fs_group is None:
            return
        from volumehost.sdk import apply_ownership

        try:
            apply_ownership(self, directory, replace(args, fs_group_change_policy=None), pod=self._pod)
        except VolumeHostError as error:
            raise UncertainProgressError(
                f"the volume is there, but was not given to group {args.fs_group}: {error}",
                action=f"setting up the emptyDir {self._place.name}",
                subject=self._place.name,
            ) from error

    def _forget(self) -> None:
        from volumehost.sdk import remove_all_one_filesystem

        remove_all_one_filesystem(self._place.meta_dir)

    def _undo(self, directory: str) -> None:
        """After a failed mount leave nothing behind; what cannot be removed is removed at teardown."""
        try:
            os.rmdir(directory)
            self._forget()
        except (OSError, VolumeHostError) as error:
            logger.debug("leaving %s behind for teardown: %s", directory, error)


def _not_made(directory: str, error: OSError) -> MountError:
    return MountError(
        error.strerror or str(error),
        action=f"creating the directory {directory} of an emptyDir",
        subject=directory,
        errno=error.errno,
    )
