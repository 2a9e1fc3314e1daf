"""One scratch volume of one pod: mounts it, measures it, takes it away."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from acme_volumes._version import __version__
from volumehost import Attributes, VolumeMetrics

if TYPE_CHECKING:
    from volumehost import MounterArgs, VolumeHost

NAME = "example.com/scratch"


class ScratchVolume:
    """Mounter and unmounter in one. ``size`` is in bytes; 0 for an unmounter, which needs none."""

    def __init__(self, host: VolumeHost, pod_uid: str, name: str, size: int) -> None:
        self._host = host
        self._size = size
        self._path = host.get_pod_volume_dir(pod_uid, NAME, name)

    def get_path(self) -> str:
        """Where it is mounted."""
        return self._path

    def get_attributes(self) -> Attributes:
        """The host may give it to the pod's group."""
        return Attributes(managed=True)

    def get_metrics(self) -> VolumeMetrics:
        """What the filesystem says."""
        from volumehost.sdk import StatFsMetrics

        return StatFsMetrics(self._path).get_metrics()

    def set_up(self, args: MounterArgs) -> None:
        """Mount at the plugin's own path."""
        self.set_up_at(self._path, args)

    def set_up_at(self, directory: str, args: MounterArgs) -> None:
        """Mount a tmpfs there; nothing is done when it is mounted already."""
        from volumehost.sdk import apply_ownership

        os.makedirs(directory, mode=0o750, exist_ok=True)
        mounter = self._host.get_mounter()
        if not mounter.is_mount_point(directory):
            options = [f"size={self._size}", "mode=0777"]
            mounter.mount(f"scratch-{__version__}", directory, "tmpfs", options)
        apply_ownership(self, directory, args)

    def tear_down(self) -> None:
        """Unmount at the plugin's own path."""
        self.tear_down_at(self._path)

    def tear_down_at(self, directory: str) -> None:
        """Unmount and remove the directory; nothing is done when it is gone."""
        # Imported when it is needed: a host that runs for months should not pay for it at its start.
        from . import cleanup

        cleanup.clean_up(self._host, directory, made_by=__version__)
