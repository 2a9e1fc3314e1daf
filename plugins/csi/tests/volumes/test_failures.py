"""CSI-ERR: the table of codes at every call, and what each failure leaves on disk (CSI-MNT-31)."""

from __future__ import annotations

import logging
import os

import grpc
import pytest

from volumehost import MounterArgs
from volumehost.errors import (
    OperationError,
    StorageDriverError,
    StorageDriverInfeasibleError,
    StorageDriverPreconditionError,
    StorageDriverUncertainError,
    StorageDriverUnsupportedError,
    TransientOperationError,
    UncertainProgressError,
    error_chain,
    is_operation_finished_error,
    is_uncertain_progress_error,
)
from volumehost.storage_driver import VolumeCapability
from volumehost_csi import vol_data
from volumehost_csi.client import NodeClient
from volumehost_csi.failures import rpc_failure
from volumehost_csi_kit.endpoints import dial

NAME = "fake.csi.example.com"
CODES = [code.name for code in grpc.StatusCode if code.name != "OK"]
UNCERTAIN = {"CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"}
MOUNT = VolumeCapability("SINGLE_NODE_WRITER")

CALLS = {
    "NodeGetInfo": lambda client: client.get_info(),
    "NodeGetCapabilities": lambda client: client.capabilities(),
    "NodeStageVolume": lambda client: client.stage_volume("vol-1", "/stage", MOUNT),
    "NodePublishVolume": lambda client: client.publish_volume("vol-1", "/target", MOUNT, read_only=False),
    "NodeUnpublishVolume": lambda client: client.unpublish_volume("vol-1", "/target"),
    "NodeUnstageVolume": lambda client: client.unstage_volume("vol-1", "/stage"),
    "NodeExpandVolume": lambda client: client.expand_volume("vol-1", "/target", MOUNT, 5),
    "NodeGetVolumeStats": lambda client: client.get_volume_stats("vol-1", "/target"),
}


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("call", CALLS)
def test_csi_err_04_08_kind_code_and_message_of_every_call(node, client, call, code):
    node.fail(call, code, "the driver says no")
    with pytest.raises(StorageDriverError) as caught:
        CALLS[call](client)
    error = caught.value
    assert (error.driver, error.call, error.code) == (NAME, call, code)
    assert error.driver_message == "the driver says no"
    assert NAME in str(error)
    assert call in str(error)
    assert code in str(error)
    assert is_uncertain_progress_error(error) == (code in UNCERTAIN)
    assert is_operation_finished_error(error) == (code not in UNCERTAIN)
    expansion = call == "NodeExpandVolume"
    assert isinstance(error, StorageDriverPreconditionError) == (expansion and code == "FAILED_PRECONDITION")
    assert isinstance(error, StorageDriverInfeasibleError) == (
        expansion and code in {"INVALID_ARGUMENT", "OUT_OF_RANGE", "NOT_FOUND"}
    )
    assert isinstance(error, StorageDriverUnsupportedError) == (code == "UNIMPLEMENTED")


def test_csi_err_05_an_error_without_a_code_is_uncertain():
    error = rpc_failure(RuntimeError("no channel"), driver=NAME, call="NodeStageVolume", action="staging")
    assert isinstance(error, StorageDriverUncertainError)
    assert error.code == ""
    assert "RuntimeError: no channel" in str(error)


def test_a_reply_that_cannot_be_read_is_uncertain_the_work_may_be_done(node, channel, client):
    def garbled(data):
        raise ValueError("garbage")

    client._stub.NodeExpandVolume = channel.unary_unary(
        "/csi.v1.Node/NodeExpandVolume",
        request_serializer=lambda request: request.SerializeToString(),
        response_deserializer=garbled,
    )
    with pytest.raises(StorageDriverUncertainError):
        client.expand_volume("vol-1", "/target", MOUNT, 5)


def test_csi_cli_03_a_socket_that_is_not_there_is_uncertain(tmp_path):
    with dial(f"{tmp_path}/none.sock") as channel, pytest.raises(StorageDriverUncertainError) as caught:
        NodeClient(NAME, channel).capabilities()
    assert caught.value.code == "UNAVAILABLE"
    assert f"volumehost drivers show {NAME}" in caught.value.hint


