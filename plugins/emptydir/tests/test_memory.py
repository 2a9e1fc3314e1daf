"""emptyDir in memory: a tmpfs with the size of EMPTYDIR-10 to -13, -26 to -28; BR-61, BR-66."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from volumehost import MounterArgs, Spec
from volumehost.api.objects import Volume
from volumehost.errors import (
    MountError,
    OwnershipError,
    StillMountedError,
    UncertainProgressError,
    UnmountError,
    UnsafePathError,
    VolumeHostError,
)
from volumehost.mount.mounter import LinuxMounter
from volumehost_emptydir.plugin import EmptyDirPlugin

pytestmark = pytest.mark.root

MIB = 1 << 20


def filesystem_size(path: str) -> int:
    filesystem = os.statvfs(path)
    return filesystem.f_blocks * filesystem.f_frsize


def tear_down(plugin, pod):
    plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()


def test_br66_the_tmpfs_has_the_size_and_content_survives_a_host_restart(
    plugin, host, make_spec, pod, data_dir, mounts
):
    spec = make_spec("Memory", "8Mi")
    plugin.new_mounter(spec, pod).set_up(MounterArgs())
    assert filesystem_size(data_dir) == 8 * MIB
    Path(data_dir, "kept").write_text("content")

    restarted = EmptyDirPlugin()
    restarted.init(host)
    restarted.new_mounter(spec, pod).set_up(MounterArgs())
    assert Path(data_dir, "kept").read_text() == "content"
    assert len(mounts()) == 1
    tear_down(restarted, pod)
    assert mounts() == []


def test_one_mount_of_type_tmpfs_without_swap(plugin, make_spec, pod, data_dir, mounts):
    plugin.new_mounter(make_spec("Memory", "8Mi"), pod).set_up(MounterArgs())
    (mount,) = mounts()
    assert (mount.path, mount.fs_type, mount.source) == (data_dir, "tmpfs", "tmpfs")
    assert "noswap" in mount.super_options
    tear_down(plugin, pod)
    assert not os.path.exists(data_dir)


def test_more_than_the_size_does_not_fit(plugin, make_spec, pod, data_dir):
    plugin.new_mounter(make_spec("Memory", "1Mi"), pod).set_up(MounterArgs())
    with pytest.raises(OSError, match="No space left"):
        Path(data_dir, "big").write_bytes(bytes(2 * MIB))
    tear_down(plugin, pod)


def test_the_pods_limit_bounds_the_size(plugin, make_spec, make_pod, data_dir):
    pod = make_pod(limits={"memory": "4Mi"})
    plugin.new_mounter(make_spec("Memory", "8Mi"), pod).set_up(MounterArgs())
    assert filesystem_size(data_dir) == 4 * MIB
    tear_down(plugin, pod)


def test_mode_of_the_root_is_the_kernels_until_a_group_changes_it(plugin, make_spec, pod, data_dir):
    """EMPTYDIR-28."""
    plugin.new_mounter(make_spec("Memory", "1Mi"), pod).set_up(MounterArgs())
    assert stat.S_IMODE(os.stat(data_dir).st_mode) == 0o1777
    tear_down(plugin, pod)
    plugin.new_mounter(make_spec("Memory", "1Mi"), pod).set_up(MounterArgs(fs_group=5000))
    assert stat.S_IMODE(os.stat(data_dir).st_mode) == 0o3777
    assert os.stat(data_dir).st_gid == 5000
    tear_down(plugin, pod)


def test_br61_unmounted_behind_the_hosts_back_with_the_marker_kept(plugin, make_spec, pod, data_dir, meta_dir, mounts):
    mounter = plugin.new_mounter(make_spec("Memory", "1Mi"), pod)
    mounter.set_up(MounterArgs(fs_group=5000))
    LinuxMounter().unmount(data_dir)
    assert os.path.exists(f"{meta_dir}/ready")
    mounter.set_up(MounterArgs(fs_group=5000))
    assert len(mounts()) == 1
    assert filesystem_size(data_dir) == MIB
    assert os.stat(data_dir).st_gid == 5000
    tear_down(plugin, pod)


def test_br61_a_stale_marker_does_not_outlive_a_set_up_that_fails_half_way(plugin, make_spec, pod, data_dir, meta_dir):
    """Mounted again, then killed or failed before the group was applied: the next run must not find a marker."""

    def refuse(*_arguments):
        raise OwnershipError("no")

    mounter = plugin.new_mounter(make_spec("Memory", "1Mi"), pod)
    mounter.set_up(MounterArgs(fs_group=5000))
    LinuxMounter().unmount(data_dir)
    with pytest.raises(UncertainProgressError):
        mounter.set_up(MounterArgs(fs_group=5000, volume_ownership_applicator=refuse))
    assert not os.path.exists(f"{meta_dir}/ready")
    mounter.set_up(MounterArgs(fs_group=5000))
    assert os.stat(data_dir).st_gid == 5000
    tear_down(plugin, pod)


def test_mounted_without_the_marker_gets_its_group_and_no_second_mount(
    plugin, make_spec, pod, data_dir, meta_dir, mounts
):
    mounter = plugin.new_mounter(make_spec("Memory", "1Mi"), pod)
    mounter.set_up(MounterArgs())
    os.unlink(f"{meta_dir}/ready")  # as after a kill between the mount and the marker
    mounter.set_up(MounterArgs(fs_group=5000))
    assert len(mounts()) == 1
    assert os.stat(data_dir).st_gid == 5000
    tear_down(plugin, pod)


def test_mounted_without_any_marker_it_is_marked_as_ready_again(plugin, make_spec, pod, data_dir, meta_dir, mounts):
    """As after a mount by another kubelet; the other marker is for whoever makes or takes away the mount."""
    mounter = plugin.new_mounter(make_spec("Memory", "1Mi"), pod)
    mounter.set_up(MounterArgs())
    assert sorted(os.listdir(meta_dir)) == ["on-mount", "ready"]
    for name in os.listdir(meta_dir):
        os.unlink(f"{meta_dir}/{name}")
    os.rmdir(meta_dir)
    mounter.set_up(MounterArgs())
    assert os.listdir(meta_dir) == ["ready"]
    assert len(mounts()) == 1
    tear_down(plugin, pod)
    assert not os.path.exists(data_dir)
    assert not os.path.exists(meta_dir)


def test_a_repeated_set_up_never_changes_the_size_but_says_so(plugin, make_spec, pod, data_dir, mounts, caplog):
    """EMPTYDIR-14."""
    caplog.set_level("INFO")
    for _ in range(2):
        plugin.new_mounter(make_spec("Memory", "1000001"), pod).set_up(MounterArgs())
    before = filesystem_size(data_dir)
    assert caplog.text == ""  # the kernel rounds up to pages
    plugin.new_mounter(make_spec("Memory", "2Mi"), pod).set_up(MounterArgs())
    assert filesystem_size(data_dir) == before
    assert f"keeps its size of {before} bytes; the pod asks for {2 * MIB}" in caplog.text
    tear_down(plugin, pod)


@pytest.mark.parametrize("medium", ["", "Memory"])
def test_another_mount_in_its_place_is_refused_not_covered(plugin, make_spec, pod, data_dir, directory, mounts, medium):
    os.makedirs(data_dir)
    os.mkdir(f"{directory}/data")
    Path(directory, "data", "precious").touch()
    LinuxMounter().mount(f"{directory}/data", data_dir, options=["bind"])
    with pytest.raises(MountError, match="something else is mounted there already"):
        plugin.new_mounter(make_spec(medium, "1Mi"), pod).set_up(MounterArgs())
    assert len(mounts()) == 1
    with pytest.raises(StillMountedError, match="what is mounted there is not this volume"):
        tear_down(plugin, pod)
    LinuxMounter().unmount(data_dir)
    assert os.listdir(f"{directory}/data") == ["precious"]


def test_a_mount_that_fails_leaves_nothing(directory, make_spec, pod):
    from volumehost.testing.plugin_host import PluginTestHost

    class Refusing(LinuxMounter):
        def mount(self, source, target, *args, **kwargs):
            raise MountError("no", action=f"mount {source} at {target}")

    host = PluginTestHost(directory, mounter=Refusing())
    plugin = EmptyDirPlugin()
    plugin.init(host)
    mounter = plugin.new_mounter(make_spec("Memory", "1Mi"), pod)
    with pytest.raises(MountError):
        mounter.set_up(MounterArgs())
    assert not os.path.exists(mounter.get_path())
    assert os.listdir(f"{host.root_dir}/pods/{pod.metadata.uid}/plugins/kubernetes.io~empty-dir") == []


def test_unknown_allocatable_fails_the_mounter_not_the_set_up(directory, make_spec, pod):
    """EMPTYDIR-10."""
    from volumehost.testing.plugin_host import PluginTestHost

    plugin = EmptyDirPlugin()
    plugin.init(PluginTestHost(directory, allocatable={}))
    with pytest.raises(VolumeHostError, match="allocatable memory is not known"):
        plugin.new_mounter(make_spec("Memory"), pod)
    plugin.new_mounter(make_spec(""), pod)


def test_a_busy_volume_is_reported_and_taken_away_later(plugin, make_spec, pod, data_dir, meta_dir):
    plugin.new_mounter(make_spec("Memory", "1Mi"), pod).set_up(MounterArgs())
    Path(data_dir, "kept").write_text("content")
    with open(f"{data_dir}/kept"):
        with pytest.raises(UnmountError, match="in use"):
            tear_down(plugin, pod)
        assert Path(data_dir, "kept").read_text() == "content"
    assert not os.path.exists(f"{meta_dir}/ready")  # a pod that comes back gets a full set-up (EMPTYDIR-40)
    tear_down(plugin, pod)
    assert not os.path.exists(data_dir)
    assert not os.path.exists(meta_dir)


def test_stacked_mounts_are_all_taken_away(plugin, make_spec, pod, data_dir, mounts):
    plugin.new_mounter(make_spec("Memory", "1Mi"), pod).set_up(MounterArgs())
    for _ in range(3):
        LinuxMounter().mount("tmpfs", data_dir, "tmpfs", ["size=1M"])
    assert len(mounts()) == 4
    tear_down(plugin, pod)
    assert mounts() == []
    assert not os.path.exists(data_dir)


def test_an_empty_directory_without_a_marker_becomes_the_volume(plugin, make_spec, pod, data_dir, meta_dir, mounts):
    """As after a kill between the directory and its mount."""
    os.makedirs(data_dir)
    plugin.new_mounter(make_spec("Memory", "1Mi"), pod).set_up(MounterArgs())
    assert [mount.path for mount in mounts()] == [data_dir]
    tear_down(plugin, pod)
    os.makedirs(data_dir)
    tear_down(plugin, pod)
    assert not os.path.exists(data_dir)
    assert not os.path.exists(meta_dir)


@pytest.mark.parametrize("medium", ["", "Memory"])
def test_a_link_in_its_place_is_never_followed(plugin, make_spec, pod, data_dir, directory, mounts, medium):
    os.makedirs(os.path.dirname(data_dir))
    os.mkdir(f"{directory}/elsewhere", 0o700)
    os.symlink(f"{directory}/elsewhere", data_dir)
    with pytest.raises(UnsafePathError):
        plugin.new_mounter(make_spec(medium, "1Mi"), pod).set_up(MounterArgs())
    with pytest.raises(UnsafePathError):
        tear_down(plugin, pod)
    assert mounts() == []
    assert stat.S_IMODE(os.stat(f"{directory}/elsewhere").st_mode) == 0o700


def test_volumes_of_a_pod_share_one_marker_file_and_outlive_each_other(plugin, make_spec, pod, host, mounts):
    """A file on a disk takes as long as everything else of the set-up: one for all volumes of a pod, by many names."""
    metas = [f"{host.get_pod_plugin_dir(pod.metadata.uid, plugin.get_plugin_name())}/{name}" for name in "abc"]
    for name in "abc":
        plugin.new_mounter(named(make_spec("Memory", "1Mi"), name), pod).set_up(MounterArgs())
    assert len({os.stat(f"{meta}/{marker}").st_ino for meta in metas for marker in ("on-mount", "ready")}) == 1
    for name in "abc":  # the first one goes, and the next to come does not find it
        plugin.new_unmounter(name, pod.metadata.uid).tear_down()
        assert [os.path.exists(meta) for meta in metas] == [each > name for each in "abc"]
    plugin.new_mounter(named(make_spec("Memory", "1Mi"), "a"), pod).set_up(MounterArgs())
    assert sorted(os.listdir(metas[0])) == ["on-mount", "ready"]
    plugin.new_unmounter("a", pod.metadata.uid).tear_down()
    assert not mounts()


def named(spec: Spec, name: str) -> Spec:
    return Spec.from_volume(Volume(name=name, empty_dir=spec.volume.empty_dir))
