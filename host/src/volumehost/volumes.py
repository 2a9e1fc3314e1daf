"""What plugins return, and the small values that go in and out of it.

The Protocols are the Go original's ``Volume``, ``Mounter``, ``Attacher`` and so on. None of these objects keeps state
that must survive a restart (VOL-12). All sizes are in bytes, all times in seconds, all paths absolute.

Errors: a method that fails raises. ``TransientOperationError`` says that certainly nothing happened,
``UncertainProgressError`` that it may still be going on; anything else is final (ERR-01 to -03). A plugin must not
raise a final error once its mount exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from volumehost.api.objects import Node, PersistentVolume, PersistentVolumeClaim, Pod, TopologySelectorTerm
    from volumehost.host_services import EventRecorder
    from volumehost.spec import Spec


# --- values -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes of a volume, valid only after ``set_up`` (VOL-03).

    ``managed``: the host owns the content and may change ownership and labels.
    """

    read_only: bool = False
    managed: bool = False
    selinux_relabel: bool = False


@dataclass(frozen=True, slots=True)
class MounterArgs:
    """Arguments of ``Mounter.set_up`` (VOL-04).

    ``desired_size`` is the local ephemeral size limit in bytes. ``reconstructed_volume``: the volume was found on
    disk after a restart. ``is_remount``: this call refreshes a mounted volume, and a plugin must not destroy
    working state when it fails. ``volume_ownership_applicator`` applies the group to a directory in the plugin's
    stead: ``volumehost.sdk.apply_ownership`` uses it where there is one.
    """

    fs_user: int | None = None
    fs_group: int | None = None
    fs_group_change_policy: str | None = None
    desired_size: int | None = None
    selinux_label: str = ""
    recorder: EventRecorder | None = None
    volume_ownership_applicator: Callable[[Mounter, str, MounterArgs], None] | None = None
    reconstructed_volume: bool = False
    is_remount: bool = False


@dataclass(frozen=True, slots=True)
class DeviceMounterArgs:
    """Arguments of ``DeviceMounter.mount_device`` (VOL-10)."""

    fs_group: int | None = None
    selinux_label: str = ""


@dataclass(frozen=True, slots=True)
class VolumeMetrics:
    """Usage of a volume (VOL-02): bytes and inode counts; None where unknown.

    ``time`` is seconds since the epoch, taken before measuring (METRICS-10). ``used`` and ``available`` need not
    add up to ``capacity``: the filesystem may be shared. ``abnormal`` and ``message`` report volume health. ``source``
    says how it was measured (``du``, ``statfs``, ``block``), for the host's own metrics (METRICS-09); "" where whoever
    measures counts that itself.
    """

    time: float
    used: int | None = None
    capacity: int | None = None
    available: int | None = None
    inodes_used: int | None = None
    inodes: int | None = None
    inodes_free: int | None = None
    abnormal: bool | None = None
    message: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class ReconstructedVolume:
    """What ``construct_volume_spec`` found out (SPEC-08).

    ``complete`` is False when the spec lacks details that only the pod's manifest has; it then serves for
    teardown and for naming, never for a new mount.
    """

    spec: Spec
    selinux_mount_context: str = ""
    complete: bool = True


@dataclass(frozen=True, slots=True)
class FoundDeviceMount:
    """A device that is mounted globally or may be, found by ``find_device_mounts``.

    ``spec`` names the volume and is enough for ``get_volume_name``. ``device_mount_path`` is where
    ``get_device_mount_path`` puts it; for a spec in Block mode it is the block volume's global map path.
    """

    spec: Spec
    device_mount_path: str


@dataclass(frozen=True, slots=True)
class VolumeOptions:
    """What a provisioner is asked for (SPEC-06). The volume that it makes must match ``pvc``."""

    pv_name: str
    pvc: PersistentVolumeClaim
    persistent_volume_reclaim_policy: str = "Delete"
    mount_options: Sequence[str] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeResizeOptions:
    """Options of ``node_expand`` (SPEC-07); sizes in bytes.

    ``device_mount_path`` is the global mount where the volume is attachable, otherwise where it is mounted for the
    pod. ``device_stage_path`` is where it is staged.
    """

    volume_spec: Spec
    device_path: str
    device_mount_path: str
    device_stage_path: str
    new_size: int
    old_size: int


# --- volumes ----------------------------------------------------------------------------------------------


class MetricsProvider(Protocol):
    """Measures a volume."""

    def get_metrics(self) -> VolumeMetrics:
        """Usage now.

        :raises NotSupportedMetricsError: the volume has none (METRICS-02).
        :raises NoPathMetricsError: there is no path to measure.
        :raises FsInfoMetricsError: the filesystem did not answer.
        """
        ...


class Volume(MetricsProvider, Protocol):
    """A volume of one pod (VOL-01)."""

    def get_path(self) -> str:
        """Where the volume's content is, "" when it has no path."""
        ...


class BlockVolume(MetricsProvider, Protocol):
    """A raw block volume of one pod (VOL-01)."""

    def get_global_map_path(self, spec: Spec) -> str:
        """The directory that holds one link per pod to the device."""
        ...

    def get_pod_device_map_path(self) -> tuple[str, str]:
        """The pod's own directory and the name of its link to the device."""
        ...

    def supports_metrics(self) -> bool:
        """Whether ``get_metrics`` can work."""
        ...


