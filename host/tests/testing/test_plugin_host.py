"""The host for tests of one plugin is a real one: protocols, paths, mounts, and what it keeps for a test to see."""

from __future__ import annotations

import os

import pytest

from volumehost import KubeletVolumeHost, VolumeConfig, VolumeHost
from volumehost.api.objects import HostPathVolumeSource, ObjectMeta, Pod, PodSpec, Volume
from volumehost.mount.mounter import LinuxMounter
from volumehost.testing.plugin_host import PluginTestHost, RecordedEvent


@pytest.fixture
def host(tmp_path) -> PluginTestHost:
    return PluginTestHost(str(tmp_path))


def test_it_is_the_host_of_a_node(host, tmp_path):
    assert isinstance(host, VolumeHost)
    assert isinstance(host, KubeletVolumeHost)
    assert host.root_dir == os.path.realpath(tmp_path / "root")
    assert host.get_pod_volume_dir("uid", "example.com/nfs", "data") == (
        f"{host.root_dir}/pods/uid/volumes/example.com~nfs/data"
    )
    assert host.get_kube_client() is None


def test_links_in_its_directory_are_resolved(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert PluginTestHost(str(tmp_path / "link")).root_dir == os.path.realpath(tmp_path / "real" / "root")


def test_it_tells_what_the_test_handed_in(tmp_path):
    config = VolumeConfig(provisioning_enabled=True)
    mounter = LinuxMounter()
    host = PluginTestHost(str(tmp_path), volume_config=config, allocatable={"memory": 1}, mounter=mounter)
    assert host.get_volume_config("example.com/nfs") is config
    assert host.get_node_allocatable() == {"memory": 1}
    assert host.get_mounter() is mounter


def test_without_that_it_tells_what_the_machine_has(host):
    assert host.get_volume_config("example.com/nfs") == VolumeConfig()
    assert host.get_node_allocatable()["memory"] > 1 << 20
    assert host.get_host_util().path_exists(host.root_dir)


@pytest.mark.root
def test_its_mounts_are_real(host):
    path = f"{host.root_dir}/mnt"
    os.mkdir(path)
    host.get_mounter().mount("tmpfs", path, "tmpfs", ["size=1M"])
    try:
        assert host.get_mounter().is_mount_point(path)
    finally:
        host.get_mounter().unmount(path)


def test_events_are_kept(host):
    pod = Pod(metadata=ObjectMeta(name="web"))
    host.get_event_recorder().event(pod, "Warning", "Reason", "message")
    assert host.recorder.events == [RecordedEvent(pod, "Warning", "Reason", "message")]


def test_recycler_pods_are_kept_and_their_volumes_emptied(host, tmp_path):
    (tmp_path / "volume" / "sub").mkdir(parents=True)
    source = HostPathVolumeSource(path=str(tmp_path / "volume"))
    pod = Pod(spec=PodSpec(volumes=[Volume(name="vol", host_path=source)]))
    host.get_recycler().recycle("pv-1", pod, lambda event_type, message: None)
    assert host.recycler.pods == [("pv-1", pod)]
    assert list((tmp_path / "volume").iterdir()) == []
