"""The control plane that runs inside a manager where there is no cluster, and the storage drivers of this host.

Both are begun by whoever first needs them: pods without claims pay for neither.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject
    from volumehost.control.machinery.counting import ControlMetrics
    from volumehost.control.plane import ControlPlane
    from volumehost.hosts.node_host import NodeHost
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.loader.storage_drivers import CombinedStorageDrivers
    from volumehost.storage_driver import StorageDrivers


class LocalControl:
    """Safe for threads.

    :param enabled: whether claims are bound and volumes attached here; otherwise somebody else does that.
    :param driver_changed: called with a driver's name when it came, left or changed its state; must not block.
    """

    def __init__(
        self,
        host: NodeHost,
        plugins: VolumePluginManager,
        *,
        enabled: bool,
        driver_changed: Callable[[str], None] = lambda name: None,  # noqa: ARG005 - nobody listens yet
        metrics: ControlMetrics | None = None,
    ) -> None:
        self.enabled = enabled
        #: Whether this node has the volume of that unique name staged or mounted: then it is not detached (BR-46).
        self.volume_in_use: Callable[[str], bool] = lambda _name: False
        self.driver_changed = driver_changed
        self._host = host
        self._plugins = plugins
        self._metrics = metrics
        self._lock = threading.Lock()
        self._plane: ControlPlane | None = None
        self._heard: list[StorageDrivers] = []

    @property
    def plane(self) -> ControlPlane | None:
        """The control plane, begun or not; None where it is not enabled."""
        with self._lock:
            if self._plane is None and self.enabled:
                api = self._host.get_kube_client()
                if api is not None:
                    from volumehost.control.plane import ControlPlane

                    self._plane = ControlPlane.for_node(
                        api,
                        self._plugins,
                        self._host.get_node_name(),
                        volume_in_use=self.volume_in_use,
                        metrics=self._metrics,
                    )
            return self._plane

    def begin(self) -> None:
        """Bind, provision, attach and grow from now on; costs nothing when that is done already."""
        plane = self.plane
        if plane is not None and not plane.started:
            plane.start()
            self.watch_drivers()

    @property
    def drivers(self) -> CombinedStorageDrivers:
        """The storage drivers of the plugins that are loaded now."""
        from volumehost.loader.storage_drivers import CombinedStorageDrivers, storage_drivers_of

        return CombinedStorageDrivers(storage_drivers_of(self._plugins.loaded_plugins()))

    def watch_drivers(self) -> None:
        """Have drivers that register found from now on, and hear of their changes."""
        from volumehost.loader.storage_drivers import storage_drivers_of

        parts = storage_drivers_of(self._plugins.loaded_plugins())
        with self._lock:
            new = [part for part in parts if not any(part is heard for heard in self._heard)]
            self._heard += new
        for part in new:
            part.on_change(self._changed)
            part.start()

    def _changed(self, name: str) -> None:
        self.driver_changed(name)

    def try_now(self, obj: KubeObject) -> None:
        """Try again now what failed to get on with the object."""
        if self._plane is not None:
            self._plane.try_now(obj)

    def step(self, obj: KubeObject) -> str:
        """What is being done for the object, or keeps it, in one line; "" when there is nothing to tell."""
        return "; ".join(self._plane.explain(obj)) if self._plane is not None else ""

    def stop(self, grace: float) -> bool:
        """Begin nothing more, and wait at most ``grace`` seconds for what runs; whether all of it has ended."""
        return self._plane.stop(grace) if self._plane is not None else True