def test_br_31_a_driver_that_hangs_ends_with_the_deadline_of_the_call(node, channel, hold):
    node.script("NodeStageVolume", lambda request, context: hold.wait(60) and None)
    with pytest.raises(StorageDriverUncertainError) as caught:
        NodeClient(NAME, channel, timeout=0.2).stage_volume("vol-1", "/stage", MOUNT)
    assert caught.value.code == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.stage_volume("", "/stage", MOUNT),
        lambda client: client.stage_volume("vol-1", "", MOUNT),
        lambda client: client.publish_volume("", "/target", MOUNT, read_only=False),
        lambda client: client.publish_volume("vol-1", "", MOUNT, read_only=False),
        lambda client: client.unpublish_volume("", "/target"),
        lambda client: client.unpublish_volume("vol-1", ""),
        lambda client: client.unstage_volume("", "/stage"),
        lambda client: client.unstage_volume("vol-1", ""),
        lambda client: client.expand_volume("", "/target", MOUNT, 5),
        lambda client: client.expand_volume("vol-1", "", MOUNT, 5),
        lambda client: client.expand_volume("vol-1", "/target", MOUNT, -1),
        lambda client: client.get_volume_stats("", "/target"),
        lambda client: client.get_volume_stats("vol-1", ""),
        lambda client: client.unpublish_volume("bad \ud800 text", "/target"),
    ],
)
def test_csi_err_06_arguments_that_can_never_be_right_are_refused_here_and_final(node, client, call):
    with pytest.raises(StorageDriverError) as caught:
        call(client)
    assert is_operation_finished_error(caught.value)
    assert caught.value.code == ""
    assert node.calls == []


def test_csi_nim_09_an_empty_node_id_is_an_error(node, client):
    from volumehost_csi_kit import csi

    node.script("NodeGetInfo", lambda request, context: csi.NodeGetInfoResponse())
    with pytest.raises(StorageDriverError, match="empty node id"):
        client.get_info()


# --- what is left on disk -------------------------------------------------------------------------------------


def has(path):
    return os.path.exists(path)


@pytest.mark.root
@pytest.mark.parametrize("code", CODES)
def test_csi_mnt_17_18_a_publish_that_fails(plugin, node, csi_driver, staged, pod, code):
    csi_driver()
    mounter = plugin.new_mounter(staged(), pod)
    node.fail("NodePublishVolume", code)
    with pytest.raises(StorageDriverError):
        mounter.set_up(MounterArgs())
    directory = os.path.dirname(mounter.get_path())
    assert has(f"{directory}/vol_data.json") == (code in UNCERTAIN)
    assert has(directory) == (code in UNCERTAIN)


@pytest.mark.root
@pytest.mark.parametrize("args", [MounterArgs(is_remount=True), MounterArgs(reconstructed_volume=True)])
def test_csi_mnt_18_a_publish_that_fails_for_good_keeps_what_an_earlier_one_made(
    plugin, node, csi_driver, staged, pod, args
):
    csi_driver()
    mounter = plugin.new_mounter(staged(), pod)
    node.fail("NodePublishVolume", "INTERNAL")
    with pytest.raises(StorageDriverError):
        mounter.set_up(args)
    assert has(f"{os.path.dirname(mounter.get_path())}/vol_data.json")


@pytest.mark.root
@pytest.mark.parametrize("code", CODES)
def test_csi_dev_06_a_stage_that_fails(plugin, host, node, csi_driver, staged, make_pv, code):
    csi_driver()
    node.fail("NodeStageVolume", code)
    with pytest.raises(StorageDriverError):
        staged()
    path = plugin.new_device_mounter().get_device_mount_path(make_pv())
    assert has(f"{os.path.dirname(path)}/vol_data.json") == (code in UNCERTAIN)
    assert has(os.path.dirname(path)) == (code in UNCERTAIN)


@pytest.mark.root
@pytest.mark.parametrize("code", CODES)
def test_csi_tdn_03_an_unpublish_that_fails_touches_nothing(plugin, node, csi_driver, mounted, pod, code):
    csi_driver()
    volume = mounted()
    node.fail("NodeUnpublishVolume", code)
    unmounter = plugin.new_unmounter("pv-1", pod.metadata.uid)
    with pytest.raises(StorageDriverError):
        unmounter.tear_down()
    assert plugin._host.get_mounter().is_mount_point(volume.target)
    assert has(f"{os.path.dirname(volume.target)}/vol_data.json")
    unmounter.tear_down()
    assert not has(os.path.dirname(volume.target))


