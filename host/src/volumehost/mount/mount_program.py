"""Runs mount(8) and umount(8) for filesystems that need a helper program: nfs, cifs, fuse and the like.

Called by the mounter; everything else is mounted by system call, some two hundred times faster. Under systemd a
helper runs in a scope of its own, so that a FUSE daemon outlives a restart of the host (MOUNT-04, BR-68).
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from volumehost.errors import MountError
from volumehost.mount.mountinfo import split_options

logger = logging.getLogger(__name__)

MASK: Final = "<masked>"

#: Types that never work without their helper or mount(8)'s own handling.
_NEEDS_HELPER: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "glusterfs", "ceph", "9p_helper", "fuse", "davfs", "lustre", "ntfs", "ntfs-3g"}
)
#: Types for which an alternative mounter may be configured (MOUNT-05).
ALTERNATIVE_MOUNTER_FS_TYPES: Final = frozenset({"nfs", "glusterfs", "ceph", "cifs"})
_HELPER_DIRECTORIES: Final = ("/sbin", "/usr/sbin", "/sbin/fs.d", "/sbin/fs", "/usr/bin", "/usr/local/sbin")
_PROBE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended: its status (negative for a signal) and what it wrote, both streams together."""

    returncode: int
    output: str
    timed_out: bool = False


def needs_program(fs_type: str, source: str) -> bool:
    """Whether mounting takes mount(8): no type to pass to the kernel, a tag as source, or a type with a helper."""
    if fs_type in {"", "auto", "none"} or "." in fs_type or "," in fs_type or fs_type in _NEEDS_HELPER:
        return True
    if source.startswith(("UUID=", "LABEL=", "PARTUUID=", "PARTLABEL=", "ID=")):
        return True
    return any(os.path.exists(f"{directory}/mount.{fs_type}") for directory in _HELPER_DIRECTORIES)


def has_umount_helper(fs_type: str) -> bool:
    """Whether umount(8) would run ``umount.<type>`` for it (a helper that stops a daemon, for example)."""
    kind = fs_type.partition(".")[0]
    return any(
        os.path.exists(f"{directory}/umount.{name}") for directory in _HELPER_DIRECTORIES for name in {kind, fs_type}
    )


def make_mount_args(
    source: str, target: str, fs_type: str, options: Sequence[str], mount_flags: Sequence[str] = ()
) -> list[str]:
    """Arguments of mount(8); what is empty is left out (MOUNT-02)."""
    args = list(mount_flags)
    if fs_type:
        args += ["-t", fs_type]
    if options:
        args += ["-o", ",".join(options)]
    # Nothing that comes after may be taken for an option.
    args.append("--")
    if source:
        args.append(source)
    return [*args, target]


def split_bind_options(
    options: Sequence[str], sensitive: Sequence[str] = ()
) -> tuple[bool, list[str], list[str], list[str]]:
    """(is a bind mount, options of step one, of step two, sensitive ones of both) (MOUNT-07)."""
    plain = [item for text in options for item in split_options(text, escaped=False)]
    secret = [item for text in sensitive for item in split_options(text, escaped=False)]
    bind = "bind" in plain or "bind" in secret
    first = ["bind"]
    if "_netdev" in plain or "_netdev" in secret:
        first.append("_netdev")
    second = ["bind", "remount", *(item for item in plain if item not in {"bind", "remount"})]
    rest = [item for item in secret if item not in {"bind", "remount", "_netdev"}]
    if "_netdev" in secret and "_netdev" not in second:
        second.append("_netdev")
    return bind, first, second, rest


@functools.cache
def systemd_run_works() -> bool:
    """Whether commands can be put into a systemd scope (MOUNT-04); found out once per process."""
    if shutil.which("systemd-run") is None:
        return False
    description = "--description=volumehost: does a transient scope work?"
    result = run_program(["systemd-run", description, "--scope", "true"], timeout=_PROBE_SECONDS)
    logger.debug("systemd-run --scope %s", "works" if result.returncode == 0 else "does not work here")
    return result.returncode == 0


def in_systemd_scope(command: Sequence[str], target: str) -> list[str]:
    """The command, wrapped so that what it leaves running belongs to a scope of its own."""
    return ["systemd-run", f"--description=Volume mount for {target}", "--scope", "--", *command]


