"""Subpaths: created safely, bound from descriptors, cleaned without descending (SUBPATH-10 to -35, BR-71)."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from volumehost.errors import MountError, RemovalError, UnmountError, UnsafePathError, VolumeHostError
from volumehost.host_services import Subpath
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.subpath import LinuxSubpather, remove_empty_dirs
from volumehost.testing.fake_mounter import FakeMounter

pytestmark = pytest.mark.root


@pytest.fixture
def subpather(mounter: LinuxMounter) -> LinuxSubpather:
    return LinuxSubpather(mounter, seconds=20)


@pytest.fixture
def volume(area: Path) -> Path:
    place = area / "pod" / "volumes" / "x~y" / "vol"
    (place / "dir" / "below").mkdir(parents=True)
    (place / "dir" / "file").write_text("content")
    (place / "inside").symlink_to("dir")
    (place / "absolute").symlink_to(place / "dir")
    (place / "self").symlink_to(".")
    (place / "chain").symlink_to("inside")
    (place / "outside").symlink_to(area / "outside")
    (place / "up").symlink_to("../../../../outside")
    (place / "chain out").symlink_to("outside")
    (place / "dangling").symlink_to("nowhere")
    (area / "outside").mkdir()
    (area / "outside" / "secret").write_text("secret")
    return place


def subpath(volume: Path, inside: str, **changes: object) -> Subpath:
    pod = str(volume.parents[2])
    made = Subpath(0, str(volume / inside), "vol", str(volume), pod, "container")
    return replace(made, **changes)  # type: ignore[arg-type]


def leftovers(volume: Path) -> bool:
    return (volume.parents[2] / "volume-subpaths").exists()


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


# --- cleaning ---------------------------------------------------------------------------------------------


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
            assert hang.wait(20)
            super().mount(source, target, fs_type, options, **arguments)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(LinuxSubpather(Hanging()).prepare_safe_subpath, subpath(volume, "dir"))
        try:
            assert began.wait(20)
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
