"""Makes, mounts and grows the filesystems of volumes with the house's own tools, and never formats over data."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from volumehost.errors import FormatError, MountError
from volumehost.host_services import MountInterface
from volumehost.mount import loop
from volumehost.mount.format import (
    DEFAULT_FS_TYPE,
    FILESYSTEM_MISMATCH,
    FORMAT_SECONDS,
    UNFORMATTED_READ_ONLY,
    SafeFormatAndMount,
    device_size,
)
from volumehost.mount.privileges import may_grow_mounted_ext
from volumehost.mount.programs import Programs
from volumehost.mount.resize import resize
from volumehost.sdk import set_volume_ownership
from volumehost.volumes import Attributes
from volumehost_loop_driver.errors import FailedPreconditionError, InvalidArgumentError
from volumehost_loop_driver.images import Images
from volumehost_loop_driver.records import VolumeRecord
from volumehost_loop_driver.superblock import Superblock, read_superblock

logger = logging.getLogger(__name__)

SUPPORTED: Final = ("ext4", "xfs")
#: A blank image reads as zeros, so that nothing in it needs to be written with zeros once more. Where its blocks are
#: to stay allocated it must not be discarded either.
_THIN_OPTIONS: Final = {"ext4": ["-E", "lazy_journal_init=1"]}
_THICK_OPTIONS: Final = {"ext4": ["-E", "lazy_journal_init=1,nodiscard"], "xfs": ["-K"]}
#: e2fsck found nothing, or has corrected what it found.
_CHECKED: Final = (0, 1)
#: Options that are not about a filesystem of our own.
_REFUSED_FLAGS: Final = frozenset({"bind", "rbind", "remount", "move", "loop"})


@dataclass(frozen=True, slots=True)
class Prepared:
    """An image that holds a filesystem. ``fresh``: made just now; ``small``: to be grown once it is mounted."""

    fs_type: str
    fresh: bool
    small: bool


class _ReadWrite:
    """A volume whose ownership is to be changed, for the sdk."""

    @staticmethod
    def get_attributes() -> Attributes:
        return Attributes(managed=True)


class Filesystems:
    """Filesystems on images and their devices."""

    def __init__(self, mounter: MountInterface, programs: Programs | None = None) -> None:
        self._mounter = mounter
        self._programs = programs if programs is not None else Programs()
        self._formatter = SafeFormatAndMount(mounter, programs=self._programs)

    def prepare(self, images: Images, record: VolumeRecord, fs_type: str, *, may_format: bool) -> Prepared:
        """Make a filesystem on the image if it is blank, before it is attached: that takes half the time.

        :raises FailedPreconditionError: it is blank and must not be formatted.
        :raises FormatError: mkfs failed; the image is blank again.
        """
        fs_type = fs_type or record.fs_type or DEFAULT_FS_TYPE
        if not images.is_blank(record.key):
            superblock = read_superblock(images.path(record.key))
            small = superblock is not None and superblock.smaller_than(record.size)
            if small and may_format and _can_grow_unmounted(superblock, images.path(record.key)):
                self._grow_unmounted(images.path(record.key))
                small = False
            return Prepared(fs_type, fresh=False, small=small)
        if not may_format:
            raise FailedPreconditionError(
                "it is empty, and a read-only volume is not formatted",
                action=f"mount the volume {record.id}",
                subject=record.id,
                hint="use it read-write once",
            )
        options = (_THICK_OPTIONS if record.thick else _THIN_OPTIONS).get(fs_type, ())
        with images.formatting(record.key, thick=record.thick) as path:
            self._formatter.format(path, fs_type, options)
        return Prepared(fs_type, fresh=True, small=False)

    def mount(self, device: str, path: str, prepared: Prepared, flags: Sequence[str], *, read_only: bool) -> None:
        """Mount the device; what was not made just now is checked before that.

        :raises FailedPreconditionError: something else than such a filesystem is on it.
        :raises FormatError, MountError: it cannot be checked or mounted.
        """
        options = [*flags]
        if read_only and "ro" not in options:
            options.append("ro")
        if prepared.fs_type == "xfs" and "nouuid" not in options:
            # A clone has its origin's UUID, and both may be mounted at once.
            options.append("nouuid")
        if prepared.fresh:
            self._mounter.mount(device, path, prepared.fs_type, [*options, "defaults"])
            return
        try:
            self._formatter.format_and_mount(device, path, prepared.fs_type, options, may_format=False)
        except FormatError as error:
            if error.kind not in {FILESYSTEM_MISMATCH, UNFORMATTED_READ_ONLY}:
                raise
            raise FailedPreconditionError(
                error.reason, action=error.action, subject=error.subject, hint=error.hint
            ) from error

    def _grow_unmounted(self, image: str) -> None:
        # resize2fs wants it checked completely.
        check = self._programs.run(["e2fsck", "-f", "-p", image], timeout=FORMAT_SECONDS)
        if check.returncode not in _CHECKED:
            raise MountError(
                f"e2fsck: {check.describe()}: {check.output}",
                action=f"check {image} before it grows",
                subject=image,
                hint=f"repair it by hand: e2fsck -f {image}",
            )
        growth = self._programs.run(["resize2fs", image], timeout=FORMAT_SECONDS)
        if growth.returncode != 0:
            raise MountError(
                f"resize2fs: {growth.describe()}: {growth.output}",
                action=f"grow the filesystem on {image}",
                subject=image,
            )

    def grow(self, device: str, path: str) -> None:
        """Grow the mounted filesystem to the size of its device; success when it is that large (MOUNT-70).

        :raises FailedPreconditionError: the process may not grow an ext4 filesystem that is mounted.
        :raises MountError: it cannot be grown.
        """
        superblock = read_superblock(device)  # of ext4 it is the current one, though it is mounted
        if superblock is not None and superblock.family == "ext":
            if not superblock.smaller_than(device_size(device)):
                return
            if not may_grow_mounted_ext():
                raise FailedPreconditionError(
                    "growing a mounted ext4 filesystem needs the capability CAP_SYS_RESOURCE",
                    action=f"grow the filesystem on {device}",
                    subject=device,
                    hint="it grows when the volume is staged again; or give the driver the capability, or use xfs",
                )
        if not resize(device, path, self._programs):
            raise MountError("no filesystem is found on it", action=f"grow the filesystem on {device}", subject=device)

    def give_to_group(self, path: str, group: int) -> None:
        """Let a group use everything in the mounted filesystem; quick when its root shows that it does already.

        :raises OwnershipError: it cannot be read.
        """
        set_volume_ownership(_ReadWrite(), path, group, "OnRootMismatch")


def check_flags(flags: Sequence[str]) -> None:
    """Refuse mount flags that would do something else than mount the volume's filesystem.

    :raises InvalidArgumentError: there is such a flag.
    """
    for flag in flags:
        for option in flag.split(","):
            if option.strip().partition("=")[0] in _REFUSED_FLAGS:
                raise InvalidArgumentError(
                    f"the mount flag {option.strip()!r} is not one of a filesystem", action="read the mount flags"
                )


def _can_grow_unmounted(superblock: Superblock | None, image: str) -> bool:
    """Whether it grows before it is mounted, which needs no privilege; never while any device shows the image."""
    return superblock is not None and superblock.family == "ext" and not loop.find(image)


def is_read_only(path: str) -> bool:
    """Whether the filesystem there refuses writes now, whatever it was mounted for."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
