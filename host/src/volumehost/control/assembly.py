"""Puts a control plane together: the context that controllers work with, and the controllers themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from volumehost.control.plane import ControlPlane
from volumehost.control.progress import Steps

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.control.controller import ControlContext, Controller
    from volumehost.hosts.events import ApiEventRecorder
    from volumehost.loader.manager import VolumePluginManager

#: Who reports events (EVENT-01).
COMPONENT = "persistentvolume-controller"


def plane_for_node(
    api: ApiClient,
    plugins: VolumePluginManager,
    node_name: str,
    *,
    external_drivers: bool = False,
    volume_in_use: Callable[[str], bool] = lambda _name: False,
) -> ControlPlane:
    """See :meth:`ControlPlane.for_node`."""
    steps = Steps()
    recorders: list[ApiEventRecorder] = []

    def prepare(plane: ControlPlane) -> Sequence[Controller]:
        from volumehost.control.controller import ControlContext
        from volumehost.control.drivers import HostDrivers
        from volumehost.control.provided import ProvidedObjects, provide_all
        from volumehost.hosts.events import ApiEventRecorder

        drivers = HostDrivers(plugins, plane.driver_changed)
        recorder = ApiEventRecorder(lambda: api, COMPONENT, node_name)
        recorders.append(recorder)
        context = ControlContext(
            api=api,
            plugins=plugins,
            driver=drivers.driver,
            knows_driver=drivers.knows,
            node_name=node_name,
            event=recorder.event,
            progress=steps,
            wall_clock=time.time,
            external_drivers=external_drivers,
            volume_in_use=lambda node, volume: node == node_name and volume_in_use(volume),
        )
        provide_all(api, drivers.statuses())
        return [ProvidedObjects(context, drivers.statuses), *all_controllers(context)]

    def ended(grace: float) -> None:
        for recorder in recorders:
            recorder.flush(grace)

    return ControlPlane(api, prepare, steps, ended=ended)


def all_controllers(context: ControlContext) -> list[Controller]:
    """The controllers that do what a cluster's control plane and CSI sidecars do."""
    from volumehost.control.attach_controller import AttachController
    from volumehost.control.attach_protection import AttachProtection
    from volumehost.control.claim_binder import ClaimBinder
    from volumehost.control.ephemeral import EphemeralClaims
    from volumehost.control.expand_controller import ExpandController
    from volumehost.control.modify_controller import ModifyController
    from volumehost.control.snapshot_content_controller import SnapshotContentController
    from volumehost.control.snapshot_controller import SnapshotController
    from volumehost.control.snapshot_source_protection import SnapshotSourceProtection
    from volumehost.control.volume_reclaimer import VolumeReclaimer

    return [
        EphemeralClaims(context),
        ClaimBinder(context),
        VolumeReclaimer(context),
        AttachController(context),
        AttachProtection(context),
        ExpandController(context),
        ModifyController(context),
        SnapshotController(context),
        SnapshotContentController(context),
        SnapshotSourceProtection(context),
    ]
