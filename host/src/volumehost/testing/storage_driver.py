"""A storage driver for tests of what calls drivers: volumes that are only numbers, errors at any call on demand.

::

    driver = FakeStorageDriver()
    driver.fail("publish_volume", "DEADLINE_EXCEEDED", after_effect=True)  # it worked, but nobody heard of it
    ...
    assert driver.count("unpublish_volume") == 1

With ``state_file`` it remembers across processes, as a driver that outlives its callers does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from volumehost.errors import StorageDriverError
from volumehost.storage_driver import (
    Capacity,
    CreatedVolume,
    CreateVolumeRequest,
    DriverCapabilities,
    DriverSnapshot,
    ExpandedVolume,
    ListedVolume,
    Topology,
    VolumeCapability,
)
from volumehost.testing.storage_driver_calls import Call, ScriptedCalls
from volumehost.testing.storage_driver_state import EVERYTHING, Snapshot, Volume, driver_error, load, store, without

__all__ = ["EVERYTHING", "Call", "FakeStorageDriver", "driver_error", "without"]


class FakeStorageDriver(ScriptedCalls):
    """A StorageDriver in memory, idempotent as the specification wants it. Safe for threads.

    ``calls`` holds every call in order, ``volumes`` and ``snapshots`` what there is.

    :param expansion_needs_node: what every expansion answers.
    :param ready_after: how often a snapshot has to be asked for until it is ready.
    :param size_unit: sizes are rounded up to multiples of this, in bytes.
    :param observer: called with ``before`` or ``after`` and the method's name around the effect of each call.
    """

    def __init__(
        self,
        name: str = "driver.example.com",
        *,
        node_id: str = "node-id",
        capabilities: DriverCapabilities = EVERYTHING,
        state_file: str = "",
        expansion_needs_node: bool = True,
        ready_after: int = 1,
        size_unit: int = 1,
        available_bytes: int = 2**50,
        topology: Sequence[Topology] = (),
        observer: Callable[[str, str], None] | None = None,
    ) -> None:
        super().__init__(name, observer)
        self._node_id = node_id
        self.declared = capabilities
        self.expansion_needs_node = expansion_needs_node
        self.ready_after = ready_after
        self.size_unit = size_unit
        self.available_bytes = available_bytes
        self.topology = list(topology)
        #: What every creation answers as size and as handle, whatever was made: for a driver that answers nonsense.
        self.answer_bytes: int | None = None
        self.answer_handle: str | None = None
        #: Whether creations say nothing of what the volume was made from.
        self.forget_source = False
        self._state_file = state_file
        self._state = load(state_file)

    # --- for tests --------------------------------------------------------------------------------------------------

    def add_volume(self, handle: str, size: int) -> None:
        """Let there be a volume that nobody created."""
        with self._effect():
            self._state.volumes[handle] = Volume(size)

    def add_publication(self, handle: str, node_id: str) -> None:
        """Let the volume be attached to the node by a call that was given up and took effect all the same."""
        with self._effect():
            self._state.volumes[handle].nodes.append(node_id)

    @property
    def volumes(self) -> Mapping[str, int]:
        """Handle to size in bytes."""
        return {handle: volume.size for handle, volume in self._state.volumes.items()}

    @property
    def snapshots(self) -> Sequence[str]:
        """The handles of all snapshots."""
        return list(self._state.snapshots)

    def nodes_of(self, handle: str) -> Sequence[str]:
        """The nodes that the volume is attached to."""
        return list(self._state.volumes[handle].nodes)

    def parameters_of(self, handle: str) -> Mapping[str, str]:
        """The mutable parameters that the volume has."""
        return dict(self._state.volumes[handle].parameters)

    # --- StorageDriver ----------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """See StorageDriver."""
        return self._name

    @property
    def node_id(self) -> str:
        """See StorageDriver."""
        return self._node_id

    def capabilities(self) -> DriverCapabilities:
        """See StorageDriver."""
        return self.declared

    def create_volume(self, request: CreateVolumeRequest, *, timeout: float | None = None) -> CreatedVolume:
        """See StorageDriver."""

        def create() -> CreatedVolume:
            handle = self._state.names.get(request.name)
            if handle is None:
                handle = self._new_handle("vol")
                size = self._rounded(request.required_bytes)
                volume = Volume(size, source_snapshot=request.source_snapshot, source_volume=request.source_volume)
                volume.parameters = dict(request.mutable_parameters)
                volume.context = {"made-for": request.name}
                self._state.volumes[handle] = volume
                self._state.names[request.name] = handle
            volume = self._state.volumes[handle]
            return CreatedVolume(
                handle if self.answer_handle is None else self.answer_handle,
                volume.size if self.answer_bytes is None else self.answer_bytes,
                volume.context,
                "" if self.forget_source else volume.source_snapshot,
                "" if self.forget_source else volume.source_volume,
                self.topology,
            )

        return self._call("create_volume", create, request=request, timeout=timeout)

    def delete_volume(self, handle: str, secrets: Mapping[str, str], *, timeout: float | None = None) -> None:
        """See StorageDriver."""

        def delete() -> None:
            if handle == self.answer_handle:
                self._state.volumes.clear()
            volume = self._state.volumes.get(handle)
            if volume is not None and volume.nodes:
                raise self._refused("delete_volume", volume)
            self._state.volumes.pop(handle, None)
            self._state.names = {name: each for name, each in self._state.names.items() if each != handle}

        self._call("delete_volume", delete, handle=handle, secrets=secrets, timeout=timeout)

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
        """See StorageDriver."""

        def publish() -> Mapping[str, str]:
            volume = self._volume("publish_volume", handle)
            if node_id not in volume.nodes:
                if volume.nodes and capability.access_mode.startswith("SINGLE_NODE"):
                    raise self._refused("publish_volume", volume)
                volume.nodes.append(node_id)
            return {"device": f"/dev/{handle}"}

        return self._call(
            "publish_volume",
            publish,
            handle=handle,
            node_id=node_id,
            capability=capability,
            read_only=read_only,
            context=context,
            secrets=secrets,
            timeout=timeout,
        )

    def unpublish_volume(
        self, handle: str, node_id: str, secrets: Mapping[str, str], *, timeout: float | None = None
    ) -> None:
        """See StorageDriver."""

        def unpublish() -> None:
            volume = self._state.volumes.get(handle)
            if volume is not None and node_id in volume.nodes:
                volume.nodes.remove(node_id)

        self._call("unpublish_volume", unpublish, handle=handle, node_id=node_id, secrets=secrets, timeout=timeout)

    def expand_volume(
        self,
        handle: str,
        required_bytes: int,
        capability: VolumeCapability | None,
        secrets: Mapping[str, str],
        *,
        timeout: float | None = None,
    ) -> ExpandedVolume:
        """See StorageDriver."""

        def expand() -> ExpandedVolume:
            volume = self._volume("expand_volume", handle)
            volume.size = max(volume.size, self._rounded(required_bytes))
            return ExpandedVolume(volume.size, self.expansion_needs_node)

        return self._call(
            "expand_volume",
            expand,
            handle=handle,
            required_bytes=required_bytes,
            capability=capability,
            secrets=secrets,
            timeout=timeout,
        )

    def modify_volume(
        self,
        handle: str,
        mutable_parameters: Mapping[str, str],
        secrets: Mapping[str, str],
        *,
        timeout: float | None = None,
    ) -> None:
        """See StorageDriver."""

        def modify() -> None:
            self._volume("modify_volume", handle).parameters = dict(mutable_parameters)

        self._call(
            "modify_volume",
            modify,
            handle=handle,
            mutable_parameters=mutable_parameters,
            secrets=secrets,
            timeout=timeout,
        )

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
        """See StorageDriver."""

        def validate() -> str:
            self._volume("validate_volume", handle)
            return ""

        return self._call(
            "validate_volume",
            validate,
            handle=handle,
            capabilities=capabilities,
            context=context,
            parameters=parameters,
            secrets=secrets,
            timeout=timeout,
        )

    def get_capacity(
        self,
        *,
        capabilities: Sequence[VolumeCapability] = (),
        parameters: Mapping[str, str] | None = None,
        topology: Topology | None = None,
        timeout: float | None = None,
    ) -> Capacity:
        """See StorageDriver."""

        def capacity() -> Capacity:
            return Capacity(self.available_bytes)

        return self._call(
            "get_capacity",
            capacity,
            capabilities=capabilities,
            parameters=parameters,
            topology=topology,
            timeout=timeout,
        )

    def list_volumes(self, *, timeout: float | None = None) -> Iterator[ListedVolume]:
        """See StorageDriver."""

        def listed() -> list[ListedVolume]:
            return [
                ListedVolume(handle, volume.size, tuple(volume.nodes)) for handle, volume in self._state.volumes.items()
            ]

        return iter(self._call("list_volumes", listed, timeout=timeout))

    def create_snapshot(
        self,
        source_volume: str,
        name: str,
        parameters: Mapping[str, str],
        secrets: Mapping[str, str],
        *,
        timeout: float | None = None,
    ) -> DriverSnapshot:
        """See StorageDriver."""

        def create() -> DriverSnapshot:
            for handle, snapshot in self._state.snapshots.items():
                if snapshot.name == name:
                    snapshot.asked += 1
                    return self._shown(handle)
            volume = self._volume("create_snapshot", source_volume)
            handle = self._new_handle("snap")
            made = 1_700_000_000.0 + self._state.counter
            self._state.snapshots[handle] = Snapshot(name, source_volume, volume.size, made, asked=1)
            return self._shown(handle)

        return self._call(
            "create_snapshot",
            create,
            source_volume=source_volume,
            name=name,
            parameters=parameters,
            secrets=secrets,
            timeout=timeout,
        )

    def delete_snapshot(self, handle: str, secrets: Mapping[str, str], *, timeout: float | None = None) -> None:
        """See StorageDriver."""

        def delete() -> None:
            self._state.snapshots.pop(handle, None)

        self._call("delete_snapshot", delete, handle=handle, secrets=secrets, timeout=timeout)

    def get_snapshot(
        self, handle: str, secrets: Mapping[str, str], *, timeout: float | None = None
    ) -> DriverSnapshot | None:
        """See StorageDriver."""

        def get() -> DriverSnapshot | None:
            snapshot = self._state.snapshots.get(handle)
            if snapshot is None:
                return None
            snapshot.asked += 1
            return self._shown(handle)

        return self._call("get_snapshot", get, handle=handle, secrets=secrets, timeout=timeout)

    def list_snapshots(
        self, secrets: Mapping[str, str], *, source_volume: str = "", timeout: float | None = None
    ) -> Iterator[DriverSnapshot]:
        """See StorageDriver."""

        def listed() -> list[DriverSnapshot]:
            return [
                self._shown(handle)
                for handle, snapshot in self._state.snapshots.items()
                if source_volume in {"", snapshot.volume}
            ]

        return iter(self._call("list_snapshots", listed, secrets=secrets, source_volume=source_volume, timeout=timeout))

    # --- inside -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _effect(self) -> Iterator[None]:
        with self._lock:
            yield
            if self._state_file:
                store(self._state_file, self._state)

    def _volume(self, method: str, handle: str) -> Volume:
        volume = self._state.volumes.get(handle)
        if volume is None:
            raise driver_error(self._name, method, "NOT_FOUND", f"there is no volume {handle}")
        return volume

    def _refused(self, method: str, volume: Volume) -> StorageDriverError:
        text = f"it is published to {', '.join(volume.nodes)}"
        return driver_error(self._name, method, "FAILED_PRECONDITION", text)

    def _shown(self, handle: str) -> DriverSnapshot:
        snapshot = self._state.snapshots[handle]
        ready = snapshot.asked >= self.ready_after
        return DriverSnapshot(handle, snapshot.volume, snapshot.size, snapshot.created, ready)

    def _new_handle(self, prefix: str) -> str:
        self._state.counter += 1
        return f"{prefix}-{self._state.counter}"

    def _rounded(self, size: int) -> int:
        return -(-size // self.size_unit) * self.size_unit
