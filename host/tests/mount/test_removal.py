"""Removal that never crosses a mount and never follows a link (RMALL-01 to -05, BR-62)."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from volumehost.errors import RemovalError, StillMountedError
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.removal import (
    open_comparing_mounts,
    open_without_crossing,
    remove_all_at,
    remove_all_one_filesystem,
    remove_dirs_one_filesystem,
)

both = pytest.mark.parametrize("remove", [remove_all_one_filesystem, remove_dirs_one_filesystem])


def tree(path: Path) -> list[str]:
    return sorted(str(item.relative_to(path)) for item in path.rglob("*"))


@both
def test_what_is_missing_is_removed_already(remove: Callable[[str], None], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    remove(str(tmp_path / "missing"))
    remove(str(tmp_path / "missing" / "further"))
    remove(str(tmp_path / "file" / "further"))


@both
def test_directories_are_removed_with_those_in_them(remove: Callable[[str], None], tmp_path: Path) -> None:
    (tmp_path / "t" / "a" / "b").mkdir(parents=True)
    (tmp_path / "t" / "c").mkdir()
    remove(str(tmp_path / "t") + "/")
    assert not (tmp_path / "t").exists()


def test_files_links_sockets_and_fifos_are_removed(tmp_path: Path) -> None:
    top = tmp_path / "t"
    (top / "a").mkdir(parents=True)
    (top / "a" / "file").touch()
    (top / "link").symlink_to("nowhere")
    os.mkfifo(top / "fifo")
    os.mknod(top / "socket", stat.S_IFSOCK | 0o600)
    remove_all_one_filesystem(str(top))
    assert not top.exists()


def test_a_file_itself_is_removed_rmall01(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    remove_all_one_filesystem(str(tmp_path / "file"))
    assert not (tmp_path / "file").exists()


def test_files_are_never_removed_by_the_form_for_directories_rmall04(tmp_path: Path) -> None:
    top = tmp_path / "t"
    (top / "empty" / "deep").mkdir(parents=True)
    (top / "full").mkdir()
    (top / "full" / "data").write_text("precious")
    (top / "link").symlink_to("full")
    with pytest.raises(RemovalError, match=r"holds files, which were kept") as caught:
        remove_dirs_one_filesystem(str(top))
    assert sorted(caught.value.paths) == [str(top / "full" / "data"), str(top / "link")]
    assert tree(top) == ["full", "full/data", "link"]
    with pytest.raises(RemovalError, match="kept"):
        remove_dirs_one_filesystem(str(top / "full" / "data"))
    assert (top / "full" / "data").read_text() == "precious"


@both
def test_links_are_not_followed(remove: Callable[[str], None], tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "dir").mkdir(parents=True)
    (outside / "file").touch()
    top = tmp_path / "t"
    top.mkdir()
    (top / "link").symlink_to(outside)
    (top / "linked dir").symlink_to(outside / "dir")
    try:
        remove(str(top))
    except RemovalError:
        assert remove is remove_dirs_one_filesystem
    assert tree(outside) == ["dir", "file"]


def test_a_link_at_the_end_is_removed_itself(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "link").symlink_to("dir")
    remove_all_one_filesystem(str(tmp_path / "link"))
    assert tree(tmp_path) == ["dir"]


@pytest.mark.parametrize("path", ["/", ".", "..", "", "/tmp/.", "/tmp/.."])
def test_what_is_no_name_is_refused(path: str) -> None:
    with pytest.raises(RemovalError, match="does not name a directory entry"):
        remove_all_one_filesystem(path)


@pytest.mark.root
@both
def test_br62_a_bind_mount_of_the_same_filesystem_is_not_entered(
    remove: Callable[[str], None], area: Path, mounter: LinuxMounter
) -> None:
    data, pod = area / "data", area / "pods" / "uid"
    (data / "dir").mkdir(parents=True)
    (data / "file").write_text("precious")
    (pod / "volumes" / "x").mkdir(parents=True)
    (pod / "other" / "empty").mkdir(parents=True)
    mounter.mount(str(data), str(pod / "volumes" / "x"), "", ["bind"])
    with pytest.raises(StillMountedError, match="volumes/x: it is a mount point") as caught:
        remove(str(pod))
    assert caught.value.subject == str(pod / "volumes" / "x")
    assert (data / "file").read_text() == "precious"
    assert tree(data) == ["dir", "file"]
    assert mounter.is_mount_point(str(pod / "volumes" / "x"))
    assert not (pod / "other").exists(), "what can be removed is removed (RMALL-03)"


@pytest.mark.root
@both
def test_br62_an_empty_mounted_directory_is_not_removed_either(
    remove: Callable[[str], None], area: Path, mounter: LinuxMounter
) -> None:
    (area / "t" / "m").mkdir(parents=True)
    mounter.mount("tmpfs", str(area / "t" / "m"), "tmpfs")
    with pytest.raises(StillMountedError):
        remove(str(area / "t"))
    with pytest.raises(StillMountedError, match="it is a mount point"):
        remove(str(area / "t" / "m"))
    assert mounter.is_mount_point(str(area / "t" / "m"))


@pytest.mark.root
def test_br62_a_bound_file_stays(area: Path, mounter: LinuxMounter) -> None:
    (area / "data").write_text("precious")
    (area / "t").mkdir()
    (area / "t" / "place").touch()
    mounter.mount(str(area / "data"), str(area / "t" / "place"), "", ["bind"])
    with pytest.raises(StillMountedError):
        remove_all_one_filesystem(str(area / "t"))
    with pytest.raises(StillMountedError):
        remove_all_one_filesystem(str(area / "t" / "place"))
    assert (area / "data").read_text() == "precious"


@pytest.mark.root
def test_br62_many_mounts_are_counted(area: Path, mounter: LinuxMounter) -> None:
    for name in "abc":
        (area / "t" / name).mkdir(parents=True)
        mounter.mount("tmpfs", str(area / "t" / name), "tmpfs")
    with pytest.raises(StillMountedError, match="and 2 more"):
        remove_all_one_filesystem(str(area / "t"))


@pytest.mark.root
def test_br62_mounts_that_come_and_go_during_the_removal_never_lose_data(area: Path, mounter: LinuxMounter) -> None:
    data = area / "data"
    for number in range(50):
        (data / f"d{number}").mkdir(parents=True)
        (data / f"d{number}" / "file").touch()
    stop = threading.Event()

    def keep_mounting() -> None:
        while not stop.is_set():
            for place in (area / "t" / "m1", area / "t" / "m2"):
                try:
                    place.mkdir(parents=True, exist_ok=True)
                    mounter.mount(str(data), str(place), "", ["bind"])
                    mounter.unmount(str(place))
                except Exception:
                    continue

    other = threading.Thread(target=keep_mounting)
    other.start()
    try:
        for _ in range(300):
            try:
                remove_all_one_filesystem(str(area / "t"))
            except (StillMountedError, RemovalError):
                continue
    finally:
        stop.set()
        other.join(30)
    assert len(tree(data)) == 100


@pytest.mark.root
@pytest.mark.parametrize("opener", [open_without_crossing, open_comparing_mounts])
def test_directories_are_opened_without_crossing_on_old_kernels_too(
    opener: Callable[[int, str], int], area: Path, mounter: LinuxMounter
) -> None:
    for name in ("plain", "bound", "data"):
        (area / name).mkdir()
    (area / "file").touch()
    (area / "link").symlink_to("plain")
    mounter.mount(str(area / "data"), str(area / "bound"), "", ["bind"])
    base = os.open(area, os.O_PATH)
    try:
        fd = opener(base, "plain")
        assert os.listdir(fd) == []
        os.close(fd)
        for name, numbers in (
            ("bound", {errno.EXDEV}),
            ("file", {errno.ENOTDIR}),
            ("link", {errno.ELOOP, errno.ENOTDIR}),
            ("missing", {errno.ENOENT}),
        ):
            with pytest.raises(OSError, match=r"\[Errno") as caught:
                opener(base, name)
            assert caught.value.errno in numbers, name
    finally:
        os.close(base)


@both
def test_a_tree_deeper_than_any_stack_or_descriptor_table(remove: Callable[[str], None], tmp_path: Path) -> None:
    make_deep(tmp_path / "t", 1500)
    before = set(os.listdir("/proc/self/fd"))
    remove(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()
    assert set(os.listdir("/proc/self/fd")) <= before


def make_deep(top: Path, levels: int) -> None:
    top.mkdir()
    fd = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("a" * 20, dir_fd=fd)
        below = os.open("a" * 20, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)


def test_wide_branches_below_the_depth_at_which_parents_are_closed(tmp_path: Path) -> None:
    top = tmp_path / "t"
    path = top
    for level in range(100):
        path = path / "d"
        path.mkdir(parents=True)
        for name in ("z", "b"):
            (path / name).mkdir()
            (path / name / f"file{level}").touch()
    remove_all_one_filesystem(str(top))
    assert not top.exists()


@pytest.mark.root
def test_what_cannot_be_removed_is_named_and_the_rest_goes(area: Path, mounter: LinuxMounter) -> None:
    """A read-only filesystem refuses; the first error is told, the others counted (RMALL-03)."""
    (area / "ro").mkdir()
    mounter.mount("tmpfs", str(area / "ro"), "tmpfs")
    (area / "ro" / "a").mkdir()
    (area / "ro" / "a" / "x").touch()
    (area / "ro" / "a" / "y").touch()
    mounter.mount("", str(area / "ro"), "", ["remount", "ro"])
    with pytest.raises(RemovalError, match=r"Read-only file system.* more") as caught:
        remove_all_one_filesystem(str(area / "ro" / "a"))
    assert caught.value.paths[:2] in {
        (str(area / "ro" / "a" / "x"), str(area / "ro" / "a" / "y")),
        (str(area / "ro" / "a" / "y"), str(area / "ro" / "a" / "x")),
    }


def test_an_entry_of_an_open_directory_is_removed_wherever_that_is_now(tmp_path: Path) -> None:
    (tmp_path / "dir" / "t" / "below").mkdir(parents=True)
    (tmp_path / "dir" / "t" / "file").touch()
    (tmp_path / "dir" / "kept").touch()
    fd = os.open(tmp_path / "dir", os.O_PATH)
    try:
        (tmp_path / "dir").rename(tmp_path / "moved")
        remove_all_at(fd, "t", "dir/t")
        remove_all_at(fd, "t", "dir/t")
        for name in ("", ".", "..", "a/b"):
            with pytest.raises(RemovalError, match="does not name a directory entry"):
                remove_all_at(fd, name, "x")
    finally:
        os.close(fd)
    assert tree(tmp_path) == ["moved", "moved/kept"]


def test_names_that_no_encoding_explains(tmp_path: Path) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/t")
    os.mkdir(os.fsencode(tmp_path) + b"/t/\xff\xfe")
    open(os.fsencode(tmp_path) + b"/t/\xff\xfe/\n", "w").close()
    remove_all_one_filesystem(str(tmp_path / "t"))
    assert tree(tmp_path) == []


SHAPES = st.recursive(
    st.sampled_from(["file", "link"]),
    lambda below: st.dictionaries(st.sampled_from("abcd"), below, max_size=4),
    max_leaves=12,
)


def build(path: Path, shape: object, outside: Path) -> int:
    """Build it; the number of entries that are no directories."""
    if shape == "file":
        path.touch()
        return 1
    if shape == "link":
        path.symlink_to(outside)
        return 1
    path.mkdir()
    assert isinstance(shape, dict)
    return sum(build(path / name, below, outside) for name, below in shape.items())


def count_files(path: Path) -> int:
    if path.is_symlink() or not path.is_dir():
        return int(os.path.lexists(path))
    return sum(count_files(below) for below in path.iterdir())


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60, deadline=None
)
@given(shape=SHAPES)
def test_any_tree_is_removed_and_nothing_else(shape: object, tmp_path: Path) -> None:
    place = Path(tempfile.mkdtemp(dir=tmp_path))
    outside = place / "outside"
    outside.mkdir()
    (outside / "file").touch()
    files = build(place / "t", shape, outside)
    if files:
        with pytest.raises(RemovalError) as caught:
            remove_dirs_one_filesystem(str(place / "t"))
        assert len(caught.value.paths) == files == count_files(place / "t")
    remove_all_one_filesystem(str(place / "t"))
    assert not os.path.lexists(place / "t")
    assert tree(outside) == ["file"]
