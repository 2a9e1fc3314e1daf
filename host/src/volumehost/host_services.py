"""Protocols of the services that a VolumeHost hands to plugins: mounting, host utilities, subpaths, events, listers.

The host implements them (``volumehost.mount``, ``volumehost.hosts``); plugins only ever see these Protocols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from volumehost.api.objects import Pod, SELinuxOptions

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class MountPoint:
    """One line of the mount table, escapes decoded (MOUNT-21, MOUNT-24 improved)."""

    mount_id: int
    parent_id: int
    major: int
    minor: int
    root: str
    path: str
    options: tuple[str, ...]
    optional_fields: tuple[str, ...]
    fs_type: str
    source: str
    super_options: tuple[str, ...]

    @property
    def shared(self) -> bool:
        """Whether mounts propagate from here to peers (HOSTUTIL-08); a mere slave does not count."""
        return any(item.startswith("shared:") for item in self.optional_fields)


@dataclass(frozen=True, slots=True)
class InstalledEntryPoint:
    """One entry point of an installed distribution: ``name = value`` (``module:attribute [extra, extra]``).

    ``identity`` tells one installation from the next: it changes when the distribution is installed anew.
    ``location`` is the directory (or zip) on ``sys.path`` that the distribution lies in.
    """

    distribution: str
    version: str
    name: str
    value: str
    location: str
    identity: tuple[int, ...] = ()


class MountInterface(Protocol):
    """The kernel's mounts (MOUNT-01). All methods raise MountError or one of its kinds."""

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
        """Mount ``source`` at ``target``.

        Options are those of ``mount(8)``; ``bind`` among them makes a bind mount in two steps (MOUNT-07 to -10).
        ``sensitive_options`` are used like the others and shown nowhere (MOUNT-03). With ``systemd`` a mount helper
        runs in a scope of its own where systemd is there, so that it outlives the host (MOUNT-04).
        """
        ...

    def unmount(self, target: str, *, timeout: float | None = None) -> None:
        """Unmount; success when nothing is mounted there (MOUNT-12, -13).

        :raises UnmountTimeoutError: it did not end within ``timeout`` seconds.
        """
        ...

    def unmount_with_force(self, target: str, *, timeout: float) -> None:
        """Unmount, and with force when the deadline passes (MOUNT-15)."""
        ...

    def list_mounts(self) -> list[MountPoint]:
        """The whole mount table of this process, in the kernel's order."""
        ...

    def is_mount_point(self, path: str) -> bool:
        """Whether something is mounted exactly there, bind mounts included (MOUNT-31).

        :raises FileNotFoundError: the path does not exist.
        :raises CorruptedMountError: the mount is there and does not answer (MOUNT-41).
        """
        ...

    def is_likely_not_mount_point(self, path: str) -> bool:
        """The quick test, negated (MOUNT-30)."""
        ...

    def can_safely_skip_mount_point_check(self) -> bool:
        """Whether unmounting what is not mounted is harmless here (MOUNT-13)."""
        ...

    def get_mount_refs(self, path: str) -> list[str]:
        """Other mount points that show the same directory (MOUNT-33, -35)."""
        ...


