"""Puts a control plane together: the context that controllers work with, and the controllers themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from volumehost.control.machinery.progress import Steps
from volumehost.control.plane import ControlPlane

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.control.machinery.controller import ControlContext, Controller, EventSink
    from volumehost.control.machinery.counting import ControlMetrics
    from volumehost.control.machinery.deferred import DeferredController
    from volumehost.hosts.events import ApiEventRecorder
    from volumehost.loader.manager import VolumePluginManager

#: Who reports events, and whose two of the controllers report as (EVENT-01).
COMPONENT = "persistentvolume-controller"
ATTACH_COMPONENT = "attachdetach-controller"
EXPAND_COMPONENT = "volume_expand"


def plane_for_node(
    api: ApiClient,
    plugins: VolumePluginManager,
    node_name: str,
    *,
    external_drivers: bool = False,
    volume_in_use: Callable[[str], bool] = lambda _name: False,
    metrics: ControlMetrics | None = None,
) -> ControlPlane:
    """See :meth:`ControlPlane.for_node`."""
    steps = Steps()
    recorders: dict[str, ApiEventRecorder] = {}

    def prepare(plane: ControlPlane) -> Sequence[Controller]:
        from volumehost.control.drivers import HostDrivers
        from volumehost.control.machinery.controller import ControlContext
        from volumehost.control.machinery.gate import Gate
        from volumehost.control.provisioning.provided import ProvidedObjects, provide_all
        from volumehost.hosts.events import ApiEventRecorder

        gate = Gate(plane.driver_freed)
        drivers = HostDrivers(plugins, plane.driver_changed, gate)
        for component in (COMPONENT, ATTACH_COMPONENT, EXPAND_COMPONENT):
            recorders[component] = ApiEventRecorder(lambda: api, component, node_name)
        context = ControlContext(
            api=plane.api,
            plugins=plugins,
            driver=drivers.driver,
            knows_driver=drivers.knows,
            node_name=node_name,
            event=recorders[COMPONENT].event,
            progress=steps,
            wall_clock=time.time,
            external_drivers=external_drivers,
            volume_in_use=lambda node, volume: node == node_name and volume_in_use(volume),
            gate=gate,
            metrics=metrics,
        )
        provide_all(api, drivers.statuses())
        reporting = {component: recorder.event for component, recorder in recorders.items()}
        return [ProvidedObjects(context, drivers.statuses), *all_controllers(context, reporting)]

    def ended(grace: float) -> None:
        deadline = time.monotonic() + grace
        for recorder in recorders.values():
            recorder.flush(max(0.0, deadline - time.monotonic()))

    return ControlPlane(api, prepare, steps, ended=ended)


def all_controllers(
    context: ControlContext, reporting: Mapping[str, EventSink] | None = None
) -> list[DeferredController]:
    """The controllers that do what a cluster's control plane and CSI sidecars do.

    :param reporting: by component, where those events go that are not the context's own.
    """
    from volumehost.api import objects as kinds
    from volumehost.control.machinery.deferred import DeferredController

    pod, claim, volume = kinds.Pod, kinds.PersistentVolumeClaim, kinds.PersistentVolume
    attachment, snapshot, content = kinds.VolumeAttachment, kinds.VolumeSnapshot, kinds.VolumeSnapshotContent
    storage_class, attributes_class = kinds.StorageClass, kinds.VolumeAttributesClass
    node = (kinds.CSINode, kinds.Node)
    room = (storage_class, attributes_class, *node, kinds.CSIStorageCapacity, kinds.Secret)
    deferred = partial(DeferredController, context)

    def reporting_as(component: str) -> Callable[..., DeferredController]:
        return partial(DeferredController, replace(context, event=(reporting or {}).get(component, context.event)))

    return [
        deferred("ephemeral volumes", "provisioning.ephemeral:EphemeralClaims", (pod, claim)),
        deferred("binder", "binding.claim_binder:ClaimBinder", (claim, volume), also=(pod, snapshot, *room)),
        deferred("reclaimer", "binding.volume_reclaimer:VolumeReclaimer", (volume, claim, attachment)),
        reporting_as(ATTACH_COMPONENT)(
            "attacher", "attaching.attach_controller:AttachController", (attachment,), also=node
        ),
        deferred("attacher-protection", "attaching.attach_protection:AttachProtection", (volume, attachment)),
        reporting_as(EXPAND_COMPONENT)(
            "expander", "expanding.expand_controller:ExpandController", (claim, volume), also=(storage_class,)
        ),
        deferred("modifier", "expanding.modify_controller:ModifyController", (claim,), also=(attributes_class,)),
        deferred(
            "snapshotter",
            "snapshots.snapshot_controller:SnapshotController",
            (snapshot, content),
            also=(claim, kinds.VolumeSnapshotClass),
        ),
        deferred(
            "snapshot-content",
            "snapshots.snapshot_content_controller:SnapshotContentController",
            (content,),
            also=(kinds.VolumeSnapshotClass,),
        ),
        deferred(
            "snapshot-source-protection",
            "snapshots.snapshot_source_protection:SnapshotSourceProtection",
            (claim, snapshot),
        ),
    ]
