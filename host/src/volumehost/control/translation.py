"""Volumes of kinds that a plugin has taken over, as the controllers have to see them (CSI-MIG-01)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import SpecError
from volumehost.spec import Spec

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume
    from volumehost.loader.manager import VolumePluginManager


def translated(plugins: VolumePluginManager, volume: PersistentVolume) -> PersistentVolume:
    """The volume as the driver or plugin that took over its kind sees it; the same object where nobody did.

    For reading only: what is written to the API is the volume as it is there.

    :raises SpecError: the translator made no PersistentVolume of it.
    :raises MultiplePluginsMatchedError: more than one plugin takes over its kind.
    """
    spec = Spec.from_persistent_volume(volume, read_only=False)
    translate = plugins.find_translator(spec)
    if translate is None:
        return volume
    found = translate(spec, "").persistent_volume
    if found is None:
        name = volume.metadata.name
        raise SpecError(
            "its translator did not return a PersistentVolume", action=f"translating the volume {name}", subject=name
        )
    return found
