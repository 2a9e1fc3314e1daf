"""FakeMounter: a MountInterface that only remembers, for tests that should mount nothing (MOUNT-80 to -82).

It runs the same contract tests as the real mounter. Paths must exist, as they must for the kernel.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from volumehost.errors import CorruptedMountError, MountError
from volumehost.host_services import MountPoint
from volumehost.mount.mountinfo import split_options


@dataclass(frozen=True, slots=True)
class FakeAction:
    """One entry of the log: ``action`` is ``mount`` or ``unmount``."""

    action: str
    target: str
    source: str = ""
    fs_type: str = ""


class FakeMounter:
    """Keeps a list of mounts and a log of what was asked.

    :param mounts: what is mounted at the beginning; ``mount_point`` makes entries.
    :param unmount_hook: called with the target before each unmount; what it raises is the unmount's error.
    :param skip_mount_point_check: what ``can_safely_skip_mount_point_check`` answers.
    """

    def __init__(
        self,
        mounts: Iterable[MountPoint] = (),
        *,
        unmount_hook: Callable[[str], None] | None = None,
        skip_mount_point_check: bool = False,
    ) -> None:
        self._lock = threading.RLock()
        self._mounts = list(mounts)
        self._log: list[FakeAction] = []
        self._check_errors: dict[str, Exception] = {}
        self._mount_errors: dict[str, Exception] = {}
        self._unmount_hook = unmount_hook
        self._skip = skip_mount_point_check
        self._next_id = 1000

    # --- for the test -------------------------------------------------------------------------------------

    @property
    def log(self) -> list[FakeAction]:
        """A copy of what was done so far, in order."""
        with self._lock:
            return list(self._log)

    def reset_log(self) -> None:
        """Forget what was done; mounts stay."""
        with self._lock:
            self._log.clear()

    def fail_check(self, path: str, error: Exception) -> None:
        """Make every test of the path raise, until the path is unmounted (MOUNT-81)."""
        with self._lock:
            self._check_errors[os.path.realpath(path)] = error

    def fail_mount(self, target: str, error: Exception | None) -> None:
        """Make mounting at the target raise; None makes it work again."""
        with self._lock:
            if error is None:
                self._mount_errors.pop(target, None)
            else:
                self._mount_errors[target] = error

    # --- MountInterface -----------------------------------------------------------------------------------

    def mount(
        self,
        source: str,
        target: str,
        fs_type: str = "",
        options: Sequence[str] = (),
        *,
        sensitive_options: Sequence[str] = (),
        mount_flags: Sequence[str] = (),  # noqa: ARG002 - part of the interface
        systemd: bool = True,  # noqa: ARG002 - part of the interface
        timeout: float | None = None,  # noqa: ARG002 - part of the interface
    ) -> None:
        """Remember the mount. Sensitive options are used for ``bind`` and ``remount`` and kept nowhere."""
        plain = [item for text in options for item in split_options(text, escaped=False)]
        every = {*plain, *(item for text in sensitive_options for item in split_options(text, escaped=False))}
        with self._lock:
            if target in self._mount_errors:
                raise self._mount_errors[target]
            if not os.path.exists(target):
                raise _mount_error(f"mount {source or fs_type} at {target}", target)
            resolved = os.path.realpath(target)
            if "remount" in every:
                self._remount(resolved, tuple(plain))
                return
            device, fs_type = self._source_of(source, fs_type, bind=bool(every & {"bind", "rbind"}))
            self._add(device, resolved, fs_type, tuple(item for item in plain if item not in {"bind", "rbind"}))
            self._log.append(FakeAction("mount", target, source, fs_type))

    def _source_of(self, source: str, fs_type: str, *, bind: bool) -> tuple[str, str]:
        """A bind mount has the device of the mount that its source is (MOUNT-80)."""
        if not bind:
            return source, fs_type
        if not os.path.exists(source):
            raise _mount_error(f"bind {source}", source)
        resolved = os.path.realpath(source)
        for entry in reversed(self._mounts):
            if entry.path == resolved:
                return entry.source, entry.fs_type
        return resolved, fs_type

    def _add(self, device: str, path: str, fs_type: str, options: tuple[str, ...]) -> None:
        minor = next((entry.minor for entry in self._mounts if entry.source == device and device.startswith("/")), None)
        self._next_id += 1
        entry = mount_point(device, path, fs_type, options, mount_id=self._next_id)
        self._mounts.append(replace(entry, minor=self._next_id if minor is None else minor))

    def _remount(self, path: str, options: tuple[str, ...]) -> None:
        kept = tuple(option for option in options if option not in {"remount", "bind"})
        for position in range(len(self._mounts) - 1, -1, -1):
            if self._mounts[position].path == path:
                self._mounts[position] = replace(self._mounts[position], options=kept or ("rw",))
                return
        raise MountError("nothing is mounted there", action=f"remount {path}", subject=path, errno=errno.EINVAL)

    def unmount(self, target: str, *, timeout: float | None = None) -> None:  # noqa: ARG002 - part of the interface
        """Forget every mount at the target (MOUNT-80)."""
        if self._unmount_hook is not None:
            self._unmount_hook(target)
        resolved = os.path.join(os.path.realpath(os.path.dirname(target)), os.path.basename(target))
        with self._lock:
            self._mounts = [entry for entry in self._mounts if entry.path != resolved]
            self._check_errors.pop(resolved, None)
            self._log.append(FakeAction("unmount", target))

    def unmount_with_force(self, target: str, *, timeout: float) -> None:
        """The same as ``unmount``."""
        self.unmount(target, timeout=timeout)

    def list_mounts(self) -> list[MountPoint]:
        """A copy of the mounts (MOUNT-82)."""
        with self._lock:
            return list(self._mounts)

    def is_mount_point(self, path: str) -> bool:
        """Whether a mount at the path, links resolved, is remembered."""
        return not self.is_likely_not_mount_point(path)

    def is_likely_not_mount_point(self, path: str) -> bool:
        """An injected error first, then whether the path exists, then the list (MOUNT-80)."""
        resolved = os.path.realpath(path)
        with self._lock:
            if resolved in self._check_errors:
                raise self._check_errors[resolved]
            os.stat(path)
            return all(entry.path != resolved for entry in self._mounts)

    def can_safely_skip_mount_point_check(self) -> bool:
        """What the constructor was told."""
        return self._skip

    def get_mount_refs(self, path: str) -> list[str]:
        """Other mounts with the device of the mount at the path, or of the path itself (MOUNT-81)."""
        resolved = os.path.realpath(path)
        with self._lock:
            error = self._check_errors.get(resolved)
            if isinstance(error, CorruptedMountError) or not os.path.exists(path):
                return []
            if error is not None:
                raise error
            own = next((entry for entry in reversed(self._mounts) if entry.path == resolved), None)
            if own is None:
                return [entry.path for entry in self._mounts if entry.source == resolved]
            return [entry.path for entry in self._mounts if entry.minor == own.minor and entry is not own]


def mount_point(
    source: str, path: str, fs_type: str = "", options: tuple[str, ...] = ("rw",), *, mount_id: int = 1
) -> MountPoint:
    """An entry for the list of a FakeMounter."""
    return MountPoint(
        mount_id=mount_id,
        parent_id=1,
        major=0,
        minor=mount_id,
        root="/",
        path=path,
        options=options or ("rw",),
        optional_fields=(),
        fs_type=fs_type,
        source=source,
        super_options=("rw",),
    )


def _mount_error(action: str, subject: str) -> MountError:
    return MountError(os.strerror(errno.ENOENT), action=action, subject=subject, errno=errno.ENOENT)
