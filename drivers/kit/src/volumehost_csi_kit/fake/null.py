"""A driver without work, for benchmarks: a directory and a bind mount on publish, the reverse on unpublish.

What a host takes beyond the time of these calls is its own overhead.
"""

from __future__ import annotations

import contextlib
import os

from volumehost_csi_kit import csi
from volumehost_csi_kit.fake.mounts import mount, unmount
from volumehost_csi_kit.server.driver import Driver


class NullNode:
    """Stages nothing, publishes the staging directory."""

    def node_stage_volume(self, _request: csi.NodeStageVolumeRequest, _context: object) -> None:
        """Nothing."""

    def node_unstage_volume(self, _request: csi.NodeUnstageVolumeRequest, _context: object) -> None:
        """Nothing."""

    def node_publish_volume(self, request: csi.NodePublishVolumeRequest, _context: object) -> None:
        """Bind the staging directory, unless it is."""
        try:
            os.mkdir(request.target_path)
        except FileExistsError:
            if os.path.samefile(request.target_path, request.staging_target_path):
                return
        mount(request.staging_target_path, request.target_path)

    def node_unpublish_volume(self, request: csi.NodeUnpublishVolumeRequest, _context: object) -> None:
        """Take the bind mount away, if it is there."""
        unmount(request.target_path)
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(request.target_path)


def null_driver(name: str = "null.csi.example.com", node_id: str = "fake-node") -> Driver:
    """Such a driver: it does not even serialise calls of one volume."""
    return Driver(name, "1.0.0", node=NullNode(), node_id=node_id, queue_seconds=None, workers=64)
