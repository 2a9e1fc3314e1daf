"""Storage drivers: what the controllers and the command line ask of a driver outside of this process, a CSI driver say.

A plugin that fronts such drivers hands out its :class:`StorageDrivers` with the hook ``get_storage_drivers``. The
controllers (``volumehost.control``) do what the external-provisioner, -attacher, -resizer and -snapshotter do in a
cluster; they speak to :class:`StorageDriver` alone, so neither they nor the host know of gRPC.

Sizes are ints in bytes, times in seconds, capability names those of the CSI specification (CSI-WIRE-04 to -07).
Every call that fails raises a kind of ``StorageDriverError``; see there which of them are final.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

#: Segments of a topology: ``prefix/name`` to value (CSI-WIRE-12).
Topology = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DriverCapabilities:
    """What a driver says it can do; names without the enum's prefix, such as ``CREATE_DELETE_VOLUME``.

    ``plugin`` holds the services (CSI-WIRE-06), ``expansion`` is a subset of ``ONLINE`` and ``OFFLINE``.
    """

    plugin: frozenset[str] = frozenset()
    expansion: frozenset[str] = frozenset()
    controller: frozenset[str] = frozenset()
    node: frozenset[str] = frozenset()

    def controls(self, capability: str) -> bool:
        """Whether there is a controller service with that capability."""
        return "CONTROLLER_SERVICE" in self.plugin and capability in self.controller


@dataclass(frozen=True, slots=True)
class VolumeCapability:
    """How a volume is to be used: ``access_mode`` is CSI's name (``SINGLE_NODE_WRITER``); block or mounted."""

    access_mode: str
    block: bool = False
    fs_type: str = ""
    mount_flags: Sequence[str] = ()
    volume_mount_group: str = ""


@dataclass(frozen=True, slots=True)
class CreateVolumeRequest:
    """A volume to create. ``limit_bytes`` 0 is no limit; at most one of the two sources is set.

    ``requisite`` and ``preferred`` are topologies, empty where the driver has none. Repeating a request with the same
    name returns the same volume.
    """

    name: str
    capabilities: Sequence[VolumeCapability]
    required_bytes: int
    limit_bytes: int = 0
    parameters: Mapping[str, str] = field(default_factory=dict)
    mutable_parameters: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    source_snapshot: str = ""
    source_volume: str = ""
    requisite: Sequence[Topology] = ()
    preferred: Sequence[Topology] = ()


@dataclass(frozen=True, slots=True)
class CreatedVolume:
    """What the driver made. ``capacity_bytes`` 0 is unknown; ``context`` goes to every node call."""

    handle: str
    capacity_bytes: int
    context: Mapping[str, str] = field(default_factory=dict, repr=False)
    source_snapshot: str = ""
    source_volume: str = ""
    accessible_topology: Sequence[Topology] = ()


@dataclass(frozen=True, slots=True)
class ExpandedVolume:
    """The size that the volume has now, and whether a node that uses it has to do something about it."""

    capacity_bytes: int
    node_expansion_required: bool


@dataclass(frozen=True, slots=True)
class DriverSnapshot:
    """A snapshot. ``creation_time`` is seconds since the epoch; a new volume can be made from it once it is ready."""

    handle: str
    source_volume: str
    size_bytes: int
    creation_time: float
    ready_to_use: bool


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much can still be created; ``maximum_volume_size`` is None when the driver does not say."""

    available_bytes: int
    maximum_volume_size: int | None = None
    minimum_volume_size: int | None = None


@dataclass(frozen=True, slots=True)
class ListedVolume:
    """One volume of a driver; ``abnormal`` None means that it tells no condition."""

    handle: str
    capacity_bytes: int
    published_node_ids: Sequence[str] = ()
    abnormal: bool | None = None
    message: str = ""


class StorageDriver(Protocol):
    """One driver that is registered and answers. Safe for threads; cheap to get, never kept over a restart of it.

    Calls are those of CSI's controller service, with the same idempotency (CSI-WIRE-13). At most one call per volume
    is on its way (CSI-WIRE-14). ``timeout`` is in seconds, None for the driver's default.
    """

    @property
    def name(self) -> str:
        """The name that it registered with."""
        ...

    @property
    def node_id(self) -> str:
        """This node as the driver calls it; "" when it has no node service."""
        ...

    def capabilities(self) -> DriverCapabilities:
        """What it can do; asked once for each registration."""
        ...

    def create_volume(self, request: CreateVolumeRequest, *, timeout: float | None = None) -> CreatedVolume:
        """Create a volume, or find the one that an earlier call with this name created."""
        ...

    def delete_volume(self, handle: str, secrets: Mapping[str, str], *, timeout: float | None = None) -> None:
        """Delete it; success when it is gone already.

        :raises DeletedVolumeInUseError: it is still in use.
        """
        ...

    def publish_volume(
        self,
        handle: str,
        node_id: str,
        capability: VolumeCapability,
        *,
        read_only: bool,
        context: Mapping[str, str],
        secrets: Mapping[str, str],
        timeout: float | None = None,
    ) -> Mapping[str, str]:
        """Attach it to the node; returns the publish context."""
        ...

    def unpublish_volume(
        self, handle: str, node_id: str, secrets: Mapping[str, str], *, timeout: float | None = None
    ) -> None:
        """Detach it from the node; success when it is detached already."""
        ...

    def expand_volume(
        self,
        handle: str,
        required_bytes: int,
        capability: VolumeCapability | None,
        secrets: Mapping[str, str],
        *,
        timeout: float | None = None,
    ) -> ExpandedVolume:
        """Grow it to at least ``required_bytes``; success when it has that size already."""
        ...

    def modify_volume(
        self,
        handle: str,
        mutable_parameters: Mapping[str, str],
        secrets: Mapping[str, str],
        *,
        timeout: float | None = None,
    ) -> None:
        """Change its attributes (VolumeAttributesClass)."""
        ...

    def validate_volume(
        self,
        handle: str,
        capabilities: Sequence[VolumeCapability],
        *,
        context: Mapping[str, str],
        parameters: Mapping[str, str],
        secrets: Mapping[str, str],
        timeout: float | None = None,
    ) -> str:
        """Whether it can be used in all these ways: "" when it can, otherwise the driver's reason."""
        ...

    def get_capacity(
        self,
        *,
        capabilities: Sequence[VolumeCapability] = (),
        parameters: Mapping[str, str] | None = None,
        topology: Topology | None = None,
        timeout: float | None = None,
    ) -> Capacity:
        """How much can still be created there."""
        ...

    def list_volumes(self, *, timeout: float | None = None) -> Iterator[ListedVolume]:
        """Every volume; pages are fetched as they are needed."""
        ...

    def create_snapshot(
        self,
        source_volume: str,
        name: str,
        parameters: Mapping[str, str],
        secrets: Mapping[str, str],
        *,
        timeout: float | None = None,
    ) -> DriverSnapshot:
        """Begin a snapshot, or find the one that an earlier call with this name began."""
        ...

    def delete_snapshot(self, handle: str, secrets: Mapping[str, str], *, timeout: float | None = None) -> None:
        """Delete it; success when it is gone already."""
        ...

    def get_snapshot(
        self, handle: str, secrets: Mapping[str, str], *, timeout: float | None = None
    ) -> DriverSnapshot | None:
        """One snapshot as it is now, None when the driver has none of that handle."""
        ...

    def list_snapshots(
        self, secrets: Mapping[str, str], *, source_volume: str = "", timeout: float | None = None
    ) -> Iterator[DriverSnapshot]:
        """Every snapshot, or those of one volume; pages are fetched as they are needed."""
        ...