@pytest.mark.root
@pytest.mark.parametrize("code", CODES)
def test_csi_dev_13_an_unstage_that_fails_touches_nothing(plugin, node, csi_driver, staged, code):
    csi_driver()
    path = plugin.new_device_mounter().get_device_mount_path(staged())
    node.fail("NodeUnstageVolume", code)
    unmounter = plugin.new_device_unmounter()
    with pytest.raises(StorageDriverError):
        unmounter.unmount_device(path)
    assert has(f"{os.path.dirname(path)}/vol_data.json")
    unmounter.unmount_device(path)
    assert not has(os.path.dirname(path))


@pytest.mark.root
@pytest.mark.parametrize("code", CODES)
def test_csi_err_13_a_probe_that_fails_is_uncertain_or_transient_and_leaves_nothing(
    plugin, node, csi_driver, make_pv, pod, tree, code
):
    """It proves nothing of an earlier call whose outcome is not known, perhaps of a driver that has died meanwhile."""
    csi_driver()
    block = plugin.new_block_volume_mapper(make_pv(spec={"volume_mode": "Block"}), pod)
    before = tree()
    for step in (
        lambda: plugin.new_mounter(make_pv(), pod).set_up(MounterArgs()),
        lambda: plugin.new_device_mounter().mount_device(make_pv(), "", "/somewhere", None),
        block.set_up_device,
        block.map_pod_device,
    ):
        node.fail("NodeGetCapabilities", code)
        with pytest.raises(OperationError) as caught:
            step()
        assert is_uncertain_progress_error(caught.value) == (code in UNCERTAIN)
        assert not is_operation_finished_error(caught.value)
        assert next(link for link in error_chain(caught.value) if isinstance(link, StorageDriverError)).code == code
    assert tree() == before


@pytest.mark.root
def test_br_41_csi_mnt_16_a_record_that_cannot_be_written_leaves_nothing(plugin, host, csi_driver, staged, pod, node):
    csi_driver()
    mounter = plugin.new_mounter(staged(), pod)
    directory = os.path.dirname(mounter.get_path())
    os.makedirs(f"{directory}/.vol_data.json.new")  # in the way of the temporary file
    with pytest.raises(Exception, match=r"writing the record .*vol_data.json"):
        mounter.set_up(MounterArgs())
    assert "NodePublishVolume" not in node.names()
    os.rmdir(f"{directory}/.vol_data.json.new")
    mounter.set_up(MounterArgs())


@pytest.mark.root
def test_br_56_a_full_disk_leaves_nothing_and_is_got_over(plugin, host, csi_driver, staged, pod, node):
    csi_driver()
    mounter = plugin.new_mounter(staged(), pod)
    os.mkdir(host.get_pods_dir())
    host.get_mounter().mount("tmpfs", host.get_pods_dir(), "tmpfs", ["size=4096"])
    filler = f"{host.get_pods_dir()}/filler"
    with open(filler, "wb") as file:
        file.write(b"x" * 4096)
    with pytest.raises(Exception, match="No space left") as caught:
        mounter.set_up(MounterArgs())
    assert isinstance(caught.value, TransientOperationError)
    assert "NodePublishVolume" not in node.names()
    assert not has(os.path.dirname(mounter.get_path()))
    os.unlink(filler)
    mounter.set_up(MounterArgs())


@pytest.mark.root
def test_br_31_the_record_of_a_stage_that_timed_out_survives_a_full_disk(plugin, node, csi_driver, staged, make_pv):
    """One that the kubelet wrote lacks what ours has, so it would be written anew."""
    csi_driver()
    node.fail("NodeStageVolume", "DEADLINE_EXCEEDED")
    with pytest.raises(StorageDriverUncertainError):
        staged()
    path = plugin.new_device_mounter().get_device_mount_path(make_pv())
    directory = os.path.dirname(path)
    vol_data.write(directory, {vol_data.DRIVER: NAME, vol_data.HANDLE: "vol-1"})
    os.makedirs(f"{directory}/.vol_data.json.new")  # in the way of the temporary file
    with pytest.raises(TransientOperationError, match="writing the record"):
        staged()
    os.rmdir(f"{directory}/.vol_data.json.new")
    plugin.new_device_unmounter().unmount_device(path)
    assert node.last("NodeUnstageVolume").volume_id == "vol-1"
    assert not has(directory)


