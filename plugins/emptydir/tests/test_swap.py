"""Whether tmpfs takes ``noswap``: by kernel version, user namespace, or a trial mount (EMPTYDIR-27)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from volumehost.errors import MountError
from volumehost.mount.mounter import LinuxMounter
from volumehost_emptydir.swap import SwapControl, in_user_namespace, kernel_version


class CountingMounter(LinuxMounter):
    """The real one; counts mounts, and can refuse an option as an old kernel does."""

    def __init__(self, refuse: str = "") -> None:
        super().__init__()
        self.mounts = 0
        self._refuse = refuse

    def mount(self, source, target, fs_type="", options=(), **kwargs):
        self.mounts += 1
        if self._refuse in options:
            raise MountError("Invalid argument", action=f"mount {source} at {target}")
        super().mount(source, target, fs_type, options, **kwargs)


@pytest.fixture
def first_namespace(tmp_path_factory) -> str:
    """The map of the machine's first user namespace, wherever the test itself runs."""
    path = tmp_path_factory.mktemp("proc") / "uid_map"
    path.write_text("         0          0 4294967295\n")
    return str(path)


@pytest.mark.parametrize("release", ["6.4", "6.4.0-rc1", "6.10.3-generic", "7.0.1"])
def test_new_kernels_need_no_trial(tmp_path, first_namespace, release):
    mounter = CountingMounter()
    assert SwapControl(mounter, str(tmp_path), release=release, uid_map=first_namespace).supported()
    assert mounter.mounts == 0


@pytest.mark.root
@pytest.mark.parametrize("release", ["6.3.9", "5.15.0-1-amd64", "nonsense"])
def test_old_kernels_are_tried_once(tmp_path, release):
    mounter = CountingMounter()
    control = SwapControl(mounter, str(tmp_path), release=release)
    assert control.supported()  # this kernel has it, whatever its name is
    assert control.supported()
    assert mounter.mounts == 1
    assert os.listdir(tmp_path) == []


def test_a_kernel_that_refuses_does_not_have_it(tmp_path, first_namespace):
    mounter = CountingMounter(refuse="noswap")
    control = SwapControl(mounter, str(tmp_path), release="5.10", uid_map=first_namespace)
    assert not control.supported()
    assert not control.supported()
    assert mounter.mounts == 1
    assert os.listdir(tmp_path) == []


def test_a_directory_that_cannot_be_made_means_no(tmp_path):
    (tmp_path / "file").touch()
    assert not SwapControl(CountingMounter(), str(tmp_path / "file"), release="5.10").supported()


def test_not_in_a_user_namespace(tmp_path):
    uid_map = tmp_path / "uid_map"
    uid_map.write_text("         0     100000      65536\n")
    assert not SwapControl(CountingMounter(), str(tmp_path), release="6.10", uid_map=str(uid_map)).supported()


@pytest.mark.root
def test_this_process_and_one_in_a_user_namespace():
    assert not in_user_namespace("/proc/self/uid_map")
    code = "from volumehost_emptydir.swap import in_user_namespace; print(in_user_namespace('/proc/self/uid_map'))"
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "True"


def test_without_proc_the_first_namespace_is_assumed(tmp_path):
    assert not in_user_namespace(str(tmp_path / "missing"))


@pytest.mark.parametrize(
    ("release", "version"),
    [("6.18.44-fc", (6, 18)), ("6.4-rc1", (6, 4)), ("10.0", (10, 0)), ("6", (0, 0)), ("", (0, 0)), ("v6.4", (0, 0))],
)
def test_kernel_versions(release, version):
    assert kernel_version(release) == version


@pytest.mark.root
def test_without_it_the_volume_has_only_its_size(directory, make_spec, pod, mounts):
    from volumehost import MounterArgs
    from volumehost_emptydir.mounter import EmptyDirMounter
    from volumehost_emptydir.place import VolumePlace

    place = VolumePlace("scratch", pod.metadata.uid, f"{directory}/data", f"{directory}/meta")
    mounter = LinuxMounter()
    EmptyDirMounter(
        place=place,
        source=make_spec("Memory").volume.empty_dir,
        pod=pod,
        size=1 << 20,
        mounter=mounter,
        swap_control=SwapControl(CountingMounter(refuse="noswap"), directory, release="5.10"),
    ).set_up(MounterArgs())
    options = mounts()[0].super_options
    mounter.unmount(place.data_dir)
    assert "noswap" not in options
    assert "size=1024k" in options


@pytest.mark.root
def test_a_trial_that_was_killed_in_the_middle_leaves_no_mount_for_ever(tmp_path):
    left = tmp_path / "tmpfs-noswap-test-0123"
    left.mkdir()
    other = tmp_path / "other"
    other.mkdir()
    LinuxMounter().mount("tmpfs", str(left), "tmpfs")
    assert SwapControl(LinuxMounter(), str(tmp_path), release="5.10").supported()
    assert os.listdir(tmp_path) == ["other"]
