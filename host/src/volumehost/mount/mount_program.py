"""Runs mount(8) and umount(8) for filesystems that need a helper program: nfs, cifs, fuse and the like.

Called by the mounter; everything else is mounted by system call, some two hundred times faster. Under systemd a
helper runs in a scope of its own, so that a FUSE daemon outlives a restart of the host (MOUNT-04, BR-68).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from volumehost.errors import MountError, MountTimeoutError
from volumehost.mount.mountinfo import split_options
from volumehost.mount.places import LOCAL_FS_TYPES
from volumehost.mount.programs import Programs

logger = logging.getLogger(__name__)

MASK: Final = "<masked>"

#: Types that never work without their helper or mount(8)'s own handling.
_NEEDS_HELPER: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "glusterfs", "ceph", "fuse", "davfs", "lustre", "ntfs", "ntfs-3g", "zfs"}
)
#: Types for which an alternative mounter may be configured (MOUNT-05).
ALTERNATIVE_MOUNTER_FS_TYPES: Final = frozenset({"nfs", "glusterfs", "ceph", "cifs"})
_HELPER_DIRECTORIES: Final = ("/sbin", "/usr/sbin", "/sbin/fs.d", "/sbin/fs", "/usr/bin", "/usr/local/sbin")
_PROBE_SECONDS: Final = 10.0


def needs_program(fs_type: str, source: str) -> bool:
    """Whether mounting takes mount(8): no type to pass to the kernel, a tag as source, or a type with a helper."""
    if fs_type in LOCAL_FS_TYPES:
        return fs_type in _NEEDS_HELPER
    if fs_type in {"", "auto", "none"} or "." in fs_type or "," in fs_type or fs_type in _NEEDS_HELPER:
        return True
    if source.startswith(("UUID=", "LABEL=", "PARTUUID=", "PARTLABEL=", "ID=")):
        return True
    return any(os.path.exists(f"{directory}/mount.{fs_type}") for directory in _HELPER_DIRECTORIES)


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


def in_systemd_scope(command: Sequence[str], target: str) -> list[str]:
    """The command, wrapped so that what it leaves running belongs to a scope of its own."""
    return ["systemd-run", f"--description=Volume mount for {target}", "--scope", "--", *command]


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

    def arguments(self, sensitive_options: Sequence[str]) -> list[str]:
        """Arguments of mount(8) with these as the sensitive options."""
        options = [*self.options, *sensitive_options]
        return make_mount_args(self.source, self.target, self.fs_type, options, self.mount_flags)


class MountProgram:
    """Runs mount(8) for one mounter.

    :param mounter_path: an alternative to it for a few network filesystems (MOUNT-05).
    """

    def __init__(self, programs: Programs | None = None, *, mounter_path: str = "") -> None:
        self._programs = programs if programs is not None else Programs()
        self._mounter_path = mounter_path
        self._systemd_works: bool | None = None

    def mount(self, command: MountCommand, timeout: float) -> None:
        """Mount, a bind mount in two steps (MOUNT-02 to -10); undone when the second step fails.

        :raises MountError: it failed; the text has the command, its masked arguments and its output (MOUNT-06).
        """
        bind, first, second, secret = split_bind_options(command.options, command.sensitive_options)
        if not bind:
            use_alternative = self._mounter_path and command.fs_type in ALTERNATIVE_MOUNTER_FS_TYPES
            self._run(command, timeout, [self._mounter_path, "mount"] if use_alternative else ["mount"])
            return
        self._run(replace(command, options=first, sensitive_options=secret), timeout, ["mount"])
        try:
            self._run(replace(command, options=second, sensitive_options=secret), timeout, ["mount"])
        except MountError:
            result = self._programs.run(["umount", "--", command.target], timeout=timeout)
            if result.returncode != 0:
                logger.warning("undoing the bind mount at %s failed, it stays: %s", command.target, result.output)
            raise

    def _run(self, command: MountCommand, timeout: float, program: Sequence[str]) -> None:
        masked = command.arguments([MASK] * len(command.sensitive_options))
        words = [*program, *command.arguments(command.sensitive_options)]
        if command.systemd and self.systemd_works():
            words = in_systemd_scope(words, command.target)
        logger.debug("running %s %s", program[0], masked)
        result = self._programs.run(words, timeout=timeout)
        if result.returncode == 0:
            return
        kind = MountTimeoutError if result.timed_out else MountError
        raise kind(
            f"mount failed: {result.describe()}\nMounting command: {program[0]}\n"
            f"Mounting arguments: {' '.join(masked)}\nOutput: {mask_secrets(result.output, command.sensitive_options)}",
            action=f"mount {command.source or command.fs_type} at {command.target}",
            subject=command.target,
        )

    def systemd_works(self) -> bool:
        """Whether commands can be put into a systemd scope (MOUNT-04); found out once."""
        if self._systemd_works is None:
            description = "--description=volumehost: does a transient scope work?"
            try:
                result = self._programs.run(["systemd-run", description, "--scope", "true"], timeout=_PROBE_SECONDS)
            except MountError:
                self._systemd_works = False
            else:
                self._systemd_works = result.returncode == 0
            logger.debug("systemd-run --scope %s", "works" if self._systemd_works else "does not work here")
        return self._systemd_works


def mask_secrets(text: str, sensitive_options: Sequence[str]) -> str:
    """The text without any sensitive option, nor the value of one (values of one or two characters say nothing)."""
    secrets = {item for option in sensitive_options for item in (option, option.partition("=")[2]) if len(item) > 2}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text
