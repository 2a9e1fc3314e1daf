"""Puts a control plane together: the context that controllers work with, and the controllers themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from volumehost.control.plane import ControlPlane
from volumehost.control.progress import Steps

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.control.controller import ControlContext, Controller
    from volumehost.control.counting import ControlMetrics
    from volumehost.control.deferred import DeferredController
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
    metrics: ControlMetrics | None = None,
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
            metrics=metrics,
        )
        provide_all(api, drivers.statuses())
        return [ProvidedObjects(context, drivers.statuses), *all_controllers(context)]

    def ended(grace: float) -> None:
        for recorder in recorders:
            recorder.flush(grace)

    return ControlPlane(api, prepare, steps, ended=ended)


def all_controllers(context: ControlContext) -> list[DeferredController]:
    """The controllers that do what a cluster's control plane and CSI sidecars do."""
    from volumehost.api import objects as kinds
    from volumehost.control.deferred import DeferredController

    pod, claim, volume = kinds.Pod, kinds.PersistentVolumeClaim, kinds.PersistentVolume
    attachment, snapshot, content = kinds.VolumeAttachment, kinds.VolumeSnapshot, kinds.VolumeSnapshotContent
    storage_class, attributes_class = kinds.StorageClass, kinds.VolumeAttributesClass
    node = (kinds.CSINode, kinds.Node)
    room = (storage_class, attributes_class, *node, kinds.CSIStorageCapacity, kinds.Secret)
    deferred = partial(DeferredController, context)
    return [
        deferred("ephemeral volumes", "ephemeral:EphemeralClaims", (pod, claim)),
        deferred("binder", "claim_binder:ClaimBinder", (claim, volume), also=(pod, snapshot, *room)),
        deferred("reclaimer", "volume_reclaimer:VolumeReclaimer", (volume, claim, attachment)),
        deferred("attacher", "attach_controller:AttachController", (attachment,), also=node),
        deferred("attacher-protection", "attach_protection:AttachProtection", (volume, attachment)),
        deferred("expander", "expand_controller:ExpandController", (claim, volume), also=(storage_class,)),
        deferred("modifier", "modify_controller:ModifyController", (claim,), also=(attributes_class,)),
        deferred(
            "snapshotter",
            "snapshot_controller:SnapshotController",
            (snapshot, content),
            also=(claim, kinds.VolumeSnapshotClass),
        ),
        deferred(
            "snapshot-content",
            "snapshot_content_controller:SnapshotContentController",
            (content,),
            also=(kinds.VolumeSnapshotClass,),
        ),
        deferred(
            "snapshot-source-protection", "snapshot_source_protection:SnapshotSourceProtection", (claim, snapshot)
        ),
    ]