class HostUtils(Protocol):
    """Questions about paths of the host (HOSTUTIL rules)."""

    def device_opened(self, path: str) -> bool:
        """Whether somebody holds the device open exclusively (HOSTUTIL-01)."""
        ...

    def path_is_device(self, path: str) -> bool:
        """Whether it is a block or character device (HOSTUTIL-02)."""
        ...

    def get_file_type(self, path: str) -> str:
        """``Directory``, ``File``, ``Socket``, ``CharDevice`` or ``BlockDevice``, links followed (HOSTUTIL-03).

        :raises FileNotFoundError: the path does not exist.
        """
        ...

    def path_exists(self, path: str) -> bool:
        """Whether it exists, links followed; any error but "does not exist" is raised (HOSTUTIL-04)."""
        ...

    def make_dir(self, path: str) -> None:
        """Create the directory with its parents, 0755."""
        ...

    def make_file(self, path: str) -> None:
        """Create an empty file 0644 unless it exists; parents must exist (HOSTPATH-26)."""
        ...

    def eval_host_symlinks(self, path: str) -> str:
        """The path with every link resolved; a dangling link is an error (HOSTUTIL-05)."""
        ...

    def get_owner(self, path: str) -> tuple[int, int]:
        """(uid, gid), links followed (HOSTUTIL-06)."""
        ...

    def get_mode(self, path: str) -> int:
        """Permission bits with setuid, setgid and sticky."""
        ...

    def make_rshared(self, path: str) -> None:
        """Put the path on a shared mount, so that later mounts reach containers (HOSTUTIL-09)."""
        ...

    def selinux_enabled(self) -> bool:
        """Whether the kernel has SELinux on."""
        ...

    def selinux_file_label(self, options: SELinuxOptions) -> str:
        """The label of files that a container with these options may use, "" where there is none (SEL-01).

        :raises SELinuxLabelError: the options are no parts of a label, or the system's policy does not know it.
        """
        ...

    def get_selinux_support(self, path: str) -> bool:
        """Whether the mount that holds the path carries SELinux labels (HOSTUTIL-10)."""
        ...

    def get_selinux_mount_context(self, path: str) -> str:
        """The mount's ``context=`` option, "" when there is none (HOSTUTIL-11)."""
        ...


@dataclass(frozen=True, slots=True)
class Subpath:
    """One subPath of a container (SUBPATH-03): the volume's path and what is wanted inside it."""

    volume_mount_index: int
    path: str
    volume_name: str
    volume_path: str
    pod_dir: str
    container_name: str


class Subpather(Protocol):
    """Safe subpaths of volumes (SUBPATH rules)."""

    def safe_make_dir(self, subdir: str, base: str, mode: int) -> None:
        """Create ``base/subdir`` without ever leaving ``base`` (SUBPATH-10 to -17)."""
        ...

    def prepare_safe_subpath(self, subpath: Subpath) -> str:
        """Bind the subpath to a place that the container cannot change; returns that place (SUBPATH-20 to -29)."""
        ...

    def clean_sub_paths(self, pod_dir: str, volume_name: str) -> None:
        """Unmount and remove all subpaths of a volume (SUBPATH-30 to -35)."""
        ...


class EventRecorder(Protocol):
    """Records events on API objects."""

    def event(self, involved: Any, event_type: str, reason: str, message: str) -> None:
        """Record one: ``event_type`` is ``Normal`` or ``Warning``, ``reason`` one of the kubelet's."""
        ...


class RecycleEventRecorder(Protocol):
    """Takes ``(event_type, message)`` during a recycle; the caller forwards it to the volume (PLUG-21)."""

    def __call__(self, event_type: str, message: str) -> None:
        """Take one event: ``Normal`` or ``Warning``, and what happened."""
        ...


class Recycler(Protocol):
    """Runs a recycler pod, or scrubs in its stead where no cluster runs pods (RECYCLE-04 to -08)."""

    def recycle(self, pv_name: str, pod: Pod, recorder: RecycleEventRecorder) -> None:
        """Empty the pod's first volume; returns when it is empty, raises when it is not."""
        ...


class Lister(Protocol[T_co]):
    """Reads one kind of cluster-scoped object from a cache."""

    def get(self, name: str) -> T_co:
        """:raises ObjectNotFoundError: there is none of that name."""
        ...

    def list(self, selector: Mapping[str, str] | None = None) -> Sequence[T_co]:
        """All whose labels match."""
        ...


class InformerFactory(Protocol):
    """Keeps the caches behind the listers."""

    def start(self) -> None:
        """Begin to watch."""
        ...

    def wait_for_cache_sync(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds until every cache has seen its first list; whether it has."""
        ...

    def stop(self) -> None:
        """End every watch."""
        ...
