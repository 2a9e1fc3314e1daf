"""emptyDir on disk: EMPTYDIR-02, -21 to -25, -40 to -46."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from volumehost import Attributes, MounterArgs
from volumehost.errors import MountError, SpecError, UnsafePathError

pytestmark = pytest.mark.root


def mode(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def test_set_up_makes_an_open_directory_below_closed_ones(plugin, make_spec, pod, data_dir, meta_dir, mounts):
    mounter = plugin.new_mounter(make_spec(), pod)
    mounter.set_up(MounterArgs())
    assert mounter.get_path() == data_dir
    assert mode(data_dir) == 0o777
    assert mode(os.path.dirname(data_dir)) == 0o750
    assert os.path.isfile(f"{meta_dir}/ready")
    assert mounts() == []


def test_the_umask_does_not_matter(plugin, make_spec, pod, data_dir):
    before = os.umask(0o077)
    try:
        plugin.new_mounter(make_spec(), pod).set_up(MounterArgs())
    finally:
        os.umask(before)
    assert mode(data_dir) == 0o777


def test_the_sticky_bit_can_be_asked_for(directory, make_spec, pod):
    from volumehost import VolumeConfig
    from volumehost.testing.plugin_host import PluginTestHost
    from volumehost_emptydir.plugin import EmptyDirPlugin

    plugin = EmptyDirPlugin()
    plugin.init(PluginTestHost(directory, volume_config=VolumeConfig(other_attributes={"sticky": "true"})))
    mounter = plugin.new_mounter(make_spec(), pod)
    mounter.set_up(MounterArgs())
    assert mode(mounter.get_path()) == 0o1777


def test_set_up_again_keeps_content_and_what_the_pod_did_to_the_mode(plugin, make_spec, pod, data_dir):
    plugin.new_mounter(make_spec(), pod).set_up(MounterArgs())
    os.chmod(data_dir, 0o700)
    with open(f"{data_dir}/kept", "w") as file:
        file.write("content")
    plugin.new_mounter(make_spec(), pod).set_up(MounterArgs())
    assert mode(data_dir) == 0o700
    assert Path(data_dir, "kept").read_text() == "content"


def test_a_set_up_that_was_killed_before_the_marker_is_finished(plugin, make_spec, pod, data_dir, meta_dir):
    os.makedirs(data_dir, 0o700)
    os.chmod(data_dir, 0o700)
    plugin.new_mounter(make_spec(), pod).set_up(MounterArgs(fs_group=4321))
    assert mode(data_dir) == 0o2777
    assert os.lstat(data_dir).st_gid == 4321
    assert os.path.exists(f"{meta_dir}/ready")


def test_br61_marker_without_directory_means_set_up_again(plugin, make_spec, pod, data_dir, meta_dir):
    mounter = plugin.new_mounter(make_spec(), pod)
    mounter.set_up(MounterArgs(fs_group=4321))
    os.rmdir(data_dir)
    assert os.path.exists(f"{meta_dir}/ready")
    mounter.set_up(MounterArgs(fs_group=4321))
    assert mode(data_dir) == 0o2777
    assert os.lstat(data_dir).st_gid == 4321


@pytest.mark.parametrize("thing", ["link", "dangling", "file"])
def test_something_else_in_the_place_of_the_directory_is_refused(plugin, make_spec, pod, data_dir, directory, thing):
    os.makedirs(os.path.dirname(data_dir))
    target = f"{directory}/elsewhere"
    if thing == "file":
        open(data_dir, "w").close()
    else:
        os.symlink(target, data_dir)
    if thing == "link":
        os.mkdir(target)
        open(f"{target}/precious", "w").close()
    with pytest.raises(UnsafePathError, match="not a directory"):
        plugin.new_mounter(make_spec(), pod).set_up(MounterArgs())
    with pytest.raises(UnsafePathError):
        plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()
    assert thing != "link" or os.listdir(target) == ["precious"]


def test_unknown_medium_is_refused_and_nothing_is_made(plugin, make_spec, pod, host):
    with pytest.raises(SpecError, match='unknown storage medium "Floppy"'):
        plugin.new_mounter(make_spec(medium="Floppy"), pod).set_up(MounterArgs())
    assert os.listdir(host.root_dir) == []


def test_a_directory_that_cannot_be_made_is_an_error_that_names_it(plugin, make_spec, pod, host, data_dir):
    os.makedirs(f"{host.root_dir}/pods/{pod.metadata.uid}")
    open(f"{host.root_dir}/pods/{pod.metadata.uid}/volumes", "w").close()
    with pytest.raises(MountError, match=r"volumes/kubernetes.io~empty-dir/scratch"):
        plugin.new_mounter(make_spec(), pod).set_up(MounterArgs())


def test_attributes(plugin, make_spec, pod):
    assert plugin.new_mounter(make_spec(), pod).get_attributes() == Attributes(
        read_only=False, managed=True, selinux_relabel=True
    )


def test_tear_down_removes_content_marker_and_directory(plugin, make_spec, pod, data_dir, meta_dir):
    plugin.new_mounter(make_spec(), pod).set_up(MounterArgs())
    os.makedirs(f"{data_dir}/a/b")
    os.symlink("/etc", f"{data_dir}/a/link")
    os.mkfifo(f"{data_dir}/a/fifo")
    unmounter = plugin.new_unmounter("scratch", pod.metadata.uid)
    unmounter.tear_down()
    assert not os.path.lexists(data_dir)
    assert not os.path.lexists(meta_dir)
    assert os.path.isdir("/etc")
    unmounter.tear_down()  # and again: success when it is gone (EMPTYDIR-41)


def test_set_up_at_another_directory_uses_the_own_marker(plugin, make_spec, pod, directory, meta_dir):
    """WRAP-04: the data of a wrapping plugin lies elsewhere, the marker under the inner name."""
    elsewhere = f"{directory}/root/pods/{pod.metadata.uid}/volumes/example.com~secret/s"
    plugin.new_mounter(make_spec(), pod).set_up_at(elsewhere, MounterArgs())
    assert mode(elsewhere) == 0o777
    assert os.path.exists(f"{meta_dir}/ready")
    plugin.new_unmounter("scratch", pod.metadata.uid).tear_down_at(elsewhere)
    assert not os.path.exists(elsewhere)
    assert not os.path.exists(meta_dir)
