"""Teardown beside live mounts, dead mounts and late writers: EMPTYDIR-40 to -46, BR-62, BR-64, BR-70."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from volumehost import MounterArgs
from volumehost.errors import RemovalError, StillMountedError
from volumehost.mount import syscalls
from volumehost.mount.mounter import LinuxMounter
from volumehost_emptydir.plugin import EmptyDirPlugin

pytestmark = pytest.mark.root


def tear_down(plugin, pod):
    plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()


@pytest.fixture
def precious(directory):
    path = f"{directory}/data"
    os.mkdir(path)
    Path(path, "precious").write_text("user data")
    yield path
    assert Path(path, "precious").read_text() == "user data"


@pytest.mark.parametrize("below", ["", "sub", "a/b/c"])
def test_br62_a_bind_mount_at_or_below_the_volume_is_not_emptied(plugin, make_spec, pod, data_dir, precious, below):
    plugin.new_mounter(make_spec(), pod).set_up(MounterArgs())
    target = os.path.join(data_dir, below).rstrip("/")
    os.makedirs(target, exist_ok=True)
    LinuxMounter().mount(precious, target, options=["bind"])
    with pytest.raises(StillMountedError) as caught:
        tear_down(plugin, pod)
    assert caught.value.subject == target
    assert target in str(caught.value)
    assert Path(target, "precious").exists()
    LinuxMounter().unmount(target)
    tear_down(plugin, pod)
    assert not os.path.exists(data_dir)


def test_br62_a_bind_of_a_single_file_is_kept_too(plugin, make_spec, pod, data_dir, precious):
    plugin.new_mounter(make_spec(), pod).set_up(MounterArgs())
    Path(data_dir, "file").touch()
    LinuxMounter().mount(f"{precious}/precious", f"{data_dir}/file", options=["bind"])
    with pytest.raises(StillMountedError):
        tear_down(plugin, pod)
    LinuxMounter().unmount(f"{data_dir}/file")
    tear_down(plugin, pod)


def test_br62_a_bind_inside_of_a_volume_in_memory(plugin, make_spec, pod, data_dir, precious, mounts):
    plugin.new_mounter(make_spec("Memory", "1Mi"), pod).set_up(MounterArgs())
    os.mkdir(f"{data_dir}/sub")
    LinuxMounter().mount(precious, f"{data_dir}/sub", options=["bind"])
    with pytest.raises(Exception, match="in use"):
        tear_down(plugin, pod)
    assert len(mounts()) == 2
    LinuxMounter().unmount(f"{data_dir}/sub")
    tear_down(plugin, pod)
    assert not os.path.exists(data_dir)


def test_br62_a_foreign_tmpfs_below_the_volume_keeps_its_content(plugin, make_spec, pod, data_dir):
    plugin.new_mounter(make_spec(), pod).set_up(MounterArgs())
    os.mkdir(f"{data_dir}/sub")
    LinuxMounter().mount("tmpfs", f"{data_dir}/sub", "tmpfs", ["size=1M"])
    Path(data_dir, "sub", "kept").touch()
    with pytest.raises(StillMountedError):
        tear_down(plugin, pod)
    assert Path(data_dir, "sub", "kept").exists()
    LinuxMounter().unmount(f"{data_dir}/sub")
    tear_down(plugin, pod)


def test_br64_a_dead_mount_is_taken_away_and_set_up_again(plugin, make_spec, pod, data_dir, mounts):
    plugin.new_mounter(make_spec("Memory", "1Mi"), pod).set_up(MounterArgs())
    LinuxMounter().unmount(data_dir)
    _mount_dead_fuse(data_dir)
    with pytest.raises(OSError, match="Transport endpoint"):
        os.listdir(data_dir)
    plugin.new_mounter(make_spec("Memory", "1Mi"), pod).set_up(MounterArgs())
    assert [mount.fs_type for mount in mounts()] == ["tmpfs"]
    LinuxMounter().unmount(data_dir)
    _mount_dead_fuse(data_dir)
    tear_down(plugin, pod)
    assert not os.path.lexists(data_dir)


def _mount_dead_fuse(path: str) -> None:
    fd = os.open("/dev/fuse", os.O_RDWR)
    try:
        syscalls.mount("fuse", path, "fuse", 0, f"fd={fd},rootmode=40000,user_id=0,group_id=0")
    finally:
        os.close(fd)


@pytest.mark.parametrize("restart", [False, True])
def test_br70_files_written_below_after_the_unmount_are_kept(plugin, host, make_spec, pod, data_dir, meta_dir, restart):
    plugin.new_mounter(make_spec("Memory", "1Mi"), pod).set_up(MounterArgs())
    LinuxMounter().unmount(data_dir)
    Path(data_dir, "late").write_text("written by a process that kept the path")
    if restart:
        plugin = EmptyDirPlugin()
        plugin.init(host)
    for _ in range(2):  # a retry must not take the volume for one on disk
        with pytest.raises(RemovalError, match="kept: late") as caught:
            tear_down(plugin, pod)
        assert caught.value.paths == (f"{data_dir}/late",)
        assert Path(data_dir, "late").exists()
    os.unlink(f"{data_dir}/late")
    tear_down(plugin, pod)
    assert not os.path.exists(data_dir)
    assert not os.path.exists(meta_dir)


def test_br70_also_for_a_volume_that_another_kubelet_mounted(plugin, pod, data_dir):
    """Its meta directory has the marker ``ready`` alone."""
    os.makedirs(data_dir)
    Path(data_dir, "below").touch()
    LinuxMounter().mount("tmpfs", data_dir, "tmpfs", ["size=1M"])
    for _ in range(2):
        with pytest.raises(RemovalError, match="kept: below"):
            tear_down(plugin, pod)
    os.unlink(f"{data_dir}/below")
    tear_down(plugin, pod)
    assert not os.path.exists(data_dir)


def test_a_volume_on_disk_after_a_foreign_tmpfs_hid_it_can_be_used_and_removed(plugin, make_spec, pod, data_dir):
    plugin.new_mounter(make_spec(), pod).set_up(MounterArgs())
    Path(data_dir, "content").touch()
    LinuxMounter().mount("tmpfs", data_dir, "tmpfs", ["size=1M"])
    with pytest.raises(RemovalError, match="kept: content"):
        tear_down(plugin, pod)
    plugin.new_mounter(make_spec(), pod).set_up(MounterArgs())
    assert Path(data_dir, "content").exists()
    tear_down(plugin, pod)
    assert not os.path.exists(data_dir)


def test_the_marker_goes_first(plugin, make_spec, pod, data_dir, meta_dir, precious):
    plugin.new_mounter(make_spec(), pod).set_up(MounterArgs())
    os.mkdir(f"{data_dir}/sub")
    LinuxMounter().mount(precious, f"{data_dir}/sub", options=["bind"])
    with pytest.raises(StillMountedError):
        tear_down(plugin, pod)
    assert not os.path.exists(meta_dir)
    LinuxMounter().unmount(f"{data_dir}/sub")
    tear_down(plugin, pod)


def test_a_marker_that_cannot_be_removed_stops_the_teardown(plugin, make_spec, pod, data_dir, meta_dir):
    """EMPTYDIR-40: ``failed to remove ready dir``."""
    plugin.new_mounter(make_spec(), pod).set_up(MounterArgs())
    Path(data_dir, "content").touch()
    LinuxMounter().mount("tmpfs", meta_dir, "tmpfs", ["size=1M"])
    with pytest.raises(RemovalError, match="failed to remove ready dir"):
        tear_down(plugin, pod)
    assert Path(data_dir, "content").exists()
    LinuxMounter().unmount(meta_dir)
    tear_down(plugin, pod)


def test_without_anything_it_succeeds(plugin, pod):
    tear_down(plugin, pod)
