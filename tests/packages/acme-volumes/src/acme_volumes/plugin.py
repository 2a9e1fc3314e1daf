"""The plugin ``example.com/scratch``: serves flexVolume volumes of the driver of that name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acme_volumes.volume import ScratchVolume
from volumehost import ReconstructedVolume, Spec, VolumePlugin, errors, hookimpl

if TYPE_CHECKING:
    from collections.abc import Collection

    from volumehost import Mounter, Unmounter, VolumeHost
    from volumehost.api.objects import FlexPersistentVolumeSource, FlexVolumeSource, Pod

NAME = "example.com/scratch"
DEFAULT_SIZE = "64Mi"


class ScratchPlugin(VolumePlugin):
    """Gives each volume a tmpfs. Option: ``size``, a Kubernetes quantity."""

    @hookimpl
    def init(self, host: VolumeHost) -> None:
        """Keep the host."""
        self._host = host

    @hookimpl
    def get_plugin_name(self) -> str:
        """The name, which is also the driver's in a flexVolume."""
        return NAME

    @hookimpl
    def get_volume_sources(self) -> Collection[str]:
        """FlexVolume alone."""
        return ("flex_volume",)

    @hookimpl
    def can_support(self, spec: Spec) -> bool:
        """Whether the spec names our driver."""
        return _source(spec) is not None

    @hookimpl
    def get_volume_name(self, spec: Spec) -> str:
        """The volume's own name: nothing backs it but memory."""
        _required(spec)
        return spec.name()

    @hookimpl
    def new_mounter(self, spec: Spec, pod: Pod) -> Mounter:
        """A tmpfs of the size asked for."""
        from volumehost.sdk import parse_quantity

        text = _required(spec).options.get("size", DEFAULT_SIZE)
        try:
            size = parse_quantity(text).value()
        except ValueError as error:
            raise errors.SpecError(str(error), action="reading the option size", subject=spec.name()) from error
        return ScratchVolume(self._host, pod.metadata.uid, spec.name(), size)

    @hookimpl
    def new_unmounter(self, volume_name: str, pod_uid: str) -> Unmounter:
        """Names are all that it takes to unmount."""
        return ScratchVolume(self._host, pod_uid, volume_name, size=0)

    @hookimpl
    def construct_volume_spec(self, volume_name: str, mount_path: str) -> ReconstructedVolume:
        """A volume of that name with the default size: the mount does not tell what was asked for."""
        from volumehost.api.objects import FlexVolumeSource, Volume

        return ReconstructedVolume(
            Spec.from_volume(Volume(name=volume_name, flex_volume=FlexVolumeSource(driver=NAME))), complete=False
        )


def _source(spec: Spec) -> FlexVolumeSource | FlexPersistentVolumeSource | None:
    source: FlexVolumeSource | FlexPersistentVolumeSource | None = None
    if spec.volume is not None:
        source = spec.volume.flex_volume
    elif spec.persistent_volume is not None:
        source = spec.persistent_volume.spec.flex_volume
    return source if source is not None and source.driver == NAME else None


def _required(spec: Spec) -> FlexVolumeSource | FlexPersistentVolumeSource:
    source = _source(spec)
    if source is None:
        raise errors.SpecError(f"not a volume of {NAME}", subject=spec.name())
    return source
