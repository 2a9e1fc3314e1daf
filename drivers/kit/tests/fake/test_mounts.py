"""The fake driver in the mode that mounts, and the null driver: real mounts, all of them gone at the end."""

from __future__ import annotations

import os
import stat
import subprocess

import pytest

from volumehost_csi_kit import csi
from volumehost_csi_kit.fake import FakeDriverProcess, mounts

pytestmark = pytest.mark.root
T = {"timeout": 30}


@pytest.fixture
def binding(fake):
    """The fake driver in that mode."""
    fake.configure(mounts="bind")
    return fake


def mounted(path):
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        return [line.split() for line in table if line.split()[4] == path]


def cycle(rpc, volume, inside):
    rpc.node.NodeStageVolume(volume.stage, **T)
    rpc.node.NodePublishVolume(volume.publish, **T)
    try:
        return inside()
    finally:
        rpc.node.NodeUnpublishVolume(volume.unpublish, **T)
        rpc.node.NodeUnstageVolume(volume.unstage, **T)


def test_what_is_written_lasts(binding, rpc, requests):
    volume = requests()

    def write():
        with open(f"{volume.target}/file", "w", encoding="utf-8") as file:
            file.write("kept")

    def read():
        with open(f"{volume.target}/file", encoding="utf-8") as file:
            return file.read()

    cycle(rpc, volume, write)
    assert os.listdir(volume.staging) == []
    assert cycle(rpc, volume, read) == "kept"
    assert not os.path.lexists(volume.target)


def test_repeated_calls_mount_once(binding, rpc, requests):
    volume = requests()
    for _ in range(2):
        rpc.node.NodeStageVolume(volume.stage, **T)
        rpc.node.NodePublishVolume(volume.publish, **T)
    assert len(mounted(volume.staging)) == len(mounted(volume.target)) == 1
    for _ in range(2):
        rpc.node.NodeUnpublishVolume(volume.unpublish, **T)
        rpc.node.NodeUnstageVolume(volume.unstage, **T)


def test_read_only(binding, rpc, requests):
    volume = requests()
    volume.publish.readonly = True

    def write():
        with pytest.raises(OSError, match="Read-only file system"):
            os.mkdir(f"{volume.target}/directory")

    cycle(rpc, volume, write)


def test_a_tmpfs_of_the_volumes_size(binding, rpc, requests, capability):
    binding.configure(stage="tmpfs")
    request = csi.CreateVolumeRequest(
        name="n", volume_capabilities=[capability()], capacity_range=csi.CapacityRange(required_bytes=1 << 20)
    )
    volume = requests(rpc.controller.CreateVolume(request, **T).volume.volume_id)
    found = cycle(rpc, volume, lambda: os.statvfs(volume.target))
    assert found.f_blocks * found.f_frsize == 1 << 20


def test_without_staging(binding, rpc, requests):
    binding.configure(node=[])
    volume = requests()
    volume.publish.staging_target_path = ""
    rpc.node.NodePublishVolume(volume.publish, **T)
    assert mounted(volume.target)
    rpc.node.NodeUnpublishVolume(volume.unpublish, **T)
    assert not os.path.lexists(volume.target)


def test_a_block_volume_is_the_file_behind_it(binding, rpc, requests, capability):
    binding.configure(default_volume_bytes=4096)
    volume = requests(wanted=capability(block=True))
    assert cycle(rpc, volume, lambda: os.stat(volume.target).st_size) == 4096


@pytest.mark.skipif(not os.path.exists("/dev/loop-control"), reason="this kernel has no loop devices")
def test_a_block_volume_on_a_loop_device_grows(binding, rpc, requests, capability):
    binding.configure(default_volume_bytes=1 << 20, block="loop")
    volume = requests(wanted=capability(block=True))

    def size():
        with open(volume.target, "rb") as device:
            return device.seek(0, os.SEEK_END)

    def grow():
        assert stat.S_ISBLK(os.stat(volume.target).st_mode)
        assert size() == 1 << 20
        request = csi.NodeExpandVolumeRequest(
            volume_id="v", volume_path=volume.target, capacity_range=csi.CapacityRange(required_bytes=2 << 20)
        )
        rpc.node.NodeExpandVolume(request, **T)
        return size()

    assert cycle(rpc, volume, grow) == 2 << 20
    command = ["losetup", "--list", "--noheadings", "-O", "BACK-FILE"]
    used = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert binding.config.data_dir not in used.stdout


def test_without_a_place_it_says_so(binding, rpc, requests, failure):
    binding.configure(data_dir="")
    assert failure(rpc.node.NodeStageVolume, requests().stage) == (
        "INTERNAL",
        "the fake driver needs a data_dir to mount from",
    )


def test_the_kernels_answer_names_the_path(directory):
    with pytest.raises(FileNotFoundError) as caught:
        mounts.mount(directory, f"{directory}/nowhere")
    assert caught.value.filename == f"{directory}/nowhere"
    assert mounts.unmount(directory) is False
    assert mounts.unmount(f"{directory}/nowhere") is False


def test_the_null_driver(directory, connect, requests):
    """Stages nothing, binds the staging directory, records nothing; in a process of its own."""
    with FakeDriverProcess(f"{directory}/csi.sock", f"{directory}/files", null=True, name="n.example.com") as driver:
        rpc, volume = connect(driver.endpoint), requests()
        assert rpc.identity.GetPluginInfo(csi.GetPluginInfoRequest(), **T).name == "n.example.com"
        os.mkdir(f"{volume.staging}/content")
        assert cycle(rpc, volume, lambda: os.listdir(volume.target)) == ["content"]
        assert not os.path.lexists(volume.target)
        assert driver.stop() == 0
    assert driver.calls() == []
