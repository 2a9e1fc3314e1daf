"""LinuxMounter: the MountInterface that the host hands to plugins, by direct system calls.

Every call that can hang in the kernel runs under a deadline; errors say what was done to what, why it failed and what
to do, and never show a sensitive option.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import time
from collections.abc import Sequence
from typing import Final

from volumehost.errors import MountError, MountTimeoutError, UnmountError, UnmountTimeoutError
from volumehost.host_services import MountPoint
from volumehost.mount import busy, explain, mount_program, refs, syscalls
from volumehost.mount.bind import bind_mount, remount
from volumehost.mount.corrupted import is_corrupted_mount
from volumehost.mount.deadline import DeadlineExceededError, DeadlineRunner
from volumehost.mount.mount_point import is_likely_not_mount_point, is_mount_point
from volumehost.mount.mountinfo import MOUNT_TABLE, read_consistently, read_mount_table
from volumehost.mount.options import MountOptions, known_options, parse_options
from volumehost.mount.places import ANSWER_SECONDS, Place, Places, open_place
from volumehost.mount.programs import Programs

logger = logging.getLogger(__name__)

#: Default deadlines in seconds: a mount helper may wait for a server, an unmount writes out what is cached.
MOUNT_SECONDS: Final = 120.0
UNMOUNT_SECONDS: Final = 60.0

# Filesystems without a store behind them: unmounting the last mount of one writes nothing.
_MEMORY_FS_TYPES: Final = frozenset({"tmpfs", "ramfs", "hugetlbfs", "proc", "sysfs", "devpts", "devtmpfs", "mqueue"})
# Pauses between attempts to unmount what is busy, in seconds: together long enough for any single system call.
_MOMENTS: Final = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016)
_REMEMBERED_MOUNTS: Final = 256
_HARMLESS_FLAGS: Final = frozenset({"--no-canonicalize", "-c", "--no-mtab", "-n"})


class LinuxMounter:
    """Mounts and unmounts in the mount namespace of the calling thread (MOUNT-01). Safe for threads."""

    def __init__(
        self,
        *,
        mounter_path: str = "",
        mount_seconds: float = MOUNT_SECONDS,
        unmount_seconds: float = UNMOUNT_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
        runner: DeadlineRunner | None = None,
        places: Places | None = None,
        programs: Programs | None = None,
    ) -> None:
        """Times are in seconds: defaults of ``timeout``, and how long a mount may take to answer a question.

        :param mounter_path: an alternative to mount(8) for a few network filesystems (MOUNT-05).
        :param places: looks at paths, in place of one with ``answer_seconds``.
        """
        self._program = mount_program.MountProgram(programs, mounter_path=mounter_path)
        self._mount_seconds = mount_seconds
        self._unmount_seconds = unmount_seconds
        self._runner = runner if runner is not None else DeadlineRunner()
        #: Paths of the mounts that were made last, until somebody asks or unmounts.
        self._mounted: dict[str, bool] = {}
        self._places = places if places is not None else Places(self._runner, answer_seconds=answer_seconds)

    # --- mounting -----------------------------------------------------------------------------------------

    def mount(
        self,
        source: str,
        target: str,
        fs_type: str = "",
        options: Sequence[str] = (),
        *,
        sensitive_options: Sequence[str] = (),
        mount_flags: Sequence[str] = (),
        systemd: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Mount ``source`` at ``target``: see ``MountInterface.mount``; by default within two minutes."""
        seconds = self._mount_seconds if timeout is None else timeout
        parsed = parse_options((*options, *sensitive_options)) if sensitive_options else known_options(tuple(options))
        if "\0" in f"{source}{target}{fs_type}{''.join(options)}{''.join(sensitive_options)}":
            raise MountError("embedded null byte", action=f"mount at {target!r}", subject=target, errno=errno.EINVAL)
        if self._takes_program(source, fs_type, parsed, mount_flags):
            command = mount_program.MountCommand(
                source, target, fs_type, options, sensitive_options, mount_flags, systemd
            )
            self._mount_by_program(command, seconds)
            return
        what = f"mount {source or fs_type} at {target}"
        try:
            self._places.without_hanging(
                _mount_by_call, source, target, fs_type, parsed, what="mount at", path=target, timeout=seconds
            )
            if len(self._mounted) >= _REMEMBERED_MOUNTS:
                self._mounted.clear()  # nobody asks about them
            self._mounted[target] = True
        except DeadlineExceededError as error:
            raise MountTimeoutError(
                str(error), action=what, subject=target, errno=errno.ETIMEDOUT, hint="it may still come about"
            ) from error
        except OSError as error:
            reason, hint = explain.explain_mount(error.errno or 0)
            if error.errno == errno.EINVAL and not parsed.bind:
                reason = self._explain_options(fs_type, parsed, sensitive_options) or reason
            raise MountError(reason, action=what, subject=target, hint=hint, errno=error.errno) from error

    @staticmethod
    def _explain_options(fs_type: str, options: MountOptions, sensitive_options: Sequence[str]) -> str:
        complaint = explain.complaint_about_options(fs_type, options.data)
        return mount_program.mask_secrets(complaint, sensitive_options)

    def _mount_by_program(self, command: mount_program.MountCommand, seconds: float) -> None:
        self._program.mount(command, seconds)
        # Where the parent ignores SIGCHLD every program seems to succeed (MOUNT-06): believe the kernel instead.
        if not command.mount_flags and self._places.look(command.target).mount_root is False:
            raise MountError(
                "mount(8) reported success, but nothing is mounted there",
                action=f"mount {command.source or command.fs_type} at {command.target}",
                subject=command.target,
            )

    @staticmethod
    def _takes_program(source: str, fs_type: str, options: MountOptions, mount_flags: Sequence[str]) -> bool:
        if fs_type.startswith("fuse") and any(option.startswith("fd=") for option in options.data):
            return False  # the caller serves it: the descriptor is of this process
        if options.needs_program or not _HARMLESS_FLAGS.issuperset(mount_flags):
            return True
        if options.bind or options.flags & syscalls.MS_REMOUNT or (options.only_propagation and not fs_type):
            return False
        return mount_program.needs_program(fs_type, source)

    # --- unmounting ---------------------------------------------------------------------------------------

    def unmount(self, target: str, *, timeout: float | None = None) -> None:
        """Unmount the topmost mount there; success when nothing is mounted (MOUNT-12, -13); by default within 60 s.

        A symbolic link at the end of the path is refused, not followed.
        """
        self._unmount(target, syscalls.UMOUNT_NOFOLLOW, self._unmount_seconds if timeout is None else timeout)

    def unmount_with_force(self, target: str, *, timeout: float) -> None:
        """Unmount, and with force when that does not end within ``timeout`` seconds (MOUNT-15).

        Force also where nothing but calls of this process, stuck in the dead mount, keeps it busy.
        """
        try:
            self._unmount(target, syscalls.UMOUNT_NOFOLLOW, timeout)
        except UnmountError as error:
            stuck = self._stuck_calls(target)
            if not isinstance(error, UnmountTimeoutError) and not (error.errno == errno.EBUSY and stuck):
                raise
            logger.warning("unmounting %s: %s; now with force", target, error.reason)
            self._unmount_stuck(target, timeout)

    def _unmount_stuck(self, target: str, seconds: float) -> None:
        """Unmount with force, which ends the calls that are stuck; until they have ended the mount stays busy."""
        until = time.monotonic() + seconds
        pause = 0.001
        while True:
            try:
                self._unmount(target, syscalls.UMOUNT_NOFOLLOW | syscalls.MNT_FORCE, seconds)
            except UnmountError as error:
                if error.errno != errno.EBUSY or not self._stuck_calls(target) or time.monotonic() > until:
                    raise
                time.sleep(pause)
                pause = min(pause * 2, 0.1)
            else:
                return

    def _stuck_calls(self, target: str) -> list[str]:
        return [f"{what} ({age:.0f} s)" for what, age in self._runner.in_progress() if what.endswith(f" {target}")]

    def _unmount(self, target: str, flags: int, seconds: float) -> None:
        action = f"unmount {target}"
        self._mounted.pop(target, None)
        try:
            if self._ends_at_once(target):
                _umount(target, flags)
            else:
                forced = " by force" if flags & syscalls.MNT_FORCE else ""
                self._runner.run(_umount, target, flags, timeout=seconds, what=action, about=action + forced)
        except DeadlineExceededError as error:
            raise UnmountTimeoutError(
                str(error),
                action=action,
                subject=target,
                errno=errno.ETIMEDOUT,
                hint="it may still be going on: its server, daemon or disk does not answer",
            ) from error
        except ValueError as error:
            raise UnmountError(str(error), action=action, subject=target, errno=errno.EINVAL) from error
        except OSError as error:
            self._unmount_failed(target, action, error)

    def _ends_at_once(self, target: str) -> bool:
        """Whether the unmount cannot wait for a disk, a server or a daemon, so that no deadline is needed."""
        if not self._places.cached_lookups_are_safe():
            return False  # looking would take a deadline of its own
        try:
            place = self._places.look_or_recall(target)
            return bool(place.mount_root) and (
                place.fs_type in _MEMORY_FS_TYPES or (place.local and self._stays_mounted(target, place))
            )
        except OSError:
            return False

    def _stays_mounted(self, target: str, place: Place) -> bool:
        # A bind mount within one filesystem: the mount around it keeps the filesystem, nothing is written out.
        return self._places.look(os.path.dirname(target) or ".").stat.device == place.stat.device

    def _unmount_failed(self, target: str, action: str, error: OSError) -> None:
        number = error.errno or 0
        if number in {errno.ENOENT, errno.ENOTDIR}:
            return
        if number == errno.EINVAL:
            place = self._places.look(target, follow=False)
            if stat.S_ISLNK(place.stat.mode):
                raise UnmountError(
                    "it is a symbolic link", action=action, subject=target, errno=number, hint="give the resolved path"
                ) from error
            if not place.mount_root and not (place.mount_root is None and self._listed(target)):
                logger.debug("%s: nothing is mounted there", action)
                return
        if number == errno.EBUSY:
            raise UnmountError(
                self._busy_reason(target), action=action, subject=target, errno=number, hint="end what uses it"
            ) from error
        reason, hint = explain.explain_unmount(number)
        raise UnmountError(reason, action=action, subject=target, hint=hint, errno=number) from error

    def _listed(self, target: str) -> bool:
        resolved = self._places.resolve(target)
        return any(entry.path == resolved for entry in self.list_mounts())

    def _busy_reason(self, target: str) -> str:
        try:
            resolved = self._places.resolve(target)
            found = self._runner.run(busy.find_holders, resolved, timeout=5.0, what=f"find who uses {target}")
            reasons = [str(holder) for holder in found] + busy.find_other_reasons(resolved)
        except (DeadlineExceededError, MountError, OSError) as error:
            logger.debug("finding out who uses %s failed: %s", target, error)
            reasons = []
        reasons += [f"this process, by a call that has not come back: {call}" for call in self._stuck_calls(target)]
        return "it is in use by " + ("; ".join(reasons) or "something that could not be found")

    # --- looking ------------------------------------------------------------------------------------------

    def list_mounts(self) -> list[MountPoint]:
        """The whole mount table, in the kernel's order."""
        return read_mount_table()

    def is_mount_point(self, path: str) -> bool:
        """Whether something is mounted exactly there: see ``MountInterface.is_mount_point``."""
        return is_mount_point(path, self._places)

    def has_mount_at(self, path: str) -> bool | None:
        """Whether something is mounted exactly there, whether it answers or not; None where the kernel cannot tell.

        Of what it has mounted itself since it was last asked the kernel has told already.

        :raises OSError: the path cannot be reached.
        """
        return True if self._mounted.pop(path, False) else self._places.has_mount(path)

    def is_likely_not_mount_point(self, path: str) -> bool:
        """The quick test, negated (MOUNT-30)."""
        return is_likely_not_mount_point(path, self._places)

    def can_safely_skip_mount_point_check(self) -> bool:
        """Always True: unmounting what is not mounted is harmless here (MOUNT-13)."""
        return True

    def get_mount_refs(self, path: str) -> list[str]:
        """Other mount points that show the same directory (MOUNT-33, -35); none for a path that is missing or dead.

        :raises OSError: the path cannot be looked at for another reason.
        """
        try:
            if not self._places.exists(path):
                return []
        except DeadlineExceededError as error:
            # Not known to be dead: what the table says still counts.
            logger.warning("%s does not answer: %s", path, error)
        except OSError as error:
            if is_corrupted_mount(error):
                logger.warning("%s is a corrupted mount, treated as not mounted: %s", path, error)
                return []
            raise
        return refs.search_mount_refs_in_text(self._places.resolve(path), read_consistently(MOUNT_TABLE))


