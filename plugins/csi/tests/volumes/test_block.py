"""Raw block volumes (CSI-BLK)."""

from __future__ import annotations

import json
import os

import pytest

from volumehost.api.objects import CSITokenRequest, SecretReference, TokenRequest, TokenRequestStatus
from volumehost.errors import (
    StillMountedError,
    StorageDriverError,
    TransientOperationError,
    UnsafePathError,
    is_uncertain_progress_error,
)
from volumehost_csi.vol_data import BrokenRecordError

pytestmark = pytest.mark.root

NAME = "fake.csi.example.com"
UID = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def block(make_pv):
    return lambda name="pv-1", **source: make_pv(name, spec={"volume_mode": "Block"}, **source)


@pytest.fixture
def devices(host):
    return f"{host.root_dir}/plugins/kubernetes.io/csi/volumeDevices"


@pytest.fixture
def mapped(plugin, csi_driver, block, pod):
    csi_driver()
    mapper = plugin.new_block_volume_mapper(block(), pod)
    mapper.set_up_device()
    mapper.map_pod_device()
    return mapper


def test_csi_blk_20_nothing_is_left_after_a_cycle(plugin, node, mapped, devices, tree):
    assert node.names() == ["NodeGetCapabilities", "NodeStageVolume", "NodePublishVolume"]
    plugin.new_block_volume_unmapper("pv-1", UID).unmap_pod_device()
    plugin.new_block_volume_unmapper("pv-1", "").tear_down_device("", "")
    assert node.names()[3:] == ["NodeUnpublishVolume", "NodeUnstageVolume"]
    assert not [path for path in tree() if "pv-1" in path]


@pytest.mark.parametrize("stages", [True, False])
def test_csi_data_07_blk_01_improved_the_record_is_written_before_the_first_call(
    plugin, block, pod, devices, csi_driver, node, drivers, tree, stages
):
    node.capabilities = ["STAGE_UNSTAGE_VOLUME"] if stages else []
    csi_driver()
    mapper = plugin.new_block_volume_mapper(block(), pod)
    before = tree()
    client = drivers.clients.pop(NAME)
    for step in (mapper.set_up_device, mapper.map_pod_device):
        with pytest.raises(TransientOperationError):
            step()
    assert tree() == before  # a volume that never came about must not look like one that did
    drivers.clients[NAME] = client
    node.fail("NodeStageVolume" if stages else "NodePublishVolume", "DEADLINE_EXCEEDED")
    first_call = mapper.set_up_device if stages else mapper.map_pod_device
    with pytest.raises(StorageDriverError):
        first_call()
    with open(f"{devices}/pv-1/data/vol_data.json") as file:
        record = json.load(file)
    assert record.pop("attachmentID").startswith("csi-")
    assert record == {"specVolID": "pv-1", "volumeHandle": "vol-1", "driverName": NAME, "nodeName": "test-node"}


def test_csi_blk_02_improved_a_record_that_cannot_be_written_leaves_nothing(plugin, block, pod, devices, csi_driver):
    csi_driver()
    os.makedirs(devices)
    os.symlink("/proc/nowhere", f"{devices}/pv-1")
    with pytest.raises(TransientOperationError, match="writing the record"):
        plugin.new_block_volume_mapper(block(), pod).set_up_device()
    assert os.listdir(devices) == ["pv-1"]


def test_paths_of_the_mapper(mapped, host, devices, block):
    assert mapped.get_global_map_path(block()) == f"{devices}/pv-1/dev"
    assert mapped.get_pod_device_map_path() == (f"{host.root_dir}/pods/{UID}/volumeDevices/kubernetes.io~csi", "pv-1")
    assert mapped.get_staging_path() == f"{devices}/staging/pv-1"
    assert mapped.supports_metrics()


def test_csi_blk_06_15_improved_a_driver_without_staging_makes_and_sends_no_staging_path(
    plugin, node, csi_driver, block, pod, devices
):
    node.capabilities = []
    csi_driver()
    mapper = plugin.new_block_volume_mapper(block(), pod)
    assert mapper.set_up_device() == ""
    mapper.map_pod_device()
    assert node.last("NodePublishVolume").staging_target_path == ""
    assert not os.path.exists(f"{devices}/staging")
    plugin.new_block_volume_unmapper("pv-1", UID).unmap_pod_device()
    plugin.new_block_volume_unmapper("pv-1", "").tear_down_device("", "")
    assert "NodeUnstageVolume" not in node.names()


