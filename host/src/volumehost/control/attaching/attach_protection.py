"""Lets go of PersistentVolumes that were attached once, when they are being deleted (CSI-EXA-15)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from volumehost.control.attaching.attach_source import attacher_finalizer
from volumehost.control.machinery.controller import ControlContext, Key
from volumehost.control.translation import translated
from volumehost.control.writes import get_or_none, remove_finalizer

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject, PersistentVolume, VolumeAttachment


class AttachProtection:
    """Controller of PersistentVolumes: the attacher's finalizer stays while an attachment refers to the volume."""

    name = "attacher-protection"
    kind: type[KubeObject]

    def __init__(self, context: ControlContext) -> None:
        from volumehost.api.objects import PersistentVolume

        self.kind = PersistentVolume
        self._context = context

    def watches(self) -> Mapping[type[KubeObject], Callable[[Any], Iterable[Key]]]:
        """Volumes that are being deleted, and the attachments that keep them."""
        from volumehost.api.objects import PersistentVolume, VolumeAttachment

        return {PersistentVolume: _deleted, VolumeAttachment: _volume_of}

    def reconcile(self, key: Key) -> float | None:
        """Take the finalizer away once no attachment is left."""
        from volumehost.api.objects import PersistentVolume, VolumeAttachment

        api = self._context.api
        volume = get_or_none(api, PersistentVolume, key.name)
        if volume is None or not volume.metadata.deletion_timestamp:
            return None
        source = translated(self._context.plugins, volume).spec.csi
        if source is None:
            return None
        driver = source.driver
        finalizer = attacher_finalizer(driver)
        foreign = self._context.external_drivers and not self._context.knows_driver(driver)
        if finalizer not in volume.metadata.finalizers or foreign:
            return None
        attachments = api.list(VolumeAttachment).items
        if not any(each.spec.source.persistent_volume_name == key.name for each in attachments):
            remove_finalizer(api, volume, finalizer)
        return None


def _deleted(volume: PersistentVolume) -> Iterable[Key]:
    return [Key.of(volume)] if volume.metadata.deletion_timestamp else []


def _volume_of(attachment: VolumeAttachment) -> Iterable[Key]:
    name = attachment.spec.source.persistent_volume_name
    return [Key(name)] if name else []
