"""Specs of volumes of which nothing is to be done, kept small beside their pods; for the desired state."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from volumehost.spec import Spec

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume, Pod
    from volumehost.node.state.kept_pods import Unpacked


class PackedVolume(NamedTuple):
    """The spec of a PersistentVolume, which stands there as its JSON text."""

    text: bytes
    read_only: bool
    inline: bool
    migrated: bool


#: None: the pod's own volume of the first outer name, which is kept with the pod.
KeptSpec = PackedVolume | Spec | None


def pack(spec: Spec, pod: Pod, outer_name: str) -> KeptSpec:
    """How to keep it; as it is where that is all one can do."""
    if spec.persistent_volume is not None:
        try:
            text = bytes(memoryview(msgspec.json.encode(spec.persistent_volume)))
        except (UnicodeEncodeError, TypeError, ValueError):
            return spec
        return PackedVolume(text, spec.read_only, spec.inline_volume_spec_for_csi_migration, spec.migrated)
    own = next((volume for volume in pod.spec.volumes if volume.name == outer_name), None)
    return None if own is spec.volume and not spec.read_only and not spec.migrated else spec


def is_persistent(kept: KeptSpec) -> bool:
    """Whether it is that of a PersistentVolume."""
    return isinstance(kept, PackedVolume) or (kept is not None and kept.persistent_volume is not None)


def unpack(kept: KeptSpec, unpacked: Unpacked, volume: str, outer_name: str) -> Spec:
    """The spec, the same again as long as the pod is there as an object."""
    spec = unpacked.specs.get(volume)
    if spec is None:
        spec = unpacked.specs[volume] = _read(kept, unpacked.pod, outer_name)
    return spec


def _read(kept: KeptSpec, pod: Pod, outer_name: str) -> Spec:
    if kept is None:
        return Spec.from_volume(next(volume for volume in pod.spec.volumes if volume.name == outer_name))
    if isinstance(kept, PackedVolume):
        return Spec(
            persistent_volume=_decoder().decode(kept.text),
            read_only=kept.read_only,
            inline_volume_spec_for_csi_migration=kept.inline,
            migrated=kept.migrated,
        )
    return kept


@functools.cache
def _decoder() -> msgspec.json.Decoder[PersistentVolume]:
    from volumehost.api.objects import PersistentVolume

    return msgspec.json.Decoder(PersistentVolume)
