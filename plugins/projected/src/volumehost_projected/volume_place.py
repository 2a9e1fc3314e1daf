"""Where a volume's files lie: its directory, and the emptyDir below them that the host wraps (WRAP-01 to -07)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.spec import Spec
    from volumehost.volume_host import VolumeHost
    from volumehost.volumes import Mounter, Unmounter


class VolumePlace(NamedTuple):
    """One volume of any pod. ``kind`` is the volume's source in the API's words."""

    host: VolumeHost
    plugin_name: str
    kind: str
    name: str
    in_memory: bool

    def directory(self, pod_uid: str) -> str:
        """The pod's own directory for it."""
        return self.host.get_pod_volume_dir(pod_uid, self.plugin_name, self.name)

    def wrapped_mounter(self, pod: Pod) -> Mounter:
        """Sets up the emptyDir that holds the files."""
        return self.host.new_wrapper_mounter(self.name, self._wrapped(), pod)

    def wrapped_unmounter(self, pod_uid: str) -> Unmounter:
        """Takes it away with all that it holds."""
        return self.host.new_wrapper_unmounter(self.name, self._wrapped(), pod_uid)

    def _wrapped(self) -> Spec:
        """A spec of its own for each call: hosts may rename its volume (WRAP-03)."""
        from volumehost import Spec
        from volumehost.api.objects import EmptyDirVolumeSource, Volume

        source = EmptyDirVolumeSource(medium="Memory" if self.in_memory else "")
        return Spec.from_volume(Volume(name=self.name, empty_dir=source))
