"""The work of one term: a cached view of the cluster, the plugins, and the controllers that are asked for."""

from __future__ import annotations

import logging
import socket
import time
from typing import TYPE_CHECKING, Final

from volumehost.control.attach_detach.world import AttachDetachSettings
from volumehost.control.cluster import EVENT_SECONDS, ClusterControl, ClusterPlane
from volumehost.controller.fenced_client import FencedClient, require_term
from volumehost.errors import KindNotServedError, VolumeHostError
from volumehost.hosts.config import HostConfig
from volumehost.hosts.controller_host import ControllerHost
from volumehost.hosts.events import ApiEventRecorder
from volumehost.hosts.pod_recycler import PodRecycler
from volumehost.loader.manager import VolumePluginManager
from volumehost.mount.deadline import DeadlineExceededError, DeadlineRunner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volumehost.api.kubernetes import CachedClient, KubernetesClient
    from volumehost.control.attach_detach.world import World
    from volumehost.control.machinery.counting import ControlMetrics
    from volumehost.controller.leader_election import Term
    from volumehost.controller.settings import ControllerSettings

logger = logging.getLogger(__name__)

#: Under which name plugins' events are reported.
COMPONENT: Final = "volumehost-controller"


class Work:
    """Begins with :meth:`start`, ends with :meth:`stop`; for one term.

    :param client: the cluster; stays the caller's.
    :param term: nothing is written, and no driver called, once it is over; None where there is no election.
    :param plugins: given besides those that are installed.
    """

    def __init__(
        self,
        client: KubernetesClient,
        settings: ControllerSettings,
        term: Term | None,
        *,
        metrics: ControlMetrics | None = None,
        plugins: Sequence[object] = (),
    ) -> None:
        from volumehost.api.kubernetes import CachedClient

        self._given = plugins
        self._drivers = settings.drivers
        self.cached: CachedClient = CachedClient(client, [])
        self.api = FencedClient(self.cached, term).client
        live = FencedClient(client, term).client
        self.plugins = VolumePluginManager()
        self._recorder = ApiEventRecorder(lambda: self.api, COMPONENT, socket.gethostname())
        self.host = ControllerHost(
            self.api,
            config=HostConfig.for_root_dir(settings.root_dir),
            recorder=self._recorder,
            recycler=PodRecycler(live),
        )
        control = ClusterControl(
            controllers=settings.controllers,
            drivers=frozenset(name for name, _ in settings.drivers),
            host_name=socket.gethostname(),
            attach_detach=AttachDetachSettings(max_wait_for_unmount=settings.max_wait_for_unmount),
        )

        def may_call() -> None:
            require_term(term, "calling a driver or a plugin")

        self._cluster = ClusterPlane(self.api, live, self.plugins, control, metrics=metrics, may_call=may_call)

    @property
    def world(self) -> World | None:
        """What attach/detach knows, None where it does not run."""
        return self._cluster.world

    def start(self) -> None:
        """Load the plugins, and begin to watch and to work; does not wait for the API.

        :raises StorageDriverError: a driver cannot be served as it is given.
        """
        from volumehost.loader.prober import EntryPointProber

        self.cached.start()
        for error in self.plugins.init_plugins(self._given, EntryPointProber(), self.host):
            logger.warning("%s", error)
        for problem in self.plugins.errors():
            logger.warning("%s", problem)
        self._register_drivers()
        self._cluster.plane.start()

    def _register_drivers(self) -> None:
        """The drivers that the sidecars' controllers serve; they need not be there yet.

        :raises StorageDriverError: a name or an endpoint is none, or no plugin is installed that speaks to drivers.
        """
        if not self._drivers:
            return
        from volumehost.loader.storage_drivers import CombinedStorageDrivers, storage_drivers_of

        known = CombinedStorageDrivers(storage_drivers_of(self.plugins.loaded_plugins()))
        for name, endpoint in self._drivers:
            known.register(name, endpoint)

    def stop(self, grace: float) -> bool:
        """Begin nothing more, and wait at most ``grace`` seconds for what runs; whether all of it has ended."""
        deadline = time.monotonic() + grace
        drained = self._cluster.plane.stop(grace)
        self._recorder.flush(max(0.0, min(EVENT_SECONDS, deadline - time.monotonic())))
        self.cached.stop(max(0.5, deadline - time.monotonic()))
        try:
            errors: Sequence[VolumeHostError] = DeadlineRunner().run(
                self.plugins.close, timeout=max(1.0, deadline - time.monotonic()), what="shutting down the plugins"
            )
        except DeadlineExceededError as error:
            logger.warning("the plugins have not shut down: %s", error)
            return False
        for each in errors:
            logger.warning("%s", each)
        return drained

    def failures(self) -> dict[str, int]:
        """By controller, how many objects it failed to get on with."""
        return self._cluster.plane.failing()

    def problems(self) -> list[str]:
        """What of the cluster cannot be seen, and why; the controllers that need none of it work on."""
        found: dict[str, list[str]] = {}
        stale = self.cached.stale_kinds()
        troubles = {kind: str(error) for kind, error in self._cluster.plane.problems().items()}
        unserved = {
            kind for kind, error in self._cluster.plane.problems().items() if isinstance(error, KindNotServedError)
        }
        for kind, why in {**troubles, **stale}.items():
            if kind not in unserved:
                found.setdefault(why or "it was not read yet", []).append(kind.__name__)
        return [f"{', '.join(sorted(kinds))}: {why}" for why, kinds in found.items()]
