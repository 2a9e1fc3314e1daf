"""Errors of the machine: paths, privileges, the root directory, mounts, devices, and what is measured on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from volumehost.errors.base import VolumeHostError

if TYPE_CHECKING:
    from volumehost.volumes import VolumeMetrics


class NotAvailableOnHostError(VolumeHostError):
    """This kind of host (standalone node, controller) does not offer what was asked (HOST-03, ADHOST-02)."""


class MissingPrivilegeError(VolumeHostError):
    """The process lacks a privilege or the machine a facility; raised before anything was changed."""


class UnsafePathError(VolumeHostError):
    """A path from a manifest, a driver or the disk would lead outside of where it belongs."""


class SELinuxLabelError(VolumeHostError):
    """An SELinux label cannot be made of what a pod says, or does not go with another that a volume has."""


class OwnershipError(VolumeHostError):
    """A volume's group and permissions could not be applied: a directory could not be read (FSGRP-08)."""


class PayloadError(VolumeHostError):
    """The files of a volume (a secret's keys, say) are invalid or could not be written (ATOMIC-04)."""


class RemovalError(VolumeHostError):
    """A path could not be removed; ``paths`` lists what is left and why it was kept stands in the reason (BR-70)."""

    def __init__(
        self, reason: str, *, paths: Sequence[str] = (), action: str = "", subject: str = "", hint: str = ""
    ) -> None:
        super().__init__(reason, action=action, subject=subject, hint=hint)
        self.paths = tuple(paths)


class RootDirectoryError(VolumeHostError):
    """The root directory cannot be used: not a directory, read-only, full, not canonical (LAYOUT-06)."""


class RootDirectoryLockedError(RootDirectoryError):
    """Another volume manager works on the root directory; ``pid`` is its process when known."""

    def __init__(
        self, reason: str, *, pid: int | None = None, action: str = "", subject: str = "", hint: str = ""
    ) -> None:
        super().__init__(reason, action=action, subject=subject, hint=hint)
        self.pid = pid


class AgentGoneError(VolumeHostError):
    """No agent answers on the control socket of the root directory: it does not run, or ended meanwhile."""


class ContainerRuntimeError(VolumeHostError):
    """A container runtime cannot do, or cannot be told, what a mount of a container asks for; ``subject`` is the path.

    Nothing was changed; another runtime may be able to.
    """


class MountError(VolumeHostError):
    """A mount failed; ``errno`` is the kernel's when there was one. Options marked sensitive are masked."""

    def __init__(
        self, reason: str, *, action: str = "", subject: str = "", hint: str = "", errno: int | None = None
    ) -> None:
        super().__init__(reason, action=action, subject=subject, hint=hint)
        self.errno = errno


class MountTimeoutError(MountError):
    """A mount did not end within its deadline; it may still come about, so it is uncertain (ERR-02)."""


class UnmountError(MountError):
    """An unmount failed; busy mounts name the processes that hold them where that can be known."""


class UnmountTimeoutError(UnmountError):
    """An unmount did not end within its deadline; it may still be going on."""


class StillMountedError(UnmountError):
    """A removal met a live mount and stopped in front of it (RMALL-02, BR-62)."""


class CorruptedMountError(MountError):
    """The mount is there but answers ENOTCONN, ESTALE and the like (MOUNT-41, BR-64)."""


class InconsistentMountTableError(MountError):
    """The mount table changed in every one of the reads; retry (MOUNT-25, MOUNT-34)."""


class FormatError(MountError):
    """Formatting, checking or mounting a device failed; ``kind`` is one of MOUNT-69.

    Kinds: ``FilesystemMismatch``, ``HasFilesystemErrors``, ``UnformattedReadOnly``, ``FormatFailed``,
    ``GetDiskFormatFailed``, ``UnknownMountError``.
    """

    def __init__(self, reason: str, *, kind: str, action: str = "", subject: str = "", hint: str = "") -> None:
        super().__init__(reason, action=action, subject=subject, hint=hint)
        self.kind = kind


class MetricsError(VolumeHostError):
    """Volume metrics cannot be had; ``code`` is the reference's number (METRICS-01).

    ``partial`` holds what was found out before the failure (METRICS-03).
    """

    code: ClassVar[int] = 0
    partial: VolumeMetrics | None = None


class NotSupportedMetricsError(MetricsError):
    """The volume has no metrics."""

    code = 1


class NoPathMetricsError(MetricsError):
    """No path is defined to measure."""

    code = 2


class FsInfoMetricsError(MetricsError):
    """The filesystem did not answer."""

    code = 3
