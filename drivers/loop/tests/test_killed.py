"""kill -9 at every step of every operation: the next process goes on, nothing is lost, nothing is left."""

from __future__ import annotations

import os

import grpc
import pytest

from volumehost_csi_kit import csi

pytestmark = pytest.mark.root
MiB = 1 << 20

STEPS = [
    "create:image",
    "create:record",
    "stage:formatted",
    "stage:attached",
    "stage:mounted",
    "publish:remembered",
    "publish:mounted",
    "freeze:frozen",
    "snapshot:image",
    "snapshot:record",
    "expand:image",
    "expand:record",
    "unpublish:unmounted",
    "unstage:unmounted",
    "unstage:detached",
    "delete:detached",
    "delete:record",
    "delete-snapshot:record",
    "group:snapshots",
    "ephemeral:record",
]


class Stubborn:
    """An orchestrator: repeats a call after the driver has died, with the next process."""

    def __init__(self, client, start, step: str) -> None:
        self._client = client
        self._start = start
        self.process = start(deadly_step=step)
        self.deaths = 0

    def call(self, method: str, **fields):
        try:
            return self._client.call(method, **fields)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE:
                raise  # only the death of the process is an excuse
            if self.process.process.wait(30) != -9:
                raise
            self.deaths += 1
            self.process = self._start()
            self._client.reconnect()
            return self._client.call(method, **fields)


@pytest.mark.parametrize("step", STEPS)
def test_killed_at(step, client, start, place) -> None:
    orchestrator = Stubborn(client, start, step)
    call = orchestrator.call
    capability = client.capability()
    stage, target, inline = (os.path.join(place, name) for name in ("stage", "target", "inline"))

    created = {"name": "claim", "volume_capabilities": [capability]}
    id = call("CreateVolume", capacity_range=csi.CapacityRange(required_bytes=16 * MiB), **created).volume.volume_id
    call("ControllerPublishVolume", volume_id=id, node_id="node-1", volume_capability=capability)
    at_stage = {"volume_id": id, "staging_target_path": stage, "volume_capability": capability}
    call("NodeStageVolume", **at_stage)
    call("NodePublishVolume", target_path=target, **at_stage)
    with open(f"{target}/file", "w", encoding="utf-8") as file:
        file.write("kept")

    snapshot = call("CreateSnapshot", source_volume_id=id, name="snap").snapshot
    with open(f"{target}/file", encoding="utf-8") as file:
        assert file.read() == "kept"
    with open(f"{target}/not frozen", "wb"):
        pass
    size = csi.CapacityRange(required_bytes=24 * MiB)
    expanded = call("ControllerExpandVolume", volume_id=id, capacity_range=size)
    assert expanded.capacity_bytes == 24 * MiB
    group = call("CreateVolumeGroupSnapshot", name="group", source_volume_ids=[id]).group_snapshot
    call(
        "DeleteVolumeGroupSnapshot",
        group_snapshot_id=group.group_snapshot_id,
        snapshot_ids=[item.snapshot_id for item in group.snapshots],
    )
    ephemeral = {"volume_id": "csi-inline", "target_path": inline}
    context = {"csi.storage.k8s.io/ephemeral": "true", "size": "4Mi"}
    call("NodePublishVolume", volume_capability=capability, volume_context=context, **ephemeral)
    assert os.path.ismount(inline)
    call("NodeUnpublishVolume", **ephemeral)

    call("NodeUnpublishVolume", volume_id=id, target_path=target)
    call("NodeUnstageVolume", volume_id=id, staging_target_path=stage)
    call("NodeStageVolume", **at_stage)
    with open(f"{stage}/file", encoding="utf-8") as file:
        assert file.read() == "kept"
    call("NodeUnstageVolume", volume_id=id, staging_target_path=stage)
    call("ControllerUnpublishVolume", volume_id=id, node_id="node-1")
    call("DeleteVolume", volume_id=id)
    call("DeleteSnapshot", snapshot_id=snapshot.snapshot_id)

    assert orchestrator.deaths == 1, "the step was not reached"
    assert not os.path.exists(target)
    assert not os.path.exists(inline)
    for directory in ("volumes", "snapshots", "groups", "node"):
        left = [files for _, _, files in os.walk(os.path.join(place, "data", directory)) if files]
        assert not left, f"left behind in {directory}: {left}"
    assert orchestrator.process.stop() == 0


def test_every_step_is_in_the_list() -> None:
    import re

    import volumehost_loop_driver

    found = set()
    directory = os.path.dirname(volumehost_loop_driver.__file__)
    for name in os.listdir(directory):
        if name.endswith(".py"):
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                found |= set(re.findall(r'observe\("([^"]+)"\)', file.read()))
    assert found == set(STEPS)


def test_a_frozen_filesystem_is_thawed_although_nobody_starts_the_driver_again(client, start, place) -> None:
    process = start(deadly_step="freeze:frozen")
    stage = os.path.join(place, "stage")
    id = client.create("claim").volume_id
    client.call("NodeStageVolume", volume_id=id, staging_target_path=stage, volume_capability=client.capability())
    with pytest.raises(grpc.RpcError):
        client.call("CreateSnapshot", source_volume_id=id, name="snap")
    assert process.process.wait(30) == -9
    with open(f"{stage}/file", "wb"):  # hangs, and the test with it, if nobody thaws
        pass
    start()
    client.reconnect()
    client.call("NodeUnstageVolume", volume_id=id, staging_target_path=stage)
    client.call("DeleteVolume", volume_id=id)


def test_killed_while_formatting_is_formatted_again(client, start, place) -> None:
    process = start(deadly_step="stage:formatted")
    stage = os.path.join(place, "stage")
    id = client.create("claim").volume_id
    fields = {"volume_id": id, "staging_target_path": stage, "volume_capability": client.capability()}
    with pytest.raises(grpc.RpcError):
        client.call("NodeStageVolume", **fields)
    process.process.wait(30)
    image = os.path.join(place, "data/volumes", f"{id.removeprefix('vol-')}.img")
    os.rename(image, image + ".formatting")
    with open(image + ".formatting", "r+b") as file:
        file.seek(1024)
        file.write(b"half of a superblock")
    start()
    client.reconnect()
    client.call("NodeStageVolume", **fields)
    assert os.path.ismount(stage)
    client.call("NodeUnstageVolume", volume_id=id, staging_target_path=stage)
    client.call("DeleteVolume", volume_id=id)
