"""The loop driver, a real process on its socket, against the bare commands that do the same to a disk."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from bench.measuring import Figure, alternating, environment, once
from volumehost_csi_kit import csi
from volumehost_csi_kit.endpoints import dial
from volumehost_csi_kit.stubs import ControllerStub, NodeStub

_SIZE = 64 << 20
_SECONDS = 30.0
_ROUNDS = 25
_DRIVER = "import sys; from volumehost_loop_driver.main import main; sys.exit(main(['--log-level', 'warning']))"
#: What somebody would write by hand; the last line is the mount for the pod.
_SCRIPT = """set -e
truncate -s 64M "$1/disk.img"
device=$(losetup --find --show "$1/disk.img")
mkfs.ext4 -q "$device"
mount -t ext4 "$device" "$1/mounted"
umount "$1/mounted"
losetup -d "$device"
rm "$1/disk.img"
"""


def figures() -> list[Figure]:
    """A volume's whole life, 64 MiB of ext4."""
    with tempfile.TemporaryDirectory() as base, _driver(base) as cycle:
        os.mkdir(f"{base}/mounted")

        def commands() -> None:
            subprocess.run(["sh", "-c", _SCRIPT, "sh", base], check=True)

        cycle()
        commands()
        ours, theirs = alternating([lambda: once(cycle), lambda: once(commands)], rounds=_ROUNDS)
    return [
        Figure("create, stage, publish and back, 64 MiB ext4", ours, theirs, "losetup, mkfs, mount by script", 1.3, 1.0)
    ]


@contextmanager
def _driver(base: str) -> Iterator[Callable[[], None]]:
    """The driver, serving; one call is one cycle."""
    endpoint = f"unix://{base}/csi.sock"
    process = subprocess.Popen(
        [sys.executable, "-c", _DRIVER],
        env=environment(CSI_ENDPOINT=endpoint, KUBE_NODE_NAME="bench", VOLUMEHOST_DRIVER_DATA_DIR=f"{base}/data"),
    )
    channel = dial(endpoint)
    try:
        yield _cycle(ControllerStub(channel), NodeStub(channel), base)
    finally:
        channel.close()
        process.terminate()
        process.wait(_SECONDS)


def _cycle(controller: ControllerStub, node: NodeStub, base: str) -> Callable[[], None]:
    one = csi.VolumeCapability
    capability = one(
        mount=one.MountVolume(fs_type="ext4"),
        access_mode=one.AccessMode(mode=one.AccessMode.SINGLE_NODE_MULTI_WRITER),
    )
    size = csi.CapacityRange(required_bytes=_SIZE)
    staging, target = f"{base}/staging", f"{base}/target"
    os.mkdir(staging)
    names = count()

    def cycle() -> None:
        create = csi.CreateVolumeRequest(
            name=f"bench-{next(names)}", capacity_range=size, volume_capabilities=[capability]
        )
        id = controller.CreateVolume(create, timeout=_SECONDS, wait_for_ready=True).volume.volume_id
        stage = csi.NodeStageVolumeRequest(volume_id=id, staging_target_path=staging, volume_capability=capability)
        node.NodeStageVolume(stage, timeout=_SECONDS)
        publish = csi.NodePublishVolumeRequest(
            volume_id=id, staging_target_path=staging, target_path=target, volume_capability=capability
        )
        node.NodePublishVolume(publish, timeout=_SECONDS)
        node.NodeUnpublishVolume(csi.NodeUnpublishVolumeRequest(volume_id=id, target_path=target), timeout=_SECONDS)
        unstage = csi.NodeUnstageVolumeRequest(volume_id=id, staging_target_path=staging)
        node.NodeUnstageVolume(unstage, timeout=_SECONDS)
        controller.DeleteVolume(csi.DeleteVolumeRequest(volume_id=id), timeout=_SECONDS)

    return cycle
