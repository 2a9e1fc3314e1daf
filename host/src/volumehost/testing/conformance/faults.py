"""Mounters in front of the real one: one that looks on, and one that works until it is told to fail."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING

from volumehost.errors import MountError

if TYPE_CHECKING:
    from volumehost.host_services import MountInterface, MountPoint


class PassingMounter:
    """Passes everything on, and calls ``before`` before each change."""

    def __init__(self, mounter: MountInterface) -> None:
        self._mounter = mounter

    def before(self, action: str, target: str) -> None:
        """Called before a ``mount`` or ``unmount`` of the target; what it raises, the plugin gets."""

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
        """Passed on."""
        self.before("mount", target)
        self._mounter.mount(
            source,
            target,
            fs_type,
            options,
            sensitive_options=sensitive_options,
            mount_flags=mount_flags,
            systemd=systemd,
            timeout=timeout,
        )

    def unmount(self, target: str, *, timeout: float | None = None) -> None:
        """Passed on."""
        self.before("unmount", target)
        self._mounter.unmount(target, timeout=timeout)

    def unmount_with_force(self, target: str, *, timeout: float) -> None:
        """Passed on."""
        self.before("unmount", target)
        self._mounter.unmount_with_force(target, timeout=timeout)

    def list_mounts(self) -> list[MountPoint]:
        """Passed on."""
        return self._mounter.list_mounts()

    def is_mount_point(self, path: str) -> bool:
        """Passed on."""
        return self._mounter.is_mount_point(path)

    def is_likely_not_mount_point(self, path: str) -> bool:
        """Passed on."""
        return self._mounter.is_likely_not_mount_point(path)

    def can_safely_skip_mount_point_check(self) -> bool:
        """Passed on."""
        return self._mounter.can_safely_skip_mount_point_check()

    def get_mount_refs(self, path: str) -> list[str]:
        """Passed on."""
        return self._mounter.get_mount_refs(path)


class FaultyMounter(PassingMounter):
    """While ``failing`` is set it refuses every mount, and counts them in ``refused``."""

    def __init__(self, mounter: MountInterface) -> None:
        super().__init__(mounter)
        self.failing = False
        self.refused = 0

    def before(self, action: str, target: str) -> None:
        """Refuse a mount; unmounting works always."""
        if self.failing and action == "mount":
            self.refused += 1
            raise MountError(
                "input/output error (made by the conformance check)",
                action=f"mount something at {target}",
                subject=target,
                errno=errno.EIO,
            )