def run_program(command: Sequence[str], *, timeout: float | None) -> ProgramResult:
    """Run it with an empty stdin; after ``timeout`` seconds its whole process group is killed.

    A daemon that it leaves behind may keep the pipe open, so output is read to a file, not to the end of a pipe
    (MOUNT-15).

    :raises MountError: it cannot be started.
    """
    output_fd = os.memfd_create("output", os.MFD_CLOEXEC)
    try:
        try:
            process = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=output_fd, stderr=output_fd, start_new_session=True
            )
        except OSError as error:
            raise MountError(
                error.strerror or str(error), action=f"run {command[0]}", subject=command[0], errno=error.errno
            ) from error
        timed_out = False
        try:
            returncode = process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            returncode = _kill(process)
        size = os.fstat(output_fd).st_size
        output = os.pread(output_fd, min(size, 64 * 1024), 0).decode(errors="replace").strip()
        return ProgramResult(returncode, output, timed_out)
    finally:
        os.close(output_fd)


def _kill(process: subprocess.Popen[bytes]) -> int:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        return process.wait(1.0)
    except subprocess.TimeoutExpired:
        # Stuck in the kernel: the signal takes effect when it comes back, and init or the next wait reaps it.
        return -int(signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class MountCommand:
    """One mount(8) to run. ``sensitive_options`` are used like the others and shown nowhere (MOUNT-03)."""

    source: str
    target: str
    fs_type: str
    options: Sequence[str]
    sensitive_options: Sequence[str] = field(repr=False)
    mount_flags: Sequence[str] = ()
    systemd: bool = True

    def run(self, timeout: float, program: Sequence[str] = ("mount",)) -> None:
        """Run it.

        :raises MountError: it failed; the text has the command, its masked arguments and its output (MOUNT-06).
        """
        masked = self._arguments([MASK] * len(self.sensitive_options))
        command = [*program, *self._arguments(self.sensitive_options)]
        if self.systemd and systemd_run_works():
            command = in_systemd_scope(command, self.target)
        logger.debug("running %s %s", program[0], masked)
        result = run_program(command, timeout=timeout)
        if result.returncode == 0:
            return
        status = f"no end within {timeout:g} s" if result.timed_out else _describe_status(result.returncode)
        raise MountError(
            f"mount failed: {status}\nMounting command: {program[0]}\nMounting arguments: {' '.join(masked)}\n"
            f"Output: {mask_secrets(result.output, self.sensitive_options)}",
            action=f"mount {self.source or self.fs_type} at {self.target}",
            subject=self.target,
        )

    def _arguments(self, sensitive_options: Sequence[str]) -> list[str]:
        options = [*self.options, *sensitive_options]
        return make_mount_args(self.source, self.target, self.fs_type, options, self.mount_flags)


def mount_by_program(command: MountCommand, *, mounter_path: str, timeout: float) -> None:
    """Mount by mount(8), a bind mount in two steps (MOUNT-02 to -10); undone when the second step fails.

    :raises MountError: as ``MountCommand.run``.
    """
    bind, first, second, secret = split_bind_options(command.options, command.sensitive_options)
    if not bind:
        use_alternative = mounter_path and command.fs_type in ALTERNATIVE_MOUNTER_FS_TYPES
        command.run(timeout, [mounter_path, "mount"] if use_alternative else ["mount"])
        return
    replace(command, options=first, sensitive_options=secret).run(timeout)
    try:
        replace(command, options=second, sensitive_options=secret).run(timeout)
    except MountError:
        result = run_program(["umount", "--", command.target], timeout=timeout)
        if result.returncode != 0:
            logger.warning("undoing the bind mount at %s failed, it stays: %s", command.target, result.output)
        raise


def mask_secrets(text: str, sensitive_options: Sequence[str]) -> str:
    """The text without any sensitive option, nor the value of one."""
    secrets = {item for option in sensitive_options for item in (option, option.partition("=")[2]) if item}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def _describe_status(returncode: int) -> str:
    if returncode < 0:
        return f"killed by signal {-returncode}"
    return f"exit status {returncode}"