def test_csi_path_11_improved_reserved_names_are_refused(plugin, block, pod):
    for name in ("staging", "publish"):
        with pytest.raises(UnsafePathError):
            plugin.new_block_volume_mapper(block(name), pod)


@pytest.mark.parametrize("code", ["INTERNAL", "DEADLINE_EXCEEDED", "UNAVAILABLE", "NOT_FOUND"])
def test_csi_blk_07_edge_28_a_stage_that_fails(plugin, node, csi_driver, block, pod, devices, code):
    csi_driver()
    mapper = plugin.new_block_volume_mapper(block(), pod)
    node.fail("NodeStageVolume", code)
    with pytest.raises(StorageDriverError) as caught:
        mapper.set_up_device()
    uncertain = is_uncertain_progress_error(caught.value)
    assert os.path.exists(f"{devices}/staging/pv-1") == uncertain
    assert os.path.exists(f"{devices}/pv-1") == uncertain


def test_csi_blk_08_a_publish_that_fails_removes_nothing(plugin, node, csi_driver, block, pod, devices):
    csi_driver()
    mapper = plugin.new_block_volume_mapper(block(), pod)
    mapper.set_up_device()
    node.fail("NodePublishVolume", "INTERNAL")
    with pytest.raises(StorageDriverError):
        mapper.map_pod_device()
    assert os.path.exists(f"{devices}/pv-1/data/vol_data.json")
    assert os.path.exists(f"{devices}/staging/pv-1")


def test_csi_edge_28_transient_causes(plugin, drivers, csi_driver, block, pod, node):
    csi_driver()
    missing = SecretReference(name="none", namespace="default")
    mapper = plugin.new_block_volume_mapper(block(node_stage_secret_ref=missing), pod)
    with pytest.raises(TransientOperationError):
        mapper.set_up_device()
    mapper = plugin.new_block_volume_mapper(block(node_publish_secret_ref=missing), pod)
    mapper.set_up_device()
    with pytest.raises(TransientOperationError):
        mapper.map_pod_device()
    drivers.clients.clear()
    for step in (
        mapper.set_up_device,
        mapper.map_pod_device,
        plugin.new_block_volume_unmapper("pv-1", UID).unmap_pod_device,
        lambda: plugin.new_block_volume_unmapper("pv-1", "").tear_down_device("", ""),
    ):
        with pytest.raises(TransientOperationError):
            step()


def test_without_an_attachment_nothing_is_staged_or_published(plugin, block, pod, node):
    mapper = plugin.new_block_volume_mapper(block(), pod)  # no CSIDriver object: it must be attached
    for step in (mapper.set_up_device, mapper.map_pod_device):
        with pytest.raises(TransientOperationError, match="VolumeAttachment"):
            step()
    assert node.names() == []


def test_csi_blk_16_improved_tokens_and_lifecycle(plugin, host, csi_driver, block, pod, node, monkeypatch):
    def sign(namespace, name, request):
        return TokenRequest(status=TokenRequestStatus(token="T", expiration_timestamp="2031-05-06T07:08:09Z"))

    monkeypatch.setattr(host, "get_service_account_token_func", lambda: sign)
    csi_driver(token_requests=[CSITokenRequest(audience="")])
    mapper = plugin.new_block_volume_mapper(block(), pod)
    mapper.set_up_device()
    mapper.map_pod_device()
    key = "csi.storage.k8s.io/serviceAccount.tokens"
    assert key not in node.last("NodeStageVolume").volume_context
    assert node.last("NodePublishVolume").volume_context[key].startswith('{"":{"token":"T"')
    csi_driver("inline.example.com", volume_lifecycle_modes=["Ephemeral"])
    plugin._services.drivers.clients["inline.example.com"] = plugin._services.drivers.clients[NAME]
    with pytest.raises(TransientOperationError, match="volumeLifecycleModes"):
        plugin.new_block_volume_mapper(block("pv-2", driver="inline.example.com"), pod).map_pod_device()


