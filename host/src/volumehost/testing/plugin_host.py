"""A real host over a temporary directory, for tests of one plugin: real mounts, real paths, nothing else running.

::

    host = PluginTestHost(str(tmp_path), volume_config=VolumeConfig(provisioning_enabled=True))
    plugin = NfsPlugin()
    plugin.init(host)
    plugin.new_mounter(spec, pod).set_up(MounterArgs())

It is the host of a node, without an API unless it is given one. What a test wants to decide (allocatable resources,
configuration) is handed in; what it wants to see (events, recycler pods) is kept in plain lists.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from volumehost.hosts.node_host import NodeHost
from volumehost.spec import VolumeConfig

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod
    from volumehost.host_services import EventRecorder, MountInterface, RecycleEventRecorder, Recycler
    from volumehost.loader.manager import VolumePluginManager


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event that a plugin recorded on an object."""

    involved: Any
    event_type: str
    reason: str
    message: str


class RecordingEvents:
    """An EventRecorder that keeps what it is given, in order."""

    def __init__(self) -> None:
        self.events: list[RecordedEvent] = []

    def event(self, involved: Any, event_type: str, reason: str, message: str) -> None:
        """Keep one event."""
        self.events.append(RecordedEvent(involved, event_type, reason, message))


class RecordingRecycler:
    """A Recycler that keeps the pods it is to run, and then lets the real one empty their volume."""

    def __init__(self, recycler: Recycler) -> None:
        self.pods: list[tuple[str, Pod]] = []
        self._recycler = recycler

    def recycle(self, pv_name: str, pod: Pod, recorder: RecycleEventRecorder) -> None:
        """Keep the pod, then empty its first volume."""
        self.pods.append((pv_name, pod))
        self._recycler.recycle(pv_name, pod, recorder)


class PluginTestHost(NodeHost):
    """The host of a node whose root directory is ``<directory>/root``, which is created (0750).

    :param volume_config: what every plugin is told.
    :param allocatable: resource name to amount; the machine's own when not given.
    :param mounter: stands in for the real one, for a test of what happens when a mount fails.
    :param api: what plugins read objects from; there is none when not given.
    """

    def __init__(
        self,
        directory: str,
        *,
        volume_config: VolumeConfig | None = None,
        allocatable: Mapping[str, int] | None = None,
        mounter: MountInterface | None = None,
        api: ApiClient | Callable[[], ApiClient] | None = None,
    ) -> None:
        root_dir = os.path.join(os.path.realpath(directory), "root")
        os.makedirs(root_dir, mode=0o750, exist_ok=True)
        super().__init__(root_dir, node_name="test-node", mounter=mounter, api=api)
        self.recorder = RecordingEvents()
        self.recycler = RecordingRecycler(super().get_recycler())
        self._given_volume_config = volume_config if volume_config is not None else VolumeConfig()
        self._given_allocatable = allocatable
        self._installed: VolumePluginManager | None = None

    @property
    def root_dir(self) -> str:
        """The root directory, links resolved."""
        return self.layout.root_dir

    def use_mounter(self, mounter: MountInterface) -> None:
        """Hand out this mounter from now on: for a test in which mounting begins to fail."""
        self._mounter = mounter

    def close(self) -> None:
        """Shut down the plugins that were loaded to be wrapped, if any were; mounts stay."""
        if self._installed is not None:
            self._installed.close()
            self._installed = None

    def get_volume_config(self, plugin_name: str) -> VolumeConfig:  # noqa: ARG002 - the same for every plugin
        """What the test handed in."""
        return self._given_volume_config

    def get_node_allocatable(self) -> Mapping[str, int]:
        """What the test handed in, else the machine's."""
        return self._given_allocatable if self._given_allocatable is not None else super().get_node_allocatable()

    def get_event_recorder(self) -> EventRecorder:
        """Keeps events in ``recorder.events``."""
        return self.recorder

    def get_recycler(self) -> Recycler:
        """Keeps recycler pods in ``recycler.pods`` and empties their volumes."""
        return self.recycler

    def _plugins(self) -> VolumePluginManager:
        """Those of the manager that was set; without one, whichever are installed, loaded at the first wrapping."""
        if self.plugin_manager is not None:
            return self.plugin_manager
        if self._installed is None:
            from volumehost.loader.manager import VolumePluginManager
            from volumehost.loader.prober import EntryPointProber

            self._installed = VolumePluginManager()
            self._installed.init_plugins(prober=EntryPointProber(), host=self)
        return self._installed
