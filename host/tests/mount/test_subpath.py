"""Subpaths: created safely, bound from descriptors, cleaned without descending (SUBPATH-10 to -35, BR-71)."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from volumehost.errors import MountError, UnsafePathError, VolumeHostError
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.subpath import LinuxSubpather
from volumehost.testing.fake_mounter import FakeMounter

from .conftest import leftovers, subpath

pytestmark = pytest.mark.root


# --- creating ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subdir", "made"),
    [
        ("new", "new"),
        ("new/a/b", "new/a/b"),
        ("dir/new", "dir/new"),
        ("inside/new", "dir/new"),
        ("absolute/new", "dir/new"),
        ("chain/new/x", "dir/new/x"),
        ("self/new", "new"),
        ("/new", "new"),
        ("a/../new", "new"),
        ("..a/new", "..a/new"),
        ("./new/.", "new"),
    ],
)
def test_directories_are_made_inside_subpath17(subdir: str, made: str, subpather: LinuxSubpather, volume: Path) -> None:
    old = os.umask(0o077)
    try:
        subpather.safe_make_dir(subdir, str(volume), stat.S_IFDIR | 0o2777)
    finally:
        os.umask(old)
    assert (volume / made).is_dir()
    assert stat.S_IMODE((volume / made).stat().st_mode) == 0o2777
    subpather.safe_make_dir(subdir, str(volume), 0o700)
    assert stat.S_IMODE((volume / made).stat().st_mode) == 0o2777, "what exists stays as it is"


@pytest.mark.parametrize("subdir", ["..", "../x", "a/../../x", "dir/../../x"])
def test_steps_out_are_refused_subpath10(subdir: str, subpather: LinuxSubpather, volume: Path) -> None:
    with pytest.raises(UnsafePathError):
        subpather.safe_make_dir(subdir, str(volume), 0o755)
    assert not (volume.parent / "x").exists()


@pytest.mark.parametrize("subdir", ["outside/new", "up/new", "chain out/new/x"])
def test_nothing_is_made_through_a_link_that_leads_out_subpath13(
    subdir: str, subpather: LinuxSubpather, volume: Path, area: Path
) -> None:
    with pytest.raises(UnsafePathError, match="outside of"):
        subpather.safe_make_dir(subdir, str(volume), 0o755)
    assert sorted(os.listdir(area / "outside")) == ["secret"]


def test_what_exists_outside_is_left_to_the_guard_that_binds_it_subpath11(
    subpather: LinuxSubpather, volume: Path
) -> None:
    subpather.safe_make_dir("outside", str(volume), 0o755)


@pytest.mark.parametrize(
    ("subdir", "error"),
    [
        ("dir/file", NotADirectoryError),
        ("dir/file/x", NotADirectoryError),
        ("dangling", FileExistsError),
        ("dangling/x", FileExistsError),
    ],
)
def test_files_and_dangling_links_in_the_way_subpath11_subpath15(
    subdir: str, error: type[Exception], subpather: LinuxSubpather, volume: Path
) -> None:
    with pytest.raises(error):
        subpather.safe_make_dir(subdir, str(volume), 0o755)
    assert not (volume / "nowhere").exists()


def test_a_fifo_in_the_way_does_not_block_subpath12(subpather: LinuxSubpather, volume: Path) -> None:
    os.mkfifo(volume / "fifo")
    with pytest.raises(NotADirectoryError):
        subpather.safe_make_dir("fifo/x", str(volume), 0o755)


def test_a_base_that_is_a_link_is_resolved_br69(subpather: LinuxSubpather, volume: Path, area: Path) -> None:
    (area / "root link").symlink_to(volume)
    subpather.safe_make_dir("new", str(area / "root link"), 0o755)
    assert (volume / "new").is_dir()


SWAPPER = """
import os, sys
volume, outside = sys.argv[1:3]
print("ready", flush=True)
while os.getppid() == int(sys.argv[3]):
    try:
        os.mkdir(volume + "/swap")
        os.rename(volume + "/swap", volume + "/away")
        os.symlink(outside, volume + "/swap")
        os.unlink(volume + "/swap")
        os.rename(volume + "/away", volume + "/swap")
    except OSError:
        pass
    for directory in ("/away", "/swap"):
        for name in ("/a/b", "/a", ""):
            try: os.rmdir(volume + directory + name)
            except OSError: pass
    try: os.unlink(volume + "/swap")
    except OSError: pass
