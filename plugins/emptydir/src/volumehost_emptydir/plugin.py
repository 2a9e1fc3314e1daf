"""The emptyDir plugin: what the entry point names and the host loads (EMPTYDIR rules).

Importing this module loads nothing but the contract: the rest comes when a hook needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from volumehost import hookimpl
from volumehost.errors import NotAvailableOnHostError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from volumehost.api.objects import EmptyDirVolumeSource, Pod
    from volumehost.spec import Spec
    from volumehost.volume_host import VolumeHost
    from volumehost.volumes import Mounter, ReconstructedVolume, Unmounter
    from volumehost_emptydir.mounter import EmptyDirMounter
    from volumehost_emptydir.place import VolumePlace
    from volumehost_emptydir.swap import SwapControl
    from volumehost_emptydir.unmounter import EmptyDirUnmounter

PLUGIN_NAME = "kubernetes.io/empty-dir"


class _Tools(NamedTuple):
    """What a mounter is made with, the same for all."""

    mounter: type[EmptyDirMounter]
    place: Callable[[VolumeHost, str, str], VolumePlace]
    memory: str
    memory_size: Callable[[EmptyDirVolumeSource, Pod, Mapping[str, int]], int]
    swap_control: SwapControl
    sticky: bool


class EmptyDirPlugin:
    """Gives a pod scratch space on disk, in memory or on huge pages, which goes away with the pod."""

    def __init__(self) -> None:
        self._host: VolumeHost | None = None
        self._made: _Tools | None = None
        self._unmounting: tuple[type[EmptyDirUnmounter], Callable[[VolumeHost, str, str], VolumePlace]] | None = None

    @hookimpl
    def init(self, host: VolumeHost) -> None:
        """Keep the host."""
        self._host = host

    @hookimpl
    def get_plugin_name(self) -> str:
        """``kubernetes.io/empty-dir``."""
        return PLUGIN_NAME

    @hookimpl
    def get_volume_sources(self) -> Collection[str]:
        """emptyDir, which only pods have."""
        return ("empty_dir",)

    @hookimpl
    def can_support(self, spec: Spec) -> bool:
        """Whether the pod's volume is an emptyDir; never a PersistentVolume (EMPTYDIR-01)."""
        return spec.volume is not None and spec.volume.empty_dir is not None

    @hookimpl
    def get_volume_name(self, spec: Spec) -> str:
        """The volume's name in the pod (EMPTYDIR-03)."""
        if spec.volume is None or spec.volume.empty_dir is None:
            raise SpecError(
                "spec does not reference an emptyDir volume type", action="reading a volume", subject=spec.name()
            )
        return spec.name()

    @hookimpl
    def new_mounter(self, spec: Spec, pod: Pod) -> Mounter:
        """Works out the size of a volume in memory, which is why this can fail (EMPTYDIR-10)."""
        tools, host = self._tools(), self._any_host()
        source = _source(spec)
        size = tools.memory_size(source, pod, host.get_node_allocatable()) if source.medium == tools.memory else 0
        return tools.mounter(
            place=tools.place(host, pod.metadata.uid, spec.name()),
            source=source,
            pod=pod,
            size=size,
            mounter=host.get_mounter(),
            swap_control=tools.swap_control,
            sticky=tools.sticky,
        )

    @hookimpl
    def new_unmounter(self, volume_name: str, pod_uid: str) -> Unmounter:
        """Finds out the medium from what is there (EMPTYDIR-05)."""
        if self._unmounting is None:
            from volumehost_emptydir.place import VolumePlace
            from volumehost_emptydir.unmounter import EmptyDirUnmounter

            self._unmounting = EmptyDirUnmounter, VolumePlace.of
        unmounter, place = self._unmounting
        host = self._any_host()
        return unmounter(place(host, pod_uid, volume_name), host.get_mounter())

    @hookimpl
    def construct_volume_spec(self, volume_name: str, mount_path: str) -> ReconstructedVolume:
        """An emptyDir of that name, with the medium that is mounted there; the size limit is lost (EMPTYDIR-06)."""
        from volumehost import ReconstructedVolume, Spec
        from volumehost.api.objects import EmptyDirVolumeSource, Volume
        from volumehost_emptydir.place import medium_of

        medium = medium_of(mount_path, self._any_host().get_mounter())
        volume = Volume(name=volume_name, empty_dir=EmptyDirVolumeSource(medium=medium))
        return ReconstructedVolume(Spec.from_volume(volume), complete=False)

    @hookimpl
    def resize_ephemeral_volume(self, spec: Spec, pod: Pod, new_size: int | None) -> None:
        """Change the size of a mounted volume in memory, keeping its content (PLUG-29)."""
        from volumehost_emptydir.place import VolumePlace
        from volumehost_emptydir.resize import resize

        host = self._any_host()
        place = VolumePlace.of(host, pod.metadata.uid, spec.name())
        resize(place, _source(spec), pod, new_size, host)

    def _tools(self) -> _Tools:
        """What mounters are made with; loaded with the first one."""
        if self._made is None:
            from volumehost_emptydir.mounter import EmptyDirMounter
            from volumehost_emptydir.place import VolumePlace
            from volumehost_emptydir.size import MEMORY, memory_size
            from volumehost_emptydir.swap import SwapControl

            host = self._any_host()
            self._made = _Tools(
                mounter=EmptyDirMounter,
                place=VolumePlace.of,
                memory=MEMORY,
                memory_size=memory_size,
                swap_control=SwapControl(host.get_mounter(), host.get_plugin_dir(PLUGIN_NAME)),
                sticky=host.get_volume_config(PLUGIN_NAME).other_attributes.get("sticky") == "true",
            )
        return self._made

    def _any_host(self) -> VolumeHost:
        if self._host is None:
            raise NotAvailableOnHostError("the plugin was not initialised with a host", subject=PLUGIN_NAME)
        return self._host


def _source(spec: Spec) -> EmptyDirVolumeSource:
    """The spec's source; a volume without one counts as an emptyDir of the default medium (EMPTYDIR-01)."""
    if spec.volume is not None and spec.volume.empty_dir is not None:
        return spec.volume.empty_dir
    from volumehost.api.objects import EmptyDirVolumeSource

    return EmptyDirVolumeSource()