class DriverOrigin(StrEnum):
    """How a driver came to be known."""

    #: Its registrar put a socket into the registration directory (CSI-WATCH).
    SOCKET = "socket"
    #: ``drivers register NAME ENDPOINT``.
    COMMAND = "registered"
    #: An installed distribution declares it in the entry point group ``volumehost.csi_drivers``.
    INSTALLED = "installed"


class DriverState(StrEnum):
    """Where a driver is in its life."""

    #: Installed, and nobody needs it now.
    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    #: It answers, but slowly, or says that it is not ready yet (BR-30).
    SLOW = "slow"
    #: It cannot be reached, refused its registration, or keeps ending; ``error`` tells.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DriverStatus:
    """What is known of a driver without starting it; times are seconds since the epoch.

    ``pid`` is set where this host supervises its process. ``manifest`` is the file of API objects that its
    distribution brings (CSIDriver, StorageClass), "" without one. ``warnings`` are about what works and is not as it
    should be: labels of the node that it left behind (CSI-NIM-12).
    """

    name: str
    origin: DriverOrigin
    state: DriverState
    endpoint: str = ""
    version: str = ""
    distribution: str = ""
    pid: int | None = None
    started_at: float | None = None
    restarts: int = 0
    node_id: str = ""
    max_volumes: int = 0
    topology: Topology = field(default_factory=dict)
    capabilities: DriverCapabilities | None = None
    error: str = ""
    retry_at: float | None = None
    keep_alive: bool = False
    log_file: str = ""
    manifest: str = ""
    warnings: Sequence[str] = ()


class StorageDrivers(Protocol):
    """The drivers that one plugin fronts. Safe for threads."""

    def start(self) -> None:
        """Watch for drivers that register, and take over those that a host before this one left running.

        Returns at once; may be called again. Without it, :meth:`driver` finds what it is asked for all the same.
        """
        ...

    def statuses(self) -> Sequence[DriverStatus]:
        """Every known driver, by name; starts none."""
        ...

    def problems(self) -> Sequence[str]:
        """What keeps drivers from being noticed, or delays it: one line each, none when nothing does."""
        ...

    def driver(self, name: str, *, timeout: float) -> StorageDriver:
        """The driver, registered and answering; one that is installed here is started when it does not run.

        :param timeout: seconds to wait for it.
        :raises StorageDriverUnavailableError: it is not known, not registered yet, or does not start (BR-27).
        """
        ...

    def register(self, name: str, endpoint: str) -> DriverStatus:
        """Register a driver that serves at ``endpoint`` (a path, or ``unix://`` and a path), now and after a restart.

        :raises StorageDriverError: it does not answer, is not a CSI driver, or has another name.
        """
        ...

    def unregister(self, name: str) -> None:
        """Forget a driver that was registered by command; its mounts stay (CSI-REG-15).

        :raises StorageDriverUnavailableError: none of that name was registered by command.
        """
        ...

    def on_change(self, changed: Callable[[str], None]) -> None:
        """Call ``changed(name)`` whenever a driver was registered, left, or changed its state; it must not block."""
        ...
