"""Empties a released volume with its plugin, and offers it again (PVC-41)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.control.binding.bind_writes import set_volume_phase, unbind
from volumehost.control.binding.volume_use import pods_with
from volumehost.control.translation import translated
from volumehost.errors import PluginLookupError, StorageDriverUnavailableError
from volumehost.spec import Spec

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume
    from volumehost.control.machinery.controller import ControlContext

#: How often a volume that pods still use is looked at, in seconds.
_IN_USE_SECONDS = 15.0


def recycle(context: ControlContext, volume: PersistentVolume) -> float | None:
    """Recycle it; the seconds after which to look again when pods still use it.

    :raises Exception: it failed; the volume is Failed, and is tried again all the same (PVC-43).
    """
    pods = _users(context, volume)
    if pods:
        context.event(volume, "Normal", "VolumeFailedRecycle", f"Volume is used by pods: {','.join(pods)}")
        context.progress(volume, f"waiting to recycle it: used by pods {', '.join(pods)}")
        return _IN_USE_SECONDS
    spec = Spec.from_persistent_volume(translated(context.plugins, volume), read_only=False)
    try:
        plugin = context.plugins.find_recyclable_plugin_by_spec(spec)
    except PluginLookupError:
        _fail(context, volume, "No recycler plugin found for the volume!")
        raise

    def record(event_type: str, message: str) -> None:
        context.event(volume, event_type, "RecyclerPod", f"Recycler pod: {message}")

    context.progress(volume, f"recycling the volume (volume plugin {plugin.name})")
    try:
        with context.gate.entered(plugin.name):
            plugin.recycle(volume.metadata.name, spec, record)
    except StorageDriverUnavailableError:  # it hangs with others: this one was not begun
        raise
    except Exception as error:
        _fail(context, volume, f"Recycle failed: {error}")
        raise
    context.event(volume, "Normal", "VolumeRecycled", "Volume recycled")
    unbind(context.api, volume)
    return None


def _users(context: ControlContext, volume: PersistentVolume) -> list[str]:
    """The pods that name the claim which the volume belonged to."""
    reference = volume.spec.claim_ref
    if reference is None:
        return []
    pods = pods_with(context.api, reference.name, reference.namespace)
    return [f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in pods]


def _fail(context: ControlContext, volume: PersistentVolume, text: str) -> None:
    context.event(volume, "Warning", "VolumeFailedRecycle", text)
    set_volume_phase(context.api, volume, "Failed", text)
