"""Puts a control plane together: the context that controllers work with, and the controllers themselves."""

from __future__ import annotations

import time
from collections.abc import Sequence
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
    api: ApiClient, plugins: VolumePluginManager, node_name: str, *, external_drivers: bool = False
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
        )
        provide_all(api, drivers.statuses())
        return [ProvidedObjects(context, drivers.statuses), *all_controllers(context)]

    def ended(grace: float) -> None:
        for recorder in recorders:
            recorder.flush(grace)

    return ControlPlane(api, prepare, steps, ended=ended)


def all_controllers(context: ControlContext) -> list[Controller]:
    """The controllers that do what a cluster's control plane and CSI sidecars do."""
    from volumehost.control.claim_binder import ClaimBinder
    from volumehost.control.ephemeral import EphemeralClaims
    from volumehost.control.volume_reclaimer import VolumeReclaimer

    return [EphemeralClaims(context), ClaimBinder(context), VolumeReclaimer(context)]
