"""The fake node keeps strict books on what is staged and published (CSI-WIRE-15 to CSI-WIRE-18)."""

from __future__ import annotations

import os

import pytest

from volumehost_csi_kit import csi
from volumehost_csi_kit.fake import NODE_CAPABILITIES

T = {"timeout": 30}


def test_every_capability_of_the_protocol_is_there(rpc):
    reply = rpc.node.NodeGetCapabilities(csi.NodeGetCapabilitiesRequest(), **T)
    names = csi.NodeServiceCapability.RPC.Type
    assert {names.Name(each.rpc.type) for each in reply.capabilities} == set(names.keys()) - {"UNKNOWN"}
    assert set(NODE_CAPABILITIES) == set(names.keys()) - {"UNKNOWN"}


def test_a_cycle_with_every_call_twice(fake, rpc, requests):
    volume = requests()
    for call, request in (
        (rpc.node.NodeStageVolume, volume.stage),
        (rpc.node.NodePublishVolume, volume.publish),
        (rpc.node.NodeUnpublishVolume, volume.unpublish),
        (rpc.node.NodeUnstageVolume, volume.unstage),
    ):
        for _ in range(2):
            call(request, **T)
        assert os.path.isdir(volume.target) == (request is volume.publish)
    assert fake.state()["volumes"]["v"]["staged"] == ""
    assert os.path.isdir(volume.staging), "the caller made it"


def test_a_block_volume_has_a_file_as_its_target(rpc, requests, capability):
    volume = requests(wanted=capability(block=True))
    rpc.node.NodeStageVolume(volume.stage, **T)
    rpc.node.NodePublishVolume(volume.publish, **T)
    assert os.path.isfile(volume.target)
    rpc.node.NodeUnpublishVolume(volume.unpublish, **T)
    assert not os.path.lexists(volume.target)


def test_books_only(fake, rpc, requests):
    fake.configure(mounts="none")
    volume = requests()
    rpc.node.NodeStageVolume(volume.stage, **T)
    rpc.node.NodePublishVolume(volume.publish, **T)
    assert not os.path.lexists(volume.target)
    assert list(fake.state()["volumes"]["v"]["published"]) == [volume.target]


def test_order(fake, rpc, requests, failure):
    """What comes too early or too late is refused, and leaves nothing behind."""
    volume = requests()
    assert failure(rpc.node.NodePublishVolume, volume.publish) == (
        "FAILED_PRECONDITION",
        f"not staged at {volume.staging}",
    )
    assert fake.state()["volumes"] == {}
    rpc.node.NodeStageVolume(volume.stage, **T)
    rpc.node.NodePublishVolume(volume.publish, **T)
    assert failure(rpc.node.NodeUnstageVolume, volume.unstage)[0] == "FAILED_PRECONDITION"


def test_the_caller_makes_the_directories(fake, rpc, requests, failure):
    """CSI-WIRE-16."""
    volume = requests()
    os.rmdir(volume.staging)
    assert failure(rpc.node.NodeStageVolume, volume.stage)[0] == "FAILED_PRECONDITION"
    os.mkdir(volume.staging)
    rpc.node.NodeStageVolume(volume.stage, **T)
    volume.publish.target_path += "/deeper/down"
    code, message = failure(rpc.node.NodePublishVolume, volume.publish)
    assert (code, message.startswith("target_path: the parent of")) == ("FAILED_PRECONDITION", True)
    assert fake.state()["volumes"]["v"]["published"] == {}


def test_the_same_target_with_other_arguments(rpc, requests, failure):
    """CSI-WIRE-17."""
    volume = requests()
    rpc.node.NodeStageVolume(volume.stage, **T)
    rpc.node.NodePublishVolume(volume.publish, **T)
    volume.publish.readonly = True
    assert failure(rpc.node.NodePublishVolume, volume.publish)[0] == "ALREADY_EXISTS"
    volume.stage.publish_context["device"] = "/dev/other"
    assert failure(rpc.node.NodeStageVolume, volume.stage)[0] == "ALREADY_EXISTS"


@pytest.mark.parametrize(
    ("mode", "code"), [("SINGLE_NODE_SINGLE_WRITER", "FAILED_PRECONDITION"), ("SINGLE_NODE_MULTI_WRITER", "")]
)
def test_a_second_target(rpc, requests, capability, failure, mode, code):
    first, second = (requests(target=target, wanted=capability(mode)) for target in ("one", "two"))
    rpc.node.NodeStageVolume(first.stage, **T)
    rpc.node.NodePublishVolume(first.publish, **T)
    if code:
        assert failure(rpc.node.NodePublishVolume, second.publish)[0] == code
    else:
        rpc.node.NodePublishVolume(second.publish, **T)


def test_a_driver_without_staging(fake, rpc, requests, failure):
    fake.configure(node=["GET_VOLUME_STATS"])
    volume = requests()
    assert failure(rpc.node.NodeStageVolume, volume.stage)[0] == "UNIMPLEMENTED"
    volume.publish.staging_target_path = ""
    rpc.node.NodePublishVolume(volume.publish, **T)
    rpc.node.NodeUnpublishVolume(volume.unpublish, **T)


def test_stats(fake, rpc, requests, failure):
    volume = requests()
    rpc.node.NodeStageVolume(volume.stage, **T)
    rpc.node.NodePublishVolume(volume.publish, **T)
    request = csi.NodeGetVolumeStatsRequest(volume_id="v", volume_path=volume.target)
    fake.configure(abnormal="slow")
    reply = rpc.node.NodeGetVolumeStats(request, **T)
    assert [usage.unit for usage in reply.usage] == [csi.VolumeUsage.BYTES, csi.VolumeUsage.INODES]
    assert all(usage.total >= usage.used + usage.available for usage in reply.usage)
    assert reply.volume_condition.message == "slow"
    fake.configure(node=["GET_VOLUME_STATS"])
    assert not rpc.node.NodeGetVolumeStats(request, **T).HasField("volume_condition")
    request.volume_path = f"{volume.target}/gone"
    assert failure(rpc.node.NodeGetVolumeStats, request)[0] == "NOT_FOUND"
    request.volume_id = "other"
    assert failure(rpc.node.NodeGetVolumeStats, request)[0] == "NOT_FOUND"


def test_expanding(rpc, requests, failure):
    volume = requests()
    request = csi.NodeExpandVolumeRequest(
        volume_id="v", volume_path=volume.target, capacity_range=csi.CapacityRange(required_bytes=10)
    )
    assert failure(rpc.node.NodeExpandVolume, request)[0] == "NOT_FOUND"
    rpc.node.NodeStageVolume(volume.stage, **T)
    for _ in range(2):
        assert rpc.node.NodeExpandVolume(request, **T).capacity_bytes == 10
    rpc.node.NodeUnstageVolume(volume.unstage, **T)
    assert failure(rpc.node.NodeExpandVolume, request)[0] == "FAILED_PRECONDITION"
