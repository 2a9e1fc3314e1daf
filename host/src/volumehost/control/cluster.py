"""The controllers of a cluster by their names, and a control plane of those that are asked for; the daemon calls it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from volumehost.control.assembly import ATTACH_COMPONENT, COMPONENT, EXPAND_COMPONENT, all_controllers
from volumehost.control.machinery.progress import Steps
from volumehost.control.plane import ControlPlane

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.control.attach_detach.wishes import Pair
    from volumehost.control.attach_detach.world import AttachDetachSettings, World
    from volumehost.control.machinery.controller import ControlContext, Controller
    from volumehost.control.machinery.counting import ControlMetrics
    from volumehost.hosts.events import ApiEventRecorder
    from volumehost.loader.manager import VolumePluginManager

#: How long the end waits for events that are not written yet, in seconds: where the API is away they never will be.
EVENT_SECONDS: Final = 2.0

ATTACH_DETACH: Final = "attach-detach"
CLAIM_PROTECTION: Final = "claim-protection"
VOLUME_PROTECTION: Final = "volume-protection"
CSI_PROVISIONER: Final = "csi-provisioner"
CSI_ATTACHER: Final = "csi-attacher"
CSI_RESIZER: Final = "csi-resizer"
CSI_SNAPSHOTTER: Final = "csi-snapshotter"

#: Each controller that can be turned on alone, and what it does in a few words.
CONTROLLERS: Final[Mapping[str, str]] = {
    ATTACH_DETACH: "attaches the volumes of pods to their nodes, and detaches them",
    "binder": "binds claims to volumes, and has volumes made by the plugins of this host",
    "reclaimer": "deletes, recycles or keeps released volumes",
    "expander": "grows volumes whose claims ask for more",
    "ephemeral": "makes the claims of pods' ephemeral volumes",
    CLAIM_PROTECTION: "keeps claims that are to be deleted while pods use them",
    VOLUME_PROTECTION: "keeps volumes that are to be deleted while claims are bound to them",
    CSI_PROVISIONER: "what the external-provisioner does, for the drivers that are named",
    CSI_ATTACHER: "what the external-attacher does, for the drivers that are named",
    CSI_RESIZER: "what the external-resizer does, for the drivers that are named",
    CSI_SNAPSHOTTER: "what the snapshot controller and the external-snapshotter do, for the drivers that are named",
}
#: Those that do a sidecar's work: off unless a driver is named for them, so that never two work on one object.
SIDECARS: Final = frozenset({CSI_PROVISIONER, CSI_ATTACHER, CSI_RESIZER, CSI_SNAPSHOTTER})

#: Name here to names in :func:`~volumehost.control.assembly.all_controllers`, and which sidecar's drivers it serves.
_PARTS: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    "binder": (frozenset({"binder"}), CSI_PROVISIONER),
    "reclaimer": (frozenset({"reclaimer"}), CSI_PROVISIONER),
    "expander": (frozenset({"expander"}), CSI_RESIZER),
    "ephemeral": (frozenset({"ephemeral volumes"}), ""),
    CSI_ATTACHER: (frozenset({"attacher", "attacher-protection"}), CSI_ATTACHER),
    CSI_RESIZER: (frozenset({"modifier"}), CSI_RESIZER),
    CSI_SNAPSHOTTER: (
        frozenset({"snapshotter", "snapshot-content", "snapshot-source-protection"}),
        CSI_SNAPSHOTTER,
    ),
}


@dataclass(frozen=True, slots=True)
class ClusterControl:
    """What runs in a cluster.

    :param controllers: names of :data:`CONTROLLERS`.
    :param drivers: the CSI drivers that the sidecars' controllers serve; all others are somebody else's.
    :param host_name: of the machine or pod that this runs on, for events.
    """

    controllers: frozenset[str]
    drivers: frozenset[str] = frozenset()
    host_name: str = ""
    attach_detach: AttachDetachSettings | None = None


class ClusterPlane:
    """A control plane over a cluster.

    :param api: what controllers work on.
    :param live: an API that is asked each time, where ``api`` answers from caches.
    :param may_call: asked before each call of a driver or plugin; raises an ApiError where none may be begun any more.
    """

    def __init__(
        self,
        api: ApiClient,
        live: ApiClient,
        plugins: VolumePluginManager,
        control: ClusterControl,
        *,
        metrics: ControlMetrics | None = None,
        may_call: Callable[[], object] = lambda: None,
        first_delay: float = 1.0,
    ) -> None:
        self._api = api
        self._live = live
        self._may_call = may_call
        self._plugins = plugins
        self._control = control
        self._metrics = metrics
        self._steps = Steps()
        self._recorders: dict[str, ApiEventRecorder] = {}
        #: What attach/detach knows; None where it does not run.
        self.world: World | None = None
        self.plane = ControlPlane(api, self._prepare, self._steps, ended=self._ended, first_delay=first_delay)

    def _prepare(self, plane: ControlPlane) -> Sequence[Controller]:
        from volumehost.control.drivers import HostDrivers
        from volumehost.control.machinery.controller import ControlContext
        from volumehost.control.machinery.gate import Gate
        from volumehost.hosts.events import ApiEventRecorder

        gate = Gate(plane.driver_freed, allowed=self._may_call)
        drivers = HostDrivers(self._plugins, plane.driver_changed, gate)
        for component in (COMPONENT, ATTACH_COMPONENT, EXPAND_COMPONENT):
            self._recorders[component] = ApiEventRecorder(lambda: self._api, component, self._control.host_name)
        context = ControlContext(
            api=plane.api,
            plugins=self._plugins,
            driver=drivers.driver,
            knows_driver=lambda _name: False,
            node_name="",
            event=self._recorders[COMPONENT].event,
            progress=self._steps,
            wall_clock=time.time,
            external_drivers=True,
            gate=gate,
            metrics=self._metrics,
            live=self._live,
        )
        return [*self._parts(context), *self._protections(context), *self._attach_detach(context, plane)]

    def _parts(self, context: ControlContext) -> Iterable[Controller]:
        from volumehost.api.objects import Secret

        reporting = {component: recorder.event for component, recorder in self._recorders.items()}
        for name in self._control.controllers & _PARTS.keys():
            parts, sidecar = _PARTS[name]
            serves = sidecar in self._control.controllers
            own = replace(context, knows_driver=self._control.drivers.__contains__) if serves else context
            # Nobody in a cluster needs to know every secret; one that is missing is looked for from time to time.
            found = (each for each in all_controllers(own, reporting) if each.name in parts)
            yield from (each.not_watching(Secret) for each in found)

    def _protections(self, context: ControlContext) -> Iterable[Controller]:
        from volumehost.control.binding.protection import ClaimProtection, VolumeProtection

        if CLAIM_PROTECTION in self._control.controllers:
            yield ClaimProtection(context, self._live)
        if VOLUME_PROTECTION in self._control.controllers:
            yield VolumeProtection(context)

    def _attach_detach(self, context: ControlContext, plane: ControlPlane) -> Iterable[Controller]:
        if ATTACH_DETACH not in self._control.controllers:
            return
        from volumehost.control.attach_detach.pairs import AttachDetach
        from volumehost.control.attach_detach.pods import PodWishes
        from volumehost.control.attach_detach.world import AttachDetachSettings, World

        def look_at(found: Iterable[Pair]) -> None:
            plane.look_at(pairs, [pair.key for pair in found])

        settings = self._control.attach_detach or AttachDetachSettings()
        own = replace(context, event=self._recorders[ATTACH_COMPONENT].event)
        world = self.world = World(
            own,
            self._live,
            look_at_pairs=look_at,
            look_at_pods=lambda keys: plane.look_at(pods, keys),
            settings=settings,
        )
        pairs, pods = AttachDetach(world), PodWishes(world)
        yield from (pairs, pods)

    def _ended(self, grace: float) -> None:
        deadline = time.monotonic() + min(grace, EVENT_SECONDS)
        for recorder in self._recorders.values():
            recorder.flush(max(0.0, deadline - time.monotonic()))
