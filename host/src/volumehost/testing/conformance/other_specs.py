"""Specs that are not the plugin's: an empty one, and one of every kind of source that Kubernetes has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from volumehost.spec import Spec

#: The driver that no plugin is.
FOREIGN_DRIVER = "foreign.invalid/driver"


def empty_specs() -> Iterator[tuple[str, Spec]]:
    """Specs without a source, each with words for it."""
    from volumehost.api.objects import PersistentVolume, Volume

    yield "a spec with neither volume nor PersistentVolume", Spec()
    yield "a volume without a source", Spec.from_volume(Volume(name="data"))
    yield "a PersistentVolume without a source", Spec.from_persistent_volume(PersistentVolume(), read_only=False)


def specs_of_other_kinds(own: str) -> Iterator[tuple[str, Spec]]:
    """A spec of every kind of source but ``own``, each with words for it.

    Kinds of third parties (CSI, FlexVolume) are among them also when they are the plugin's own kind: with a driver that
    is not the plugin.
    """
    from volumehost.api.objects import ObjectMeta, PersistentVolume, PersistentVolumeSpec, Volume

    for name, source in _sources(Volume, own):
        yield f"a pod's volume of kind {name}", Spec.from_volume(Volume(name="data", **{name: source}))
    for name, source in _sources(PersistentVolumeSpec, own):
        volume = PersistentVolume(metadata=ObjectMeta(name="data"), spec=PersistentVolumeSpec(**{name: source}))
        yield f"a PersistentVolume of kind {name}", Spec.from_persistent_volume(volume, read_only=False)


def known_sources() -> frozenset[str]:
    """The names of all kinds of source."""
    from volumehost.api.objects import PersistentVolumeSpec, Volume

    return frozenset(Volume.SOURCES) | frozenset(PersistentVolumeSpec.SOURCES)


def _sources(holder: Any, own: str) -> Iterator[tuple[str, Any]]:
    """Name and an otherwise empty instance of each source of a Volume or PersistentVolumeSpec."""
    hints = get_type_hints(holder)
    for name in holder.SOURCES:
        (struct,) = (each for each in get_args(hints[name]) if each is not type(None))
        if "driver" in struct.__struct_fields__:
            yield name, struct(driver=FOREIGN_DRIVER)
        elif name != own:
            yield name, struct()