"""


def test_br71_a_swapped_parent_never_makes_a_directory_outside_subpath16(
    subpather: LinuxSubpather, volume: Path, area: Path
) -> None:
    command = [sys.executable, "-c", SWAPPER, str(volume), str(area / "outside"), str(os.getpid())]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        try:
            assert swapper.stdout is not None
            swapper.stdout.readline()
            for _ in range(2000):
                try:
                    subpather.safe_make_dir("swap/a/b", str(volume), 0o755)
                except (OSError, VolumeHostError):
                    continue
        finally:
            swapper.kill()
    assert sorted(os.listdir(area / "outside")) == ["secret"]


# --- binding ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "shown"),
    [("dir", "dir"), ("dir/below", "dir/below"), ("dir/file", "dir/file"), ("", ""), ("inside/file", "dir/file"),
     ("absolute", "dir"), ("chain/below", "dir/below")],
)  # fmt: skip
def test_what_lies_inside_is_bound_subpath29(
    path: str, shown: str, subpather: LinuxSubpather, volume: Path, mounter: LinuxMounter
) -> None:
    target = subpather.prepare_safe_subpath(subpath(volume, path))
    assert target == str(volume.parents[2] / "volume-subpaths" / "vol" / "container" / "0")
    assert os.path.samefile(target, volume / shown)
    assert mounter.is_mount_point(target)
    subpather.clean_sub_paths(str(volume.parents[2]), "vol")
    assert not leftovers(volume)


def test_a_relative_path_is_one_inside_the_volume(subpather: LinuxSubpather, volume: Path) -> None:
    target = subpather.prepare_safe_subpath(subpath(volume, "dir", path="dir/file"))
    assert Path(target).read_text() == "content"


@pytest.mark.parametrize("path", ["outside", "outside/secret", "up", "up/secret", "chain out", "../../.."])
def test_br71_what_leads_out_is_refused_and_nothing_is_left_subpath29(
    path: str, subpather: LinuxSubpather, volume: Path, area: Path, mounter: LinuxMounter
) -> None:
    with pytest.raises(UnsafePathError, match="outside of"):
        subpather.prepare_safe_subpath(subpath(volume, path))
    assert not leftovers(volume)
    assert not [entry for entry in mounter.list_mounts() if entry.path.startswith(str(area))]


@pytest.mark.parametrize("path", ["missing", "dangling", "dir/file/x"])
def test_what_does_not_exist_is_an_error_subpath29(path: str, subpather: LinuxSubpather, volume: Path) -> None:
    with pytest.raises(OSError, match=r"No such file|Not a directory"):
        subpather.prepare_safe_subpath(subpath(volume, path))
    assert not leftovers(volume)


def test_sockets_fifos_and_devices_are_bound_subpath23_subpath29(subpather: LinuxSubpather, volume: Path) -> None:
    os.mkfifo(volume / "fifo")
    os.mknod(volume / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(volume / "socket"))
        server.listen()
        for index, name in enumerate(["fifo", "null", "socket"]):
            target = subpather.prepare_safe_subpath(subpath(volume, name, volume_mount_index=index))
            assert os.path.samefile(target, volume / name)
        with socket.socket(socket.AF_UNIX) as client:
            os.chdir(os.path.dirname(target))
            client.connect("2")
            os.chdir("/")


def test_modes_of_what_is_made_subpath23(subpather: LinuxSubpather, volume: Path) -> None:
    pod = volume.parents[2]
    subpather.prepare_safe_subpath(subpath(volume, "dir/file"))
    for directory in ("volume-subpaths", "volume-subpaths/vol", "volume-subpaths/vol/container"):
        assert stat.S_IMODE((pod / directory).stat().st_mode) == 0o750


def test_repeating_changes_nothing_subpath22(subpather: LinuxSubpather, volume: Path, mounter: LinuxMounter) -> None:
    target = subpather.prepare_safe_subpath(subpath(volume, "dir"))
    assert subpather.prepare_safe_subpath(subpath(volume, "inside")) == target
    assert [entry.path for entry in mounter.list_mounts()].count(target) == 1


def test_another_subpath_at_the_same_place_replaces_the_old_one_subpath22(
    subpather: LinuxSubpather, volume: Path, mounter: LinuxMounter
) -> None:
    target = subpather.prepare_safe_subpath(subpath(volume, "dir"))
    assert subpather.prepare_safe_subpath(subpath(volume, "dir/below")) == target
    assert os.path.samefile(target, volume / "dir" / "below")
    assert [entry.path for entry in mounter.list_mounts()].count(target) == 1


def test_several_mounts_in_the_place_all_go_subpath22(
    subpather: LinuxSubpather, volume: Path, mounter: LinuxMounter
) -> None:
    target = subpather.prepare_safe_subpath(subpath(volume, "dir"))
    for _ in range(3):
        mounter.mount("tmpfs", target, "tmpfs")
    assert subpather.prepare_safe_subpath(subpath(volume, "dir/below")) == target
    assert os.path.samefile(target, volume / "dir" / "below")
    assert [entry.path for entry in mounter.list_mounts()].count(target) == 1


def test_a_dead_subpath_is_replaced_br64(
    subpather: LinuxSubpather, volume: Path, mounter: LinuxMounter, fuse: Callable
) -> None:
    daemon = fuse(volume / "m")
    target = subpather.prepare_safe_subpath(subpath(volume, "m"))
    daemon.kill()
    assert subpather.prepare_safe_subpath(subpath(volume, "dir")) == target
    assert os.path.samefile(target, volume / "dir")


@pytest.mark.parametrize("name", ["..", "a/b", "", ".", "a\0b"])
def test_names_that_would_lead_elsewhere_are_refused(name: str, subpather: LinuxSubpather, volume: Path) -> None:
    with pytest.raises(UnsafePathError, match="not usable as a directory name"):
        subpather.prepare_safe_subpath(subpath(volume, "dir", container_name=name))
    with pytest.raises(UnsafePathError, match="not usable as a directory name"):
        subpather.prepare_safe_subpath(subpath(volume, "dir", volume_name=name))
    with pytest.raises(UnsafePathError, match="not usable as a directory name"):
        subpather.clean_sub_paths(str(volume.parents[2]), name)
    assert not leftovers(volume)


def test_a_failed_mount_is_cleaned_up_subpath25_subpath29(volume: Path) -> None:
    mounter = FakeMounter()
    pod = volume.parents[2]
    target = pod / "volume-subpaths" / "vol" / "container" / "0"
    mounter.fail_mount(str(target), MountError("no"))
    with pytest.raises(MountError, match="no"):
        LinuxSubpather(mounter).prepare_safe_subpath(subpath(volume, "dir"))
    assert not leftovers(volume)


def test_a_bind_of_something_else_is_noticed_and_undone_br71(volume: Path, area: Path, mounter: LinuxMounter) -> None:
    class Swapping(LinuxMounter):
        def mount(self, source, target, fs_type="", options=(), **arguments):
            super().mount(str(area / "outside"), target, fs_type, options, **arguments)

    with pytest.raises(MountError, match="another file than the subpath"):
        LinuxSubpather(Swapping()).prepare_safe_subpath(subpath(volume, "dir"))
    assert not leftovers(volume)


def test_the_mount_is_made_from_the_descriptor_subpath24(volume: Path) -> None:
    seen: list[tuple[str, object, object]] = []

    class Noting(LinuxMounter):
        def mount(self, source, target, fs_type="", options=(), **arguments):
            seen.append((source, arguments["mount_flags"], arguments["systemd"]))
            super().mount(source, target, fs_type, options, **arguments)

    LinuxSubpather(Noting()).prepare_safe_subpath(subpath(volume, "dir"))
    ((source, flags, systemd),) = seen
    assert source.startswith(f"/proc/{os.getpid()}/fd/")
    assert (flags, systemd) == (["--no-canonicalize"], False)


LINK_SWAPPER = """
import os, sys, time
volume, outside = sys.argv[1:3]
print("ready", flush=True)
while os.getppid() == int(sys.argv[3]):
    os.rename(volume + "/swap", volume + "/away")
    os.symlink(outside, volume + "/swap")
    os.unlink(volume + "/swap")
    os.rename(volume + "/away", volume + "/swap")
    time.sleep(0.0003)  # the honest state must win sometimes, or the test would show nothing
