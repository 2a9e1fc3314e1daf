"""Takes a volume of files away: the emptyDir that they lie in, and then what was kept for the pod (PAYLOAD-06)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.volumes import VolumeMetrics
    from volumehost_projected.volume_place import VolumePlace


class FilesUnmounter:
    """Tears one volume down; ``forget`` drops tokens and keys of the pod afterwards."""

    metric_source = "du"

    def __init__(self, place: VolumePlace, pod_uid: str, forget: Callable[[str], None] | None) -> None:
        self._place = place
        self._pod_uid = pod_uid
        self._forget = forget

    def get_path(self) -> str:
        """The directory with the files."""
        return self._place.directory(self._pod_uid)

    def get_metrics(self) -> VolumeMetrics:
        """What the files occupy."""
        from volumehost.sdk import DuMetrics

        return DuMetrics(self.get_path()).get_metrics()

    def tear_down(self) -> None:
        """Take the volume away at the plugin's own path."""
        self.tear_down_at(self.get_path())

    def tear_down_at(self, directory: str) -> None:
        """Remove the volume at ``directory``; success when it is gone already.

        Raises what the emptyDir's teardown raises; tokens and keys are then kept, since the pod may be using them.
        """
        self._place.wrapped_unmounter(self._pod_uid).tear_down_at(directory)
        if self._forget is not None:
            self._forget(self._pod_uid)
