"""Teardown: what is removed, what is kept, and how a volume is known when its record is not (CSI-TDN, BR-35, BR-56)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from volumehost import DeviceMounterArgs
from volumehost.errors import RemovalError, StillMountedError, StorageDriverError
from volumehost_csi import vol_data
from volumehost_csi.vol_data import BrokenRecordError
from volumehost_csi_kit import csi

pytestmark = pytest.mark.root

UID = "11111111-2222-3333-4444-555555555555"
NOTHING = csi.NodeUnpublishVolumeResponse()


@pytest.fixture
def volume(csi_driver, mounted):
    csi_driver()
    return mounted()


@pytest.fixture
def unmounter(plugin, volume):
    return plugin.new_unmounter("pv-1", UID)


def leave_directory(host, content=None):
    """A driver that unmounts and forgets the target."""

    def answer(request, context):
        host.get_mounter().unmount(request.target_path)
        if content is not None:
            with open(f"{request.target_path}/{content}", "w") as file:
                file.write("precious")
        return NOTHING

    return answer


def test_br_35_an_empty_leftover_of_the_driver_is_removed(host, node, volume, unmounter):
    node.script("NodeUnpublishVolume", leave_directory(host))
    unmounter.tear_down()
    assert not os.path.exists(os.path.dirname(volume.target))


def test_br_35_csi_tdn_06_data_in_the_target_is_kept(host, node, volume, unmounter):
    node.script("NodeUnpublishVolume", leave_directory(host, "data"))
    with pytest.raises(RemovalError, match="was kept"):
        unmounter.tear_down()
    assert Path(volume.target, "data").read_text() == "precious"
    assert os.path.exists(f"{os.path.dirname(volume.target)}/vol_data.json")
    os.unlink(f"{volume.target}/data")
    node.script("NodeUnpublishVolume", lambda request, context: NOTHING)
    unmounter.tear_down()


def test_csi_tdn_07_improved_a_target_that_is_still_mounted_is_an_error(host, node, volume, unmounter):
    node.script("NodeUnpublishVolume", lambda request, context: NOTHING)
    with pytest.raises(StillMountedError, match="still mounted"):
        unmounter.tear_down()
    assert host.get_mounter().is_mount_point(volume.target)
    assert os.path.exists(f"{os.path.dirname(volume.target)}/vol_data.json")
    unmounter.tear_down()


@pytest.mark.parametrize("content", ["", "precious"])
def test_br_35_a_file_left_as_target_goes_only_when_it_is_empty(host, node, volume, unmounter, content):
    def leave_file(request, context):
        host.get_mounter().unmount(request.target_path)
        os.rmdir(request.target_path)
        with open(request.target_path, "w") as file:
            file.write(content)
        return NOTHING

    node.script("NodeUnpublishVolume", leave_file)
    if content:
        with pytest.raises(RemovalError):
            unmounter.tear_down()
        assert Path(volume.target).read_text() == content
    else:
        unmounter.tear_down()
        assert not os.path.exists(os.path.dirname(volume.target))


def test_a_link_left_as_target_is_removed_and_not_followed(host, node, volume, unmounter, tmp_path):
    def leave_link(request, context):
        host.get_mounter().unmount(request.target_path)
        os.rmdir(request.target_path)
        os.symlink(tmp_path, request.target_path)
        return NOTHING

    node.script("NodeUnpublishVolume", leave_link)
    unmounter.tear_down()
    assert tmp_path.exists()
    assert not os.path.lexists(volume.target)


def test_other_files_beside_the_target_are_kept(volume, unmounter):
    beside = f"{os.path.dirname(volume.target)}/note"
    open(beside, "w").close()
    with pytest.raises(RemovalError):
        unmounter.tear_down()
    assert os.path.exists(beside)


def test_csi_tdn_02_unpublish_is_called_although_the_target_does_not_exist(node, plugin, csi_driver, staged, pod):
    from volumehost import MounterArgs

    csi_driver()
    mounter = plugin.new_mounter(staged(), pod)
    node.mounts = False
    node.fail("NodePublishVolume", "DEADLINE_EXCEEDED")
    with pytest.raises(StorageDriverError):
        mounter.set_up(MounterArgs())
    assert not os.path.exists(mounter.get_path())
    plugin.new_unmounter("pv-1", UID).tear_down()
    assert node.names()[-1] == "NodeUnpublishVolume"
    assert not os.path.exists(os.path.dirname(mounter.get_path()))


def test_a_teardown_of_what_is_gone_succeeds_without_a_call(plugin, node, csi_driver, volume, unmounter):
    unmounter.tear_down()
    calls = len(node.calls)
    unmounter.tear_down()
    plugin.new_unmounter("never", UID).tear_down()
    assert len(node.calls) == calls


def test_csi_tdn_10_neither_the_api_nor_the_csi_driver_object_is_needed(make_plugin, directory, volume):
    from volumehost.testing.plugin_host import PluginTestHost

    alone = make_plugin(PluginTestHost(directory))
    alone.new_unmounter("pv-1", UID).tear_down()
    path = alone.new_device_mounter().get_device_mount_path(volume.spec)
    alone.new_device_unmounter().unmount_device(path)
    assert not os.path.exists(os.path.dirname(path))


# --- records that are missing or broken -------------------------------------------------------------------------

BROKEN = [None, b"", b'{"driverName":"fake.csi', b"garbage", b'{"driverName":"fake.csi.example.com"}']


def spoil(directory, content):
    path = f"{directory}/vol_data.json"
    if content is None:
        os.unlink(path)
    else:
        with open(path, "wb") as file:
            file.write(content)


@pytest.mark.parametrize("content", BROKEN)
def test_br_56_the_mount_table_and_the_global_record_tell_the_volume(host, node, volume, unmounter, content):
    spoil(os.path.dirname(volume.target), content)
    unmounter.tear_down()
    assert node.last("NodeUnpublishVolume").volume_id == "vol-1"
    assert not os.path.exists(os.path.dirname(volume.target))


@pytest.mark.parametrize("content", BROKEN)
def test_br_56_the_api_tells_the_volume(host, api, node, volume, unmounter, content, plugin):
    volume.spec.persistent_volume.spec.capacity = {"storage": "1Gi"}
    api.create(volume.spec.persistent_volume)
    spoil(os.path.dirname(volume.target), content)
    path = plugin.new_device_mounter().get_device_mount_path(volume.spec)
    spoil(os.path.dirname(path), content)
    unmounter.tear_down()
    plugin.new_device_unmounter().unmount_device(path)
    assert node.last("NodeUnpublishVolume").volume_id == "vol-1"
    if content is None:
        # Nothing is mounted at the staging path itself, so without a record it was never staged (CSI-DEV-12).
        assert "NodeUnstageVolume" not in node.names()
    else:
        assert node.last("NodeUnstageVolume").volume_id == "vol-1"
    assert not os.path.exists(os.path.dirname(path))


@pytest.mark.parametrize("content", [b"", b"garbage"])
def test_br_56_the_record_of_a_pod_tells_the_staged_volume(node, volume, plugin, unmounter, content):
    path = plugin.new_device_mounter().get_device_mount_path(volume.spec)
    spoil(os.path.dirname(path), content)
    plugin.new_device_unmounter().unmount_device(path)
    assert node.last("NodeUnstageVolume").volume_id == "vol-1"
    unmounter.tear_down()


def test_br_56_an_inline_volume_is_told_by_its_pod(plugin, api, node, csi_driver, make_inline, pod):
    from volumehost import MounterArgs

    csi_driver()
    created = api.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "containers": [{"name": "main", "image": "x"}],
                "volumes": [{"name": "scratch", "csi": {"driver": "fake.csi.example.com"}}],
            },
        }
    )
    mounter = plugin.new_mounter(make_inline(), created)
    mounter.set_up(MounterArgs())
    handle = node.last("NodePublishVolume").volume_id
    spoil(os.path.dirname(mounter.get_path()), b"")
    plugin.new_unmounter("scratch", created.metadata.uid).tear_down()
    assert node.last("NodeUnpublishVolume").volume_id == handle


def test_csi_edge_27_a_volume_that_nothing_tells_is_an_error_that_says_what_to_do(plugin, node, volume, unmounter):
    path = plugin.new_device_mounter().get_device_mount_path(volume.spec)
    spoil(os.path.dirname(path), b"{")
    spoil(os.path.dirname(volume.target), b"{")
    for step, place in ((unmounter.tear_down, volume.target),
                        (lambda: plugin.new_device_unmounter().unmount_device(path), path)):  # fmt: skip
        with pytest.raises(BrokenRecordError, match="PersistentVolume again, or unmount") as caught:
            step()
        assert place in str(caught.value)
    assert not {"NodeUnpublishVolume", "NodeUnstageVolume"} & set(node.names())


# --- devices ----------------------------------------------------------------------------------------------------


def test_csi_dev_12_edge_27_without_a_record_nothing_is_called(plugin, node, csi_driver, make_pv):
    csi_driver()
    path = plugin.new_device_mounter().get_device_mount_path(make_pv())
    plugin.new_device_unmounter().unmount_device(path)
    os.makedirs(path)
    plugin.new_device_unmounter().unmount_device(path)
    assert node.calls == []
    assert not os.path.exists(os.path.dirname(path))


def test_csi_edge_27_a_record_of_the_kubelet_and_no_staging_no_call(plugin, node, csi_driver, make_pv):
    node.capabilities = []
    csi_driver()
    path = plugin.new_device_mounter().get_device_mount_path(make_pv())
    os.makedirs(path)
    vol_data.write(os.path.dirname(path), {"driverName": "fake.csi.example.com", "volumeHandle": "vol-1"})
    plugin.new_device_unmounter().unmount_device(path)
    assert node.names() == ["NodeGetCapabilities"]
    assert not os.path.exists(os.path.dirname(path))


def test_csi_dev_17_what_was_staged_is_unstaged_though_the_driver_lost_the_capability(
    plugin, client, node, csi_driver, staged
):
    csi_driver()
    path = plugin.new_device_mounter().get_device_mount_path(staged())
    node.capabilities, client._capabilities = [], None
    plugin.new_device_unmounter().unmount_device(path)
    assert node.names()[-1] == "NodeUnstageVolume"


@pytest.mark.parametrize("mounted", [False, True])
def test_csi_dev_17_a_driver_that_cannot_unstage_any_more(plugin, host, client, node, csi_driver, staged, mounted):
    csi_driver()
    path = plugin.new_device_mounter().get_device_mount_path(staged())
    if mounted:
        host.get_mounter().mount("tmpfs", path, "tmpfs", [])
    node.capabilities, client._capabilities = [], None
    node.fail("NodeUnstageVolume", "UNIMPLEMENTED")
    if mounted:
        with pytest.raises(StillMountedError):
            plugin.new_device_unmounter().unmount_device(path)
    else:
        plugin.new_device_unmounter().unmount_device(path)
        assert not os.path.exists(os.path.dirname(path))


def test_br_32_a_mount_over_the_staging_path_that_is_left_is_an_error(plugin, host, node, csi_driver, staged):
    csi_driver()
    path = plugin.new_device_mounter().get_device_mount_path(staged())
    host.get_mounter().mount("tmpfs", path, "tmpfs", [])
    with pytest.raises(StillMountedError):
        plugin.new_device_unmounter().unmount_device(path)
    assert os.path.exists(f"{os.path.dirname(path)}/vol_data.json")
    host.get_mounter().unmount(path)
    plugin.new_device_unmounter().unmount_device(path)


def test_csi_dev_03_a_mount_without_a_record_is_not_forgotten(plugin, host, api, csi_driver, staged, make_pv, node):
    csi_driver()
    spec = staged()
    path = plugin.new_device_mounter().get_device_mount_path(spec)
    host.get_mounter().mount("tmpfs", path, "tmpfs", [])
    os.unlink(f"{os.path.dirname(path)}/vol_data.json")
    with pytest.raises(BrokenRecordError):
        plugin.new_device_unmounter().unmount_device(path)
    spec.persistent_volume.spec.capacity = {"storage": "1Gi"}
    api.create(spec.persistent_volume)
    node.script("NodeUnstageVolume", lambda request, context: host.get_mounter().unmount(path))
    plugin.new_device_unmounter().unmount_device(path)
    assert not os.path.exists(os.path.dirname(path))


def test_br_31_a_stage_that_timed_out_is_unstaged_before_it_is_forgotten(plugin, node, csi_driver, staged, make_pv):
    csi_driver()
    node.fail("NodeStageVolume", "DEADLINE_EXCEEDED")
    with pytest.raises(StorageDriverError):
        staged()
    plugin.new_device_unmounter().unmount_device(plugin.new_device_mounter().get_device_mount_path(make_pv()))
    assert node.names()[-1] == "NodeUnstageVolume"


@pytest.mark.parametrize("handle", ["a/b", "..", "../../../etc", "a^b", "x" * 4096, "ü"])
def test_hostile_handles_make_the_whole_cycle(plugin, node, csi_driver, mounted, make_pv, handle):
    csi_driver()
    volume = mounted(make_pv(handle=handle))
    plugin.new_unmounter("pv-1", UID).tear_down()
    path = plugin.new_device_mounter().get_device_mount_path(volume.spec)
    plugin.new_device_unmounter().unmount_device(path)
    ids = {request.volume_id for name, request in node.calls if name != "NodeGetCapabilities"}
    assert ids == {handle}


def test_a_second_mount_of_the_device_writes_no_record_again(plugin, csi_driver, staged, make_pv):
    csi_driver()
    path = plugin.new_device_mounter().get_device_mount_path(staged())
    record = f"{os.path.dirname(path)}/vol_data.json"
    before = os.stat(record).st_ino
    plugin.new_device_mounter().mount_device(make_pv(), "", path, DeviceMounterArgs())
    assert os.stat(record).st_ino == before