"""


def test_br71_a_component_swapped_in_a_tight_loop_is_never_bound_from_outside(
    subpather: LinuxSubpather, volume: Path, area: Path, mounter: LinuxMounter
) -> None:
    (volume / "swap" / "secret").mkdir(parents=True)
    command = [sys.executable, "-c", LINK_SWAPPER, str(volume), str(area / "outside"), str(os.getpid())]
    bound = refused = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        try:
            assert swapper.stdout is not None
            swapper.stdout.readline()
            for _ in range(20_000):
                if bound >= 100 and refused >= 100:
                    break
                try:
                    target = subpather.prepare_safe_subpath(subpath(volume, "swap/secret"))
                except (OSError, UnsafePathError):
                    refused += 1
                    continue
                bound += 1
                assert os.path.isdir(target), "the secret outside is a file"
                subpather.clean_sub_paths(str(volume.parents[2]), "vol")
        finally:
            swapper.kill()
    assert bound
    assert refused
    assert not leftovers(volume)


def test_br52_a_volume_that_does_not_answer_costs_the_deadline(
    volume: Path, mounter: LinuxMounter, fuse: Callable
) -> None:
    daemon = fuse(volume / "m")
    daemon.stop()
    try:
        subpather = LinuxSubpather(mounter, seconds=0.3)
        with pytest.raises(MountError, match="no answer within"):
            subpather.prepare_safe_subpath(subpath(volume, "m/x"))
        with pytest.raises(MountError, match="no answer within"):
            subpather.safe_make_dir("m/x", str(volume), 0o755)
    finally:
        daemon.kill()