@pytest.mark.root
def test_csi_dev_05_26_a_foreign_file_survives_a_record_that_cannot_be_written(plugin, csi_driver, staged, make_pv):
    csi_driver()
    directory = os.path.dirname(plugin.new_device_mounter().get_device_mount_path(make_pv()))
    os.makedirs(f"{directory}/.vol_data.json.new")
    with pytest.raises(Exception, match="writing the record"):
        staged()
    assert os.listdir(directory) == [".vol_data.json.new"]


@pytest.mark.root
def test_csi_path_17_a_file_in_place_of_the_staging_directory_is_an_error(
    plugin, csi_driver, staged, make_pv, tmp_path
):
    csi_driver()
    path = plugin.new_device_mounter().get_device_mount_path(make_pv())
    os.makedirs(os.path.dirname(path))
    os.symlink(tmp_path, path)
    with pytest.raises(TransientOperationError, match="making the staging directory"):
        staged()


@pytest.mark.parametrize("what", ["mount", "stage", "unmount", "unstage", "expand", "metrics"])
@pytest.mark.root
def test_csi_err_12_an_unregistered_driver_is_transient_everywhere(
    plugin, drivers, csi_driver, mounted, make_pv, pod, what
):
    from volumehost import DeviceMounterArgs, NodeResizeOptions

    csi_driver()
    volume = mounted()
    drivers.clients.clear()
    path = plugin.new_device_mounter().get_device_mount_path(volume.spec)
    steps = {
        "mount": lambda: plugin.new_mounter(volume.spec, pod).set_up(MounterArgs()),
        "stage": lambda: plugin.new_device_mounter().mount_device(volume.spec, "", path, DeviceMounterArgs()),
        "unmount": lambda: plugin.new_unmounter("pv-1", pod.metadata.uid).tear_down(),
        "unstage": lambda: plugin.new_device_unmounter().unmount_device(path),
        "expand": lambda: plugin.node_expand(NodeResizeOptions(volume.spec, "", "/m", "", 2, 1)),
        "metrics": volume.mounter.get_metrics,
    }
    with pytest.raises(TransientOperationError):
        steps[what]()


@pytest.mark.root
def test_csi_fsg_09_a_group_that_cannot_be_applied_is_uncertain_and_keeps_the_mount(
    plugin, node, csi_driver, staged, make_pv, pod
):
    from volumehost.errors import OwnershipError

    csi_driver(fs_group_policy="File")
    mounter = plugin.new_mounter(staged(), pod)

    def fail(mounter, directory, args):
        raise OwnershipError("no")

    with pytest.raises(UncertainProgressError):
        mounter.set_up(MounterArgs(fs_group=7, volume_ownership_applicator=fail))
    assert plugin._host.get_mounter().is_mount_point(mounter.get_path())
    assert has(f"{os.path.dirname(mounter.get_path())}/vol_data.json")


@pytest.mark.root
def test_br_38_a_refresh_that_fails_keeps_the_mount_and_the_next_one_refreshes(plugin, node, csi_driver, mounted):
    csi_driver(requires_republish=True)
    volume = mounted()
    assert plugin.requires_remount(volume.spec)
    with open(f"{volume.target}/used", "w") as file:
        node.fail("NodePublishVolume", "INTERNAL")
        with pytest.raises(StorageDriverError):
            volume.mounter.set_up(MounterArgs(is_remount=True))
        file.write("still writable")
        file.flush()
        with open(f"{volume.target}/used") as again:
            assert again.read() == "still writable"
    volume.mounter.set_up(MounterArgs(is_remount=True))
    assert node.names().count("NodePublishVolume") == 3


@pytest.mark.root
def test_a_publish_that_fails_for_good_over_a_live_mount_removes_nothing(plugin, node, csi_driver, mounted, caplog):
    csi_driver()
    volume = mounted()
    node.fail("NodePublishVolume", "INTERNAL")
    with caplog.at_level(logging.WARNING), pytest.raises(StorageDriverError):
        volume.mounter.set_up(MounterArgs())
    assert plugin._host.get_mounter().is_mount_point(volume.target)
    assert has(f"{os.path.dirname(volume.target)}/vol_data.json")
    assert "still mounted" in caplog.text