class Mounter(Volume, Protocol):
    """Mounts a volume for a pod (VOL-05). Both set-ups are idempotent and may run again after success."""

    def set_up(self, args: MounterArgs) -> None:
        """Mount (or fill) the volume at the path that the plugin chooses, which ``get_path`` tells."""
        ...

    def set_up_at(self, directory: str, args: MounterArgs) -> None:
        """The same at the given directory, which may be another plugin's."""
        ...

    def get_attributes(self) -> Attributes:
        """Attributes of the volume; call after ``set_up``."""
        ...


class Unmounter(Volume, Protocol):
    """Takes a volume away from a pod, from recoverable state alone (VOL-06). Success when it is gone already."""

    def tear_down(self) -> None:
        """Unmount (or empty) the volume at the plugin's own path and remove the path."""
        ...

    def tear_down_at(self, directory: str) -> None:
        """The same at the given directory."""
        ...


class Provisioner(Protocol):
    """Creates volumes (VOL-09)."""

    def provision(
        self, selected_node: Node | None = None, allowed_topologies: Sequence[TopologySelectorTerm] = ()
    ) -> PersistentVolume:
        """Create the volume and return the PersistentVolume that describes it."""
        ...


class Deleter(Volume, Protocol):
    """Deletes a volume's storage (VOL-09)."""

    def delete(self) -> None:
        """Delete and wait until done; success when it is gone already.

        :raises DeletedVolumeInUseError: still in use, to be tried again.
        """
        ...


class Attacher(Protocol):
    """Attaches volumes to nodes (VOL-10)."""

    def attach(self, spec: Spec, node_name: str) -> str:
        """Attach and return the device path on the node; the same path when it is attached already."""
        ...

    def volumes_are_attached(self, specs: Sequence[Spec], node_name: str) -> Mapping[Spec, bool]:
        """For each spec, whether it is still attached to the node."""
        ...

    def wait_for_attach(self, spec: Spec, device_path: str, pod: Pod, timeout: float) -> str:
        """Wait at most ``timeout`` seconds for the device to appear; return its real path."""
        ...


class Detacher(Protocol):
    """Detaches volumes from nodes (VOL-11)."""

    def detach(self, volume_name: str, node_name: str) -> None:
        """Detach. ``volume_name`` is what the plugin's ``get_volume_name`` gave, not the unique name."""
        ...


@runtime_checkable
class DeferredAttacher(Protocol):
    """What an Attacher and Detacher may offer besides when somebody else attaches: nobody has to wait in a thread.

    A controller that finds it on the object calls these instead of ``attach`` and ``detach``, again after a while and
    whenever a VolumeAttachment of the volume has changed.
    """

    def begin_attach(self, spec: Spec, node_name: str) -> str | None:
        """See to it that the volume gets attached; the device path when it is, None while that is under way.

        Raises what ``attach`` raises when whoever attaches says that it failed.
        """
        ...

    def begin_detach(self, volume_name: str, node_name: str) -> bool:
        """See to it that the volume gets detached; whether it is. ``volume_name`` is what ``detach`` takes."""
        ...


class DeviceMounter(Protocol):
    """Mounts a device once per node, before pods bind to it (VOL-10)."""

    def get_device_mount_path(self, spec: Spec) -> str:
        """The global path at which the device is to be mounted; only computed: ``volumehost plan`` asks for it too."""
        ...

    def mount_device(self, spec: Spec, device_path: str, device_mount_path: str, args: DeviceMounterArgs) -> None:
        """Mount the device at the global path; idempotent."""
        ...


class DeviceUnmounter(Protocol):
    """Unmounts what a DeviceMounter mounted (VOL-11)."""

    def unmount_device(self, device_mount_path: str) -> None:
        """Unmount; success when the path is gone already."""
        ...


class BlockVolumeMapper(BlockVolume, Protocol):
    """Maps a raw block volume for a pod; the minimum (VOL-07)."""


class CustomBlockVolumeMapper(BlockVolumeMapper, Protocol):
    """A mapper with work of its own (VOL-07)."""

    def set_up_device(self) -> str:
        """Prepare the device on the node; returns the staging path."""
        ...

    def map_pod_device(self) -> str:
        """Publish for the pod; returns the device path, "" for the one that the attacher gave."""
        ...

    def get_staging_path(self) -> str:
        """Where ``set_up_device`` stages."""
        ...


class BlockVolumeUnmapper(BlockVolume, Protocol):
    """Takes a block volume away from a pod; the minimum (VOL-08)."""


class CustomBlockVolumeUnmapper(BlockVolumeUnmapper, Protocol):
    """An unmapper with work of its own (VOL-08)."""

    def tear_down_device(self, map_path: str, device_path: str) -> None:
        """Undo ``set_up_device``; idempotent."""
        ...

    def unmap_pod_device(self) -> None:
        """Undo ``map_pod_device``; idempotent."""
        ...


class SpecTranslator(Protocol):
    """Turns specs of one kind of source into specs that another plugin serves (CSI-MIG-01)."""

    def __call__(self, spec: Spec, namespace: str) -> Spec:
        """The spec to go on with; the same one for the same spec, since controllers and nodes ask for themselves.

        It must need nothing but the spec, and be quick.

        :param spec: of a pod's volume or of a PersistentVolume; borrowed.
        :param namespace: the pod's, "" for a PersistentVolume without a pod.
        """
        ...


class MetricsCollector(Protocol):
    """What ``get_metrics_collectors`` hands out; a collector in the sense of prometheus-client.

    A family whose name another collector has too is merged with it, where both have the same type. One that the host
    itself exports, such as ``storage_operation_duration_seconds``, takes further operations of the plugin's own.
    """

    def collect(self) -> Iterable[Any]:
        """Families (``prometheus_client.Metric``) as they are now; labels must have few values. Must not wait."""
        ...