def test_csi_edge_28_pod_info_with_an_empty_service_account(plugin, csi_driver, block, pod, node):
    csi_driver(pod_info_on_mount=True)
    pod.spec.service_account_name = ""
    mapper = plugin.new_block_volume_mapper(block(), pod)
    mapper.map_pod_device()
    assert node.last("NodePublishVolume").volume_context["csi.storage.k8s.io/serviceAccount.name"] == ""


def test_csi_blk_19_metrics_look_at_the_global_map(mapped, node, devices):
    mapped.get_metrics()
    request = node.last("NodeGetVolumeStats")
    assert (request.volume_id, request.volume_path) == ("vol-1", f"{devices}/pv-1/dev/{UID}")


def test_csi_blk_11_unpublish_is_called_although_nothing_is_there(plugin, node, csi_driver, block, pod):
    csi_driver()
    plugin.new_block_volume_mapper(block(), pod).set_up_device()
    plugin.new_block_volume_unmapper("pv-1", UID).unmap_pod_device()
    assert node.names()[-1] == "NodeUnpublishVolume"


def test_a_device_that_is_still_there_after_unpublish_is_an_error(plugin, host, node, mapped, devices):
    node.script("NodeUnpublishVolume", lambda request, context: node_answer())
    unmapper = plugin.new_block_volume_unmapper("pv-1", UID)
    with pytest.raises(StillMountedError):
        unmapper.unmap_pod_device()
    unmapper.unmap_pod_device()


def node_answer():
    from volumehost_csi_kit import csi

    return csi.NodeUnpublishVolumeResponse()


@pytest.mark.parametrize("code", ["INTERNAL", "DEADLINE_EXCEEDED", "NOT_FOUND"])
def test_csi_blk_13_an_unstage_that_fails_touches_nothing(plugin, node, mapped, devices, code):
    plugin.new_block_volume_unmapper("pv-1", UID).unmap_pod_device()
    node.fail("NodeUnstageVolume", code)
    unmapper = plugin.new_block_volume_unmapper("pv-1", "")
    with pytest.raises(StorageDriverError):
        unmapper.tear_down_device("", "")
    assert os.path.exists(f"{devices}/staging/pv-1")
    unmapper.tear_down_device("", "")


def test_csi_blk_13_improved_removal_stops_in_front_of_a_mount(plugin, host, mapped, devices):
    plugin.new_block_volume_unmapper("pv-1", UID).unmap_pod_device()
    inside = f"{devices}/staging/pv-1/inside"
    os.mkdir(inside)
    host.get_mounter().mount("tmpfs", inside, "tmpfs", [])
    open(f"{inside}/data", "w").close()
    with pytest.raises(StillMountedError, match="said that it unstaged"):
        plugin.new_block_volume_unmapper("pv-1", "").tear_down_device("", "")
    assert os.path.exists(f"{inside}/data")


def test_csi_blk_14_directories_in_use_by_another_pod_are_left(plugin, mapped, devices, caplog):
    plugin.new_block_volume_unmapper("pv-1", "").tear_down_device("", "")
    assert os.path.exists(f"{devices}/publish/pv-1/{UID}")
    assert "are left" in caplog.text


def test_a_teardown_of_what_is_gone_succeeds_without_a_call(plugin, node, csi_driver):
    plugin.new_block_volume_unmapper("never", UID).unmap_pod_device()
    plugin.new_block_volume_unmapper("never", "").tear_down_device("", "")
    assert node.calls == []


@pytest.mark.parametrize("content", [None, b"", b"{"])
def test_br_56_a_broken_record_and_the_api_tells(plugin, api, node, mapped, block, devices, content):
    path = f"{devices}/pv-1/data/vol_data.json"
    if content is None:
        os.unlink(path)
    else:
        with open(path, "wb") as file:
            file.write(content)
    with pytest.raises(BrokenRecordError, match="not known which volume"):
        plugin.new_block_volume_unmapper("pv-1", UID).unmap_pod_device()
    volume = block().persistent_volume
    volume.spec.capacity = {"storage": "1Gi"}
    api.create(volume)
    plugin.new_block_volume_unmapper("pv-1", UID).unmap_pod_device()
    plugin.new_block_volume_unmapper("pv-1", "").tear_down_device("", "")
    assert node.last("NodeUnstageVolume").volume_id == "vol-1"
