"""The whole node cycle: which calls are made, what lies on disk in between, and that nothing is left."""

from __future__ import annotations

import json
import os
import tempfile

import pytest

from volumehost import DeviceMounterArgs, MounterArgs
from volumehost_csi.client import NodeClient
from volumehost_csi.names import attachment_name
from volumehost_csi_kit.endpoints import dial

pytestmark = pytest.mark.root

SHA = "d2e8363faaac7ae76def3b14091d8eb5755f6b92e9531627aeec833a8731cc49"
NAME = "fake.csi.example.com"
UID = "11111111-2222-3333-4444-555555555555"
GLOBAL = f"plugins/kubernetes.io/csi/{NAME}/{SHA}"
VOLUME = f"pods/{UID}/volumes/kubernetes.io~csi/pv-1"


def record(host, directory):
    with open(f"{host.root_dir}/{directory}/vol_data.json") as file:
        return json.load(file)


def test_a_cycle_makes_exactly_four_calls_when_the_capabilities_are_known(
    plugin, node, client, csi_driver, mounted, pod
):
    csi_driver()
    client.capabilities()
    node.calls.clear()
    volume = mounted()
    assert os.path.ismount(volume.target) or plugin._host.get_mounter().is_mount_point(volume.target)
    plugin.new_unmounter("pv-1", pod.metadata.uid).tear_down()
    plugin.new_device_unmounter().unmount_device(plugin.new_device_mounter().get_device_mount_path(volume.spec))
    assert node.names() == ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"]


def test_csi_cli_06_capabilities_are_asked_for_once_for_each_registration(mounted, csi_driver, node):
    csi_driver()
    mounted()
    assert node.names().count("NodeGetCapabilities") == 1


def test_nothing_is_left_after_a_cycle(plugin, host, csi_driver, mounted, pod, tree):
    csi_driver()
    volume = mounted()
    plugin.new_unmounter("pv-1", pod.metadata.uid).tear_down()
    plugin.new_device_unmounter().unmount_device(plugin.new_device_mounter().get_device_mount_path(volume.spec))
    assert not [path for path in tree() if "vol_data" in path or "mount" in path or SHA in path or "pv-1" in path]


def test_csi_path_01_to_04_and_the_records(host, csi_driver, mounted):
    csi_driver()
    volume = mounted()
    assert volume.target == f"{host.root_dir}/{VOLUME}/mount"
    assert os.path.isdir(f"{host.root_dir}/{GLOBAL}/globalmount")
    found = record(host, VOLUME)
    assert found.pop("attachmentID").startswith("csi-")
    assert found == {
        "specVolID": "pv-1",
        "volumeHandle": "vol-1",
        "driverName": NAME,
        "nodeName": "test-node",
        "volumeLifecycleMode": "Persistent",
    }
    assert record(host, GLOBAL) == {"volumeHandle": "vol-1", "driverName": NAME, "staged": "true"}


def test_csi_path_15_directories_are_0750(host, csi_driver, mounted):
    csi_driver()
    mounted()
    for path in (VOLUME, f"{GLOBAL}/globalmount"):
        assert os.stat(f"{host.root_dir}/{path}").st_mode & 0o777 == 0o750


def test_br_34_a_driver_without_staging_is_never_asked_to_stage(plugin, node, csi_driver, mounted, pod, tree):
    node.capabilities = []
    csi_driver()
    volume = mounted()
    assert node.last("NodePublishVolume").staging_target_path == ""
    path = plugin.new_device_mounter().get_device_mount_path(volume.spec)
    assert not os.path.exists(path)  # CSI-DEV-03 improved: no directory that nobody removes
    plugin.new_unmounter("pv-1", pod.metadata.uid).tear_down()
    plugin.new_device_unmounter().unmount_device(path)
    assert node.names() == ["NodeGetCapabilities", "NodePublishVolume", "NodeUnpublishVolume"]
    assert not [path for path in tree() if SHA in path]


@pytest.mark.parametrize("mode", ["Filesystem", "Block"])
def test_br_35_csi_mnt_09_what_is_there_when_the_driver_is_called(plugin, node, csi_driver, make_pv, pod, mode):
    """The staging directory and what the target is to be in are the host's, the target is the driver's."""
    csi_driver()
    seen = []

    def look(request, context):
        target, staging = getattr(request, "target_path", ""), request.staging_target_path
        seen.append((os.path.isdir(staging), os.path.isdir(os.path.dirname(target)), os.path.lexists(target)))

    for call in ("NodeStageVolume", "NodePublishVolume"):
        node.script(call, look)
    spec = make_pv(spec={"volume_mode": mode})
    if mode == "Block":
        mapper = plugin.new_block_volume_mapper(spec, pod)
        mapper.set_up_device()
        mapper.map_pod_device()
    else:
        device = plugin.new_device_mounter()
        device.mount_device(spec, "", device.get_device_mount_path(spec), DeviceMounterArgs())
        plugin.new_mounter(spec, pod).set_up(MounterArgs())
    assert seen == [(True, False, False), (True, True, False)]


