"""Asks every loaded plugin about every kind of source: finds those that misbehave and those that claim the same.

``volumehost plugins check`` runs it; the plugins are loaded, nothing is mounted.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from volumehost.errors import MultiplePluginsMatchedError, PluginLookupError
from volumehost.loader.trust import KEEP_ONE
from volumehost.spec import Spec

if TYPE_CHECKING:
    from volumehost.loader.manager import VolumePluginManager


def examine(manager: VolumePluginManager) -> list[MultiplePluginsMatchedError]:
    """Ask for each kind of source, each plugin with a deadline.

    Plugins that raise, exit, hang or answer anything but a bool are set aside, which ``manager.plugins()`` then shows.

    :returns: one error for each set of plugins that answer for the same source.
    """
    rivals: dict[tuple[str, ...], list[str]] = {}
    for words, spec in sample_specs():
        try:
            manager.find_plugin_by_spec(spec, guarded=True)
        except MultiplePluginsMatchedError as error:
            rivals.setdefault(error.names, []).append(words)
        except PluginLookupError:
            continue
    return [_conflict(names, sources) for names, sources in rivals.items()]


def sample_specs() -> Iterator[tuple[str, Spec]]:
    """(what it is, spec): one without a volume (PLUG-04), then one for each source of pods and PersistentVolumes."""
    from volumehost.api.objects import ObjectMeta, PersistentVolume, PersistentVolumeSpec, Volume

    yield "a spec without a volume", Spec()
    for source, value in _sources(Volume):
        yield f"{source} volumes", Spec.from_volume(Volume(name="sample", **{source: value}))
    for source, value in _sources(PersistentVolumeSpec):
        volume = PersistentVolume(metadata=ObjectMeta(name="sample"), spec=PersistentVolumeSpec(**{source: value}))
        yield f"{source} persistent volumes", Spec.from_persistent_volume(volume, read_only=False)


def _sources(holder: Any) -> Iterator[tuple[str, Any]]:
    """Each source field of a struct with an empty source of its type."""
    hints = typing.get_type_hints(holder)
    for source in holder.SOURCES:
        kind = next(each for each in typing.get_args(hints[source]) if each is not type(None))
        yield source, kind()


def _conflict(names: tuple[str, ...], sources: list[str]) -> MultiplePluginsMatchedError:
    shown = ", ".join(sources[:3]) + (f" and {len(sources) - 3} more" if len(sources) > 3 else "")
    return MultiplePluginsMatchedError(
        f"all of {', '.join(names)} answer for {shown}: such a volume cannot be mounted",
        names=names,
        subject=names[0],
        hint=KEEP_ONE,
    )
