"""Formats a device if it is empty, checks it otherwise, and mounts it (MOUNT-60 to -69).

Used by plugins and drivers whose volumes are devices. A device with anything on it is never formatted.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from volumehost.errors import FormatError, MountError
from volumehost.host_services import MountInterface
from volumehost.mount.deadline import DeadlineRunner
from volumehost.mount.options import parse_options
from volumehost.mount.programs import MissingProgramError, ProgramResult, Programs
from volumehost.mount.syscalls import MS_RDONLY

logger = logging.getLogger(__name__)

FILESYSTEM_MISMATCH: Final = "FilesystemMismatch"
HAS_FILESYSTEM_ERRORS: Final = "HasFilesystemErrors"
UNFORMATTED_READ_ONLY: Final = "UnformattedReadOnly"
FORMAT_FAILED: Final = "FormatFailed"
GET_DISK_FORMAT_FAILED: Final = "GetDiskFormatFailed"
UNKNOWN_MOUNT_ERROR: Final = "UnknownMountError"

DEFAULT_FS_TYPE: Final = "ext4"
#: The format of a device that has a partition table: not empty, and not mountable either (MOUNT-61).
PARTITIONED: Final = "unknown data, probably partitions"

#: Deadlines in seconds. Formatting and checking read or write a whole device, which takes its time.
PROBE_SECONDS: Final = 60.0
FORMAT_SECONDS: Final = 3600.0

_BLKID_NOTHING_FOUND: Final = 2
_FSCK_CORRECTED: Final = 1
_FSCK_UNCORRECTED: Final = 4


@functools.cache
def _runner() -> DeadlineRunner:
    """The process's own: what hangs on a device keeps others from hanging on it too."""
    return DeadlineRunner()


class FormatLimit:
    """At most ``concurrent`` formats at a time; less than 1 means no limit (MOUNT-68).

    A format that takes longer than ``seconds`` no longer counts, so that one slow device does not hold up all others.
    """

    def __init__(self, concurrent: int = 0, seconds: float = 300.0) -> None:
        self._tokens = threading.Semaphore(concurrent) if concurrent >= 1 else None
        self._seconds = seconds

    @contextmanager
    def token(self) -> Iterator[None]:
        """Wait for a turn, without limit, and keep it until the end or until the time is up."""
        if self._tokens is None:
            yield
            return
        tokens = self._tokens
        tokens.acquire()
        given_back = threading.Lock()

        def give_back() -> None:
            if given_back.acquire(blocking=False):
                tokens.release()

        timer = threading.Timer(self._seconds, give_back)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            give_back()


def get_disk_format(device: str, programs: Programs | None = None) -> str:
    """The type of what is on the device: a filesystem's name, ``PARTITIONED``, or "" when it is empty (MOUNT-61).

    :raises FormatError: kind GetDiskFormatFailed: it cannot be found out, so the device must not be formatted.
    """
    action = f"find out the format of {device}"
    programs = programs if programs is not None else Programs()
    try:
        # blkid says "nothing found" of a device that it cannot read, too.
        _runner().run(_read_beginning, device, timeout=PROBE_SECONDS, what=f"read {device}")
        result = programs.run(
            ["blkid", "-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", device], timeout=PROBE_SECONDS
        )
    except (OSError, MountError) as error:
        raise FormatError(str(error), kind=GET_DISK_FORMAT_FAILED, action=action, subject=device) from error
    if result.returncode == _BLKID_NOTHING_FOUND:
        return ""
    if result.returncode != 0:
        raise FormatError(
            f"blkid: {result.describe()}: {result.output}", kind=GET_DISK_FORMAT_FAILED, action=action, subject=device
        )
    found = _parse_blkid(result.stdout, device)
    return PARTITIONED if found.get("PTTYPE") else found.get("TYPE", "")


def _read_beginning(device: str) -> None:
    with open(device, "rb") as file:
        file.read(4096)


