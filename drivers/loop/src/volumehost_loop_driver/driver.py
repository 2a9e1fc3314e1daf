"""Puts the parts together to what the kit serves."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

from volumehost_csi_kit.server import Driver
from volumehost_loop_driver.controller_service import ControllerService
from volumehost_loop_driver.ephemeral import EphemeralVolumes
from volumehost_loop_driver.filesystems import Filesystems
from volumehost_loop_driver.group_service import GroupService
from volumehost_loop_driver.node_service import NodeService
from volumehost_loop_driver.publishing import Publishing
from volumehost_loop_driver.snapshots import Snapshots
from volumehost_loop_driver.staging import Staging
from volumehost_loop_driver.state import DriverState
from volumehost_loop_driver.stats import Stats
from volumehost_loop_driver.volumes import Volumes

DRIVER_NAME: Final = "loop.csi.volumehost"


def make_driver(state: DriverState) -> Driver:
    """The driver over an opened data directory; it sees to one call at a time for each volume itself."""
    volumes, snapshots = Volumes(state), Snapshots(state)
    filesystems = Filesystems(state.mounter)
    staging = Staging(state, filesystems)
    publishing, ephemeral = Publishing(state, filesystems, staging), EphemeralVolumes(state, staging)
    return Driver(
        DRIVER_NAME,
        version("volumehost-loop-driver"),
        node=NodeService(state.node_id, staging, publishing, ephemeral, Stats(state, volumes)),
        controller=ControllerService(state, volumes, snapshots),
        group_controller=GroupService(state, snapshots),
        topology=True,
        queue_seconds=None,
    )