def _umount(target: str, flags: int) -> None:
    """Unmount; what only looked in for a moment, a stat or a directory listing, is waited for."""
    for pause in _MOMENTS:
        try:
            syscalls.umount2(target, flags)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            time.sleep(pause)
        else:
            return
    syscalls.umount2(target, flags)


def _mount_by_call(source: str, target: str, fs_type: str, options: MountOptions, resolve: int) -> None:
    if options.bind:
        bind_mount(source, target, options, resolve)
        return
    if resolve:
        if fs_type not in _MEMORY_FS_TYPES:
            # Mounting reads from a disk or asks a peer: under a deadline only.
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), target)
        os.close(open_place(target, resolve))
    if options.flags & syscalls.MS_REMOUNT:
        remount(target, options)
    elif fs_type:
        _mount_filesystem(source, target, fs_type, options)
        return
    for propagation in options.propagation:
        syscalls.mount("", target, "", propagation, "")


def _mount_filesystem(source: str, target: str, fs_type: str, options: MountOptions) -> None:
    syscalls.mount(source or fs_type, target, fs_type, options.flags, ",".join(options.data))
    try:
        for propagation in options.propagation:
            syscalls.mount("", target, "", propagation, "")
    except OSError:
        syscalls.umount2(target, syscalls.UMOUNT_NOFOLLOW | syscalls.MNT_DETACH)
        raise