def _parse_blkid(text: str, device: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line or line.startswith("DEVNAME="):
            continue
        if line.count("=") != 1:
            raise FormatError(
                f"blkid wrote a line that is not KEY=value: {line!r}",
                kind=GET_DISK_FORMAT_FAILED,
                action=f"find out the format of {device}",
                subject=device,
            )
        key, _, value = line.partition("=")
        found[key] = value
    return found


class SafeFormatAndMount:
    """Formats, checks and mounts devices; one per host, because the limit is the host's."""

    def __init__(
        self, mounter: MountInterface, *, programs: Programs | None = None, limit: FormatLimit | None = None
    ) -> None:
        self._mounter = mounter
        self._programs = programs if programs is not None else Programs()
        self._limit = limit if limit is not None else FormatLimit()

    def format_and_mount(
        self,
        source: str,
        target: str,
        fs_type: str = "",
        options: Sequence[str] = (),
        *,
        sensitive_options: Sequence[str] = (),
        format_options: Sequence[str] = (),
        may_format: bool = True,
    ) -> None:
        """Mount the device at the target, formatting it before that if it is empty (MOUNT-60 to -66).

        ``ro`` among the options means that nothing is written: neither formatted nor checked.

        :param fs_type: ext4 when empty.
        :param format_options: go to mkfs, before its own.
        :param may_format: False for a device that is known to hold data: where no filesystem is found on it, that
            data is of another kind, and it is refused instead (kind FilesystemMismatch).
        :raises FormatError: ``kind`` says what went wrong (MOUNT-69).
        """
        fs_type = fs_type or DEFAULT_FS_TYPE
        read_only = bool(parse_options([*options, *sensitive_options]).flags & MS_RDONLY)
        existing = get_disk_format(source, self._programs)
        if not existing and not may_format:
            raise FormatError(
                "it holds data, but no filesystem",
                kind=FILESYSTEM_MISMATCH,
                action=f"mount {source} at {target}",
                subject=source,
                hint="it was used as a raw device, or its filesystem is damaged; it is not formatted",
            )
        if not existing:
            self._format_empty(source, fs_type, read_only, format_options)
        else:
            if existing != fs_type:
                logger.warning("%s holds %s, not %s; trying to mount it all the same", source, existing, fs_type)
            if not read_only:
                self._check(source)
        try:
            self._mounter.mount(source, target, fs_type, [*options, "defaults"], sensitive_options=sensitive_options)
        except MountError as error:
            mismatch = existing not in {"", fs_type}
            reason = f"the device holds {existing}, not {fs_type}; {error.reason}" if mismatch else error.reason
            raise FormatError(
                reason,
                kind=FILESYSTEM_MISMATCH if mismatch else UNKNOWN_MOUNT_ERROR,
                action=f"mount {source} at {target}",
                subject=source,
                hint=error.hint,
            ) from error

    def _format_empty(self, device: str, fs_type: str, read_only: bool, format_options: Sequence[str]) -> None:
        if read_only:
            raise FormatError(
                "the device is empty, and a read-only volume is not formatted",
                kind=UNFORMATTED_READ_ONLY,
                action=f"mount {device}",
                subject=device,
                hint="mount it read-write once, or check that it is the right device",
            )
        self.format(device, fs_type, format_options)

    def format(self, device: str, fs_type: str = "", format_options: Sequence[str] = ()) -> None:
        """Make a filesystem on the device, whatever is on it (MOUNT-64).

        :raises FormatError: kind FormatFailed.
        """
        fs_type = fs_type or DEFAULT_FS_TYPE
        command = [f"mkfs.{fs_type}", *format_options, *_mkfs_options(fs_type), device]
        logger.info("formatting %s: %s", device, " ".join(command))
        with self._limit.token():
            try:
                result = self._programs.run(command, timeout=FORMAT_SECONDS)
                failure = "" if result.returncode == 0 else f"{result.describe()}: {result.output}"
            except MountError as error:
                failure = error.reason
        if failure:
            raise FormatError(
                f"{command[0]}: {failure}", kind=FORMAT_FAILED, action=f"format {device} with {fs_type}", subject=device
            )

    def _check(self, device: str) -> None:
        """Run fsck; only errors that it could not correct stop the mount (MOUNT-66)."""
        try:
            result = self._programs.run(["fsck", "-a", device], timeout=FORMAT_SECONDS)
        except MissingProgramError:
            logger.warning("fsck is not installed, %s is mounted without a check", device)
            return
        except MountError as error:
            logger.warning("%s is mounted without a check: %s", device, error)
            return
        self._judge_check(device, result)

    @staticmethod
    def _judge_check(device: str, result: ProgramResult) -> None:
        if result.returncode == 0:
            return
        if result.returncode == _FSCK_CORRECTED:
            logger.info("fsck found errors on %s and corrected them", device)
        elif result.returncode == _FSCK_UNCORRECTED or result.timed_out:
            raise FormatError(
                f"fsck did not leave the device in order: {result.describe()}: {result.output}",
                kind=HAS_FILESYSTEM_ERRORS,
                action=f"check {device}",
                subject=device,
                hint=f"repair it by hand: fsck {device}",
            )
        else:
            logger.warning("fsck of %s: %s: %s", device, result.describe(), result.output)


def _mkfs_options(fs_type: str) -> list[str]:
    if fs_type in {"ext3", "ext4"}:
        return ["-F", "-m0"]
    return ["-f"] if fs_type == "xfs" else []


def device_size(device: str) -> int:
    """Size of a block device, or of the file that stands for one, in bytes."""
    fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.lseek(fd, 0, os.SEEK_END)
    finally:
        os.close(fd)
