"""``resize_ephemeral_volume`` (PLUG-29): a live tmpfs changes its size and keeps its content and flags."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from volumehost import MounterArgs
from volumehost.errors import FailedPreconditionError, InfeasibleError
from volumehost.mount.mounter import LinuxMounter

pytestmark = pytest.mark.root

MIB = 1 << 20


@pytest.fixture
def volume(plugin, make_spec, pod, data_dir):
    """A mounted volume of 4 MiB with a file of 1 MiB in it."""
    plugin.new_mounter(make_spec("Memory", "4Mi"), pod).set_up(MounterArgs())
    Path(data_dir, "kept").write_bytes(b"x" * MIB)
    yield data_dir
    assert Path(data_dir, "kept").stat().st_size == MIB
    plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()


def size(path: str) -> int:
    filesystem = os.statvfs(path)
    return filesystem.f_blocks * filesystem.f_frsize


@pytest.mark.parametrize("new_size", [8 * MIB, 2 * MIB, MIB])
def test_grow_and_shrink(plugin, make_spec, pod, volume, mounts, new_size):
    plugin.resize_ephemeral_volume(make_spec("Memory", "4Mi"), pod, new_size)
    assert size(volume) == new_size
    assert len(mounts()) == 1
    assert "noswap" in mounts()[0].super_options


def test_a_file_that_did_not_fit_fits_then(plugin, make_spec, pod, volume):
    with pytest.raises(OSError, match="No space left"):
        Path(volume, "big").write_bytes(bytes(6 * MIB))
    plugin.resize_ephemeral_volume(make_spec("Memory", "4Mi"), pod, 8 * MIB)
    Path(volume, "big").write_bytes(bytes(6 * MIB))


def test_below_its_use_is_refused_and_nothing_changes(plugin, make_spec, pod, volume):
    with pytest.raises(InfeasibleError, match=r"holds 1048576 bytes, 65536 are less"):
        plugin.resize_ephemeral_volume(make_spec("Memory", "4Mi"), pod, 65536)
    assert size(volume) == 4 * MIB


@pytest.mark.parametrize("new_size", [0, -1])
def test_no_size_is_refused(plugin, make_spec, pod, volume, new_size):
    with pytest.raises(InfeasibleError, match="is not a size"):
        plugin.resize_ephemeral_volume(make_spec("Memory", "4Mi"), pod, new_size)


def test_none_leaves_pod_and_node_limits(plugin, make_spec, make_pod, volume, host):
    plugin.resize_ephemeral_volume(make_spec("Memory"), make_pod(limits={"memory": "16Mi"}), None)
    assert size(volume) == 16 * MIB
    plugin.resize_ephemeral_volume(make_spec("Memory"), make_pod(), None)
    assert size(volume) == host.get_node_allocatable()["memory"]


def test_the_pods_limit_still_counts(plugin, make_spec, make_pod, volume):
    plugin.resize_ephemeral_volume(make_spec("Memory"), make_pod(limits={"memory": "6Mi"}), 8 * MIB)
    assert size(volume) == 6 * MIB


def test_flags_of_the_mount_are_kept(plugin, make_spec, pod, volume, mounts):
    LinuxMounter().mount("tmpfs", volume, "tmpfs", ["remount", "nosuid", "nodev", "noexec", "noswap"])
    plugin.resize_ephemeral_volume(make_spec("Memory", "4Mi"), pod, 8 * MIB)
    assert {"nosuid", "nodev", "noexec"} <= set(mounts()[0].options)


def test_the_kernel_is_told_every_option_that_is_to_stay(make_spec, pod, volume, host):
    """Kernels differ in what they keep of themselves: some refuse a remount that leaves out ``noswap``."""
    from volumehost_emptydir.resize import _remount

    class Recording(LinuxMounter):
        def mount(self, source, target, fs_type="", options=(), **kwargs):
            self.options = list(options)
            super().mount(source, target, fs_type, options, **kwargs)

    mounter = Recording()
    _remount(volume, 8 * MIB, mounter, "resizing")
    assert mounter.options == ["remount", "relatime", f"size={8 * MIB}", "noswap"]


def test_a_volume_that_is_not_mounted(plugin, make_spec, pod, data_dir):
    with pytest.raises(FailedPreconditionError, match="not mounted"):
        plugin.resize_ephemeral_volume(make_spec("Memory", "4Mi"), pod, MIB)
    os.makedirs(data_dir)
    with pytest.raises(FailedPreconditionError, match="not mounted"):
        plugin.resize_ephemeral_volume(make_spec("Memory", "4Mi"), pod, MIB)


def test_on_disk_there_is_nothing_to_change_and_the_log_says_so(plugin, make_spec, pod, data_dir, mounts, caplog):
    plugin.new_mounter(make_spec("", "4Mi"), pod).set_up(MounterArgs())
    with caplog.at_level("INFO"):
        plugin.resize_ephemeral_volume(make_spec("", "4Mi"), pod, 8 * MIB)
    assert "no limit is enforced" in caplog.text
    assert mounts() == []