def test_csi_eph_01_an_inline_volume_is_published_and_unpublished_only(plugin, node, csi_driver, make_inline, pod):
    csi_driver()
    mounter = plugin.new_mounter(make_inline(), pod)
    mounter.set_up(MounterArgs())
    plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()
    assert [name for name in node.names() if name != "NodeGetCapabilities"] == [
        "NodePublishVolume",
        "NodeUnpublishVolume",
    ]
    handle = "csi-a46bec53679aafe7e6bc42077f33be9e5c533643ed1224b3bfbf2dd627bbf53c"
    assert node.last("NodePublishVolume").volume_id == node.last("NodeUnpublishVolume").volume_id == handle
    assert not os.path.exists(os.path.dirname(mounter.get_path()))


def test_csi_data_05_the_record_of_an_inline_volume(plugin, host, csi_driver, make_inline, pod):
    csi_driver()
    plugin.new_mounter(make_inline(), pod).set_up(MounterArgs())
    handle = "csi-a46bec53679aafe7e6bc42077f33be9e5c533643ed1224b3bfbf2dd627bbf53c"
    assert record(host, f"pods/{UID}/volumes/kubernetes.io~csi/scratch") == {
        "specVolID": "scratch",
        "volumeHandle": handle,
        "driverName": NAME,
        "nodeName": "test-node",
        "volumeLifecycleMode": "Ephemeral",
        "attachmentID": attachment_name(handle, NAME, "test-node"),  # though none is ever made
    }
    plugin.new_unmounter("scratch", UID).tear_down()


def test_csi_dev_16_two_volumes_of_one_handle_share_the_staging_directory(plugin, staged, make_pv, csi_driver):
    csi_driver()
    staged(make_pv("pv-1"))
    staged(make_pv("pv-2"))
    mounter = plugin.new_device_mounter()
    assert mounter.get_device_mount_path(make_pv("pv-1")) == mounter.get_device_mount_path(make_pv("pv-2"))


def test_csi_mnt_28_two_pods_share_one_staged_volume(plugin, host, csi_driver, mounted, pod, node):
    csi_driver()
    volume = mounted()
    other = type(pod)(metadata=type(pod.metadata)(name="other", namespace="default", uid="other-uid"), spec=pod.spec)
    second = plugin.new_mounter(volume.spec, other)
    second.set_up(MounterArgs())
    assert second.get_path() != volume.target
    plugin.new_unmounter("pv-1", UID).tear_down()
    assert host.get_mounter().is_mount_point(second.get_path())
    assert plugin.get_device_mount_refs(f"{host.root_dir}/{GLOBAL}/globalmount") == [second.get_path()]
    plugin.new_unmounter("pv-1", "other-uid").tear_down()


@pytest.fixture
def other(node):
    """Another driver, with a client of its own."""
    with tempfile.TemporaryDirectory(prefix="csi") as short:
        fake = type(node)(short)
        with dial(fake.endpoint) as channel:
            yield fake, NodeClient("other.example.com", channel)
        fake.stop()


def test_csi_plug_21_improved_one_device_mounter_serves_every_driver(plugin, drivers, node, other, make_pv, csi_driver):
    csi_driver()
    csi_driver("other.example.com")
    fake, drivers.clients["other.example.com"] = other
    mounter = plugin.new_device_mounter()
    for spec in (make_pv(), make_pv("pv-2", driver="other.example.com", handle="vol-2")):
        mounter.mount_device(spec, "", mounter.get_device_mount_path(spec), DeviceMounterArgs())
    assert (node.last("NodeStageVolume").volume_id, fake.last("NodeStageVolume").volume_id) == ("vol-1", "vol-2")


def test_csi_plug_22_improved_a_mounter_finds_a_driver_that_has_registered_again(
    plugin, drivers, node, other, make_inline, csi_driver, pod
):
    csi_driver()
    mounter = plugin.new_mounter(make_inline(), pod)
    mounter.set_up(MounterArgs())
    fake, drivers.clients[NAME] = other
    mounter.set_up(MounterArgs(is_remount=True))
    assert fake.names().count("NodePublishVolume") == node.names().count("NodePublishVolume") == 1
    plugin.new_unmounter("scratch", UID).tear_down()


def test_csi_dev_09_25_the_device_path_is_ignored_and_an_empty_mount_path_refused(plugin, make_pv, csi_driver, node):
    from volumehost.errors import SpecError

    csi_driver()
    mounter = plugin.new_device_mounter()
    with pytest.raises(SpecError):
        mounter.mount_device(make_pv(), "anything", "", DeviceMounterArgs())
    assert node.calls == []
