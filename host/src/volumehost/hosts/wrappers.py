"""Mounters of one plugin inside another's volume: a secret volume is an emptyDir with files in it (WRAP rules)."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from volumehost.errors import PluginCallError, PluginLookupError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.spec import Spec
    from volumehost.volumes import Mounter, Unmounter

_PREFIX = "wrapped_"


def new_wrapper_mounter(plugins: VolumePluginManager, volume_name: str, spec: Spec, pod: Pod) -> Mounter:
    """The mounter of whichever plugin supports ``spec``, for the inner name (WRAP-01). The spec is not changed.

    :raises PluginLookupError: no plugin, or several (WRAP-06).
    :raises PluginCallError: the plugin could not make a mounter.
    """
    name = _PREFIX + volume_name
    inner = _renamed(spec, name)
    try:
        plugin = plugins.find_plugin_by_spec(inner)
    except VolumeHostError as error:
        raise PluginLookupError(f"can't use volume plugins for {name}: {error}", subject=name) from error
    try:
        return plugin.new_mounter(inner, pod)
    except Exception as error:
        raise PluginCallError(
            f"failed to instantiate mounter for volume: {name} using plugin: {plugin.name} with a root cause: {error}",
            plugin=plugin.name,
            distribution=plugin.origin.distribution,
            version=plugin.origin.version,
        ) from error


def new_wrapper_unmounter(plugins: VolumePluginManager, volume_name: str, spec: Spec, pod_uid: str) -> Unmounter:
    """The unmounter to go with it (WRAP-02); problems are passed on as they are."""
    inner = _renamed(spec, _PREFIX + volume_name)
    return plugins.find_plugin_by_spec(inner).new_unmounter(inner.name(), pod_uid)


def _renamed(spec: Spec, name: str) -> Spec:
    """A copy of the spec under another name: callers may keep one spec as a constant (WRAP-03, improved)."""
    if spec.volume is None:
        return spec
    volume = copy.copy(spec.volume)
    volume.name = name
    return replace(spec, volume=volume)
