"""Taking subPath mounts away again; many threads at once; automounts in a volume."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from volumehost.errors import MountError, RemovalError, UnmountError, UnsafePathError
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.subpath import LinuxSubpather, remove_empty_dirs

from .conftest import leftovers, subpath

pytestmark = pytest.mark.root


def test_nothing_to_clean_is_success_subpath30(subpather: LinuxSubpather, volume: Path) -> None:
    subpather.clean_sub_paths(str(volume.parents[2]), "vol")


def test_all_containers_and_mounts_of_one_volume_are_cleaned_and_no_other_subpath31_subpath33(
    subpather: LinuxSubpather, volume: Path, mounter: LinuxMounter
) -> None:
    pod = volume.parents[2]
    for container in ("a", "b"):
        for index in range(3):
            subpather.prepare_safe_subpath(subpath(volume, "dir", container_name=container, volume_mount_index=index))
    other = subpather.prepare_safe_subpath(subpath(volume, "dir", volume_name="other"))
    subpather.clean_sub_paths(str(pod), "vol")
    assert not (pod / "volume-subpaths" / "vol").exists()
    assert mounter.is_mount_point(other)
    assert (volume / "dir" / "file").read_text() == "content"
    subpather.clean_sub_paths(str(pod), "other")
    assert not leftovers(volume)


def test_a_whole_volume_bound_is_not_descended_into_subpath31(subpather: LinuxSubpather, volume: Path) -> None:
    subpather.prepare_safe_subpath(subpath(volume, ""))
    before = sorted(os.listdir(volume))
    subpather.clean_sub_paths(str(volume.parents[2]), "vol")
    assert sorted(os.listdir(volume)) == before


def test_a_dead_subpath_is_cleaned_subpath31_br64(subpather: LinuxSubpather, volume: Path, fuse: Callable) -> None:
    daemon = fuse(volume / "m")
    subpather.prepare_safe_subpath(subpath(volume, "m"))
    daemon.kill()
    subpather.clean_sub_paths(str(volume.parents[2]), "vol")
    assert not leftovers(volume)


def test_a_stray_file_makes_the_removal_fail_after_the_rest_is_clean_subpath32(
    subpather: LinuxSubpather, volume: Path, mounter: LinuxMounter
) -> None:
    pod = volume.parents[2]
    target = subpather.prepare_safe_subpath(subpath(volume, "dir"))
    (pod / "volume-subpaths" / "vol" / "stray").touch()
    with pytest.raises(RemovalError, match="Directory not empty"):
        subpather.clean_sub_paths(str(pod), "vol")
    assert not os.path.exists(target)
    assert (pod / "volume-subpaths" / "vol" / "stray").exists()


def test_a_busy_subpath_fails_and_the_others_are_cleaned(
    subpather: LinuxSubpather, volume: Path, mounter: LinuxMounter
) -> None:
    pod = volume.parents[2]
    targets = [subpather.prepare_safe_subpath(subpath(volume, "dir", container_name=name)) for name in ("a", "b", "c")]
    fd = os.open(targets[0], os.O_RDONLY)
    try:
        with pytest.raises(UnmountError, match=f"process {os.getpid()}"):
            subpather.clean_sub_paths(str(pod), "vol")
        assert [os.path.exists(target) for target in targets] == [True, False, False]
    finally:
        os.close(fd)
    subpather.clean_sub_paths(str(pod), "vol")
    assert not leftovers(volume)


def test_a_link_in_the_place_of_a_container_is_not_followed(
    subpather: LinuxSubpather, volume: Path, area: Path
) -> None:
    directory = volume.parents[2] / "volume-subpaths" / "vol"
    directory.mkdir(parents=True)
    (directory / "container").symlink_to(area / "outside")
    with pytest.raises(RemovalError, match="Directory not empty"):
        subpather.clean_sub_paths(str(volume.parents[2]), "vol")
    assert (area / "outside" / "secret").read_text() == "secret"


def test_empty_parents_are_removed_up_to_the_base_subpath34(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    remove_empty_dirs(str(tmp_path), str(tmp_path / "a" / "b" / "c" / "missing"))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "file").touch()
    remove_empty_dirs(str(tmp_path), str(tmp_path / "a" / "b"))
    assert sorted(os.listdir(tmp_path / "a")) == ["file"]
    with pytest.raises(RemovalError, match="Not a directory"):
        remove_empty_dirs(str(tmp_path), str(tmp_path / "a" / "file"))
    with pytest.raises(UnsafePathError):
        remove_empty_dirs(str(tmp_path / "a"), str(tmp_path / "ab"))
    remove_empty_dirs(str(tmp_path), str(tmp_path))
    assert tmp_path.exists()


# --- threads ----------------------------------------------------------------------------------------------


def test_threads_that_prepare_the_same_subpath_mount_it_once(volume: Path, mounter: LinuxMounter) -> None:
    begin = threading.Barrier(8)

    def prepare(_: int) -> str:
        begin.wait(timeout=20)
        return LinuxSubpather(mounter, seconds=20).prepare_safe_subpath(subpath(volume, "dir"))

    for _ in range(20):
        with ThreadPoolExecutor(8) as pool:
            (target,) = set(pool.map(prepare, range(8)))
        assert [entry.path for entry in mounter.list_mounts()].count(target) == 1
        LinuxSubpather(mounter).clean_sub_paths(str(volume.parents[2]), "vol")
    assert not leftovers(volume)


def test_one_that_hangs_costs_another_who_wants_the_same_its_deadline_only(volume: Path) -> None:
    hang = threading.Event()
    began = threading.Event()

    class Hanging(LinuxMounter):
        def mount(self, source, target, fs_type="", options=(), **arguments):
            began.set()
            assert hang.wait(30)
            super().mount(source, target, fs_type, options, **arguments)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(LinuxSubpather(Hanging()).prepare_safe_subpath, subpath(volume, "dir"))
        try:
            assert began.wait(30)
            with pytest.raises(MountError, match=r"another call has been at it for 0\.1 s"):
                LinuxSubpather(LinuxMounter(), seconds=0.1).prepare_safe_subpath(subpath(volume, "dir"))
            other = subpath(volume, "dir", container_name="other")
            assert os.path.samefile(LinuxSubpather(LinuxMounter()).prepare_safe_subpath(other), volume / "dir")
        finally:
            hang.set()
        assert os.path.samefile(first.result(20), volume / "dir")


# --- automounts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inside", ["auto", "auto/inside", "link"])
def test_an_automount_in_the_volume_is_mounted_first_subpath21(
    inside: str, subpather: LinuxSubpather, volume: Path
) -> None:
    (volume / "auto").mkdir()
    (volume / "link").symlink_to("auto")
    command = [sys.executable, str(Path(__file__).with_name("automounter.py")), str(volume / "auto")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
        try:
            assert daemon.stdout is not None
            if daemon.stdout.readline() != b"ready\n":
                pytest.skip("autofs does not work here")
            target = Path(subpather.prepare_safe_subpath(subpath(volume, inside)))
            assert (target / "inside" if target.is_dir() else target).read_text() == "mounted"
        finally:
            daemon.kill()
