"""References of mounts, and paths within paths, by the table alone (MOUNT-33 to -39)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from volumehost.errors import MountError
from volumehost.mount import refs
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.mountinfo import MOUNT_TABLE, parse_mountinfo, read_consistently

TABLE = parse_mountinfo("""\
1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 0:20 / /data rw shared:1 - tmpfs tmpfs rw
3 1 0:21 / /other rw - tmpfs tmpfs rw
4 1 0:20 /sub /seen/sub rw - tmpfs tmpfs rw
5 1 8:1 /home/x /bound rw - ext4 /dev/sda1 rw
6 1 8:2 / /disk rw - ext4 /dev/sda2 rw
7 1 8:2 / /disk2 rw - ext4 /dev/sda2 rw
8 2 0:22 / /data rw - tmpfs tmpfs rw
9 1 0:22 / /top rw - tmpfs tmpfs rw
""")


@pytest.mark.parametrize(
    ("path", "base", "within"),
    [
        ("/a", "/a", True),
        ("/a/b", "/a", True),
        ("/a/..b", "/a", True),
        ("/ab", "/a", False),
        ("/", "/a", False),
        ("/a", "/", True),
        ("/a/../b", "/a", False),
    ],
)
def test_path_within_base_mount39(path: str, base: str, within: bool) -> None:
    assert refs.path_within_base(path, base) is within


def test_the_containing_mount_does_not_depend_on_the_order_of_the_table() -> None:
    after_pivot_root = parse_mountinfo("""\
22 27 0:21 / /proc rw - proc proc rw
27 1 8:1 / / rw - ext4 /dev/sda1 rw
""")
    assert refs.find_containing_mount("/proc/self", after_pivot_root).mount_id == 22
    assert refs.find_containing_mount("/srv", after_pivot_root).mount_id == 27


def test_a_mount_that_another_hides_contains_nothing() -> None:
    hidden = parse_mountinfo("""\
1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 0:20 / /a/b rw - tmpfs below rw
3 1 0:21 / /a rw - tmpfs above rw
4 3 0:22 / /a/c rw - tmpfs inside rw
""")
    assert refs.find_containing_mount("/a/b/x", hidden).mount_id == 3
    assert refs.find_containing_mount("/a/c/x", hidden).mount_id == 4


@pytest.mark.root
def test_it_is_the_mount_that_the_kernel_names() -> None:
    table = LinuxMounter().list_mounts()
    for path in ("/", "/proc/self/fdinfo", "/dev", "/sys", "/dev/shm"):
        resolved = str(Path(path).resolve())
        descriptor = os.open(resolved, os.O_PATH)
        try:
            info = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
        finally:
            os.close(descriptor)
        assert f"mnt_id:\t{refs.find_containing_mount(resolved, table).mount_id}\n" in info


def test_the_containing_mount_is_the_topmost_that_contains_the_path_hostutil07() -> None:
    assert refs.find_containing_mount("/data/x", TABLE).mount_id == 8
    assert refs.find_containing_mount("/database", TABLE).mount_id == 1
    assert refs.find_containing_mount("/", TABLE).mount_id == 1
    with pytest.raises(MountError, match='cannot find mount point for "/x"'):
        refs.find_containing_mount("/x", TABLE[1:])


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/home/x", ["/bound"]),
        ("/bound", []),
        ("/disk", ["/disk2"]),
        ("/disk2", ["/disk"]),
        ("/other", []),
        ("/data", ["/top"]),
        ("/top", ["/data"]),
        ("/home", []),
    ],
)
def test_references_by_root_and_device_mount35(path: str, found: list[str]) -> None:
    assert refs.search_mount_refs(path, TABLE) == found


def test_no_containing_mount_is_an_error_mount35() -> None:
    with pytest.raises(MountError, match="failed to get root path and major:minor for /x"):
        refs.search_mount_refs("/x", [])


def test_device_names_mount37() -> None:
    assert refs.device_name_from_mount("/disk", TABLE) == ("/dev/sda2", 2)
    assert refs.device_name_from_mount("/nowhere", TABLE) == ("", 0)


def test_volume_names_from_references_mount38() -> None:
    plugins = "/root/plugins/x"
    assert refs.device_name_from_refs("/m", ["/else", f"{plugins}/mounts/vol1"], plugins) == "mounts/vol1"
    assert refs.device_name_from_refs("/pods/a/vol1", ["/else"], plugins) == "vol1"
    with pytest.raises(MountError, match="directory /m is not mounted"):
        refs.device_name_from_refs("/m", [], plugins)


@pytest.mark.root
def test_a_deep_directory_bound_elsewhere_is_found_mount36(tmpfs: Path, area: Path, mounter: LinuxMounter) -> None:
    (tmpfs / "a" / "b").mkdir(parents=True)
    (area / "one").mkdir()
    (area / "two").mkdir()
    mounter.mount(str(tmpfs / "a"), str(area / "one"), "", ["bind"])
    mounter.mount(str(area / "one" / "b"), str(area / "two"), "", ["bind"])
    assert mounter.get_mount_refs(str(tmpfs / "a" / "b")) == [str(area / "two")]
    assert mounter.get_mount_refs(str(tmpfs / "a")) == [str(area / "one")]


@pytest.mark.root
def test_br69_references_through_a_link_are_those_of_the_resolved_path(
    tmpfs: Path, area: Path, mounter: LinuxMounter
) -> None:
    (tmpfs / "a").mkdir()
    (area / "bound").mkdir()
    (area / "link").symlink_to(tmpfs)
    mounter.mount(str(area / "link" / "a"), str(area / "bound"), "", ["bind"])
    assert mounter.get_mount_refs(str(area / "link" / "a")) == [str(area / "bound")]


@pytest.mark.root
def test_an_error_that_is_neither_missing_nor_dead_is_raised_mount33(area: Path, mounter: LinuxMounter) -> None:
    (area / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels"):
        mounter.get_mount_refs(str(area / "loop"))


@pytest.mark.root
def test_the_text_of_the_table_tells_the_same_as_the_parsed_table(area: Path, mounter: LinuxMounter) -> None:
    source, target = area / "with space", area / "target"
    source.mkdir()
    target.mkdir()
    mounter.mount(str(source), str(target), options=["bind"])
    text = read_consistently(MOUNT_TABLE)
    for path in (str(source), str(target), str(area), "/", "/proc"):
        assert refs.search_mount_refs_in_text(path, text) == refs.search_mount_refs(path, parse_mountinfo(text))
    assert refs.search_mount_refs_in_text(str(source), text) == [str(target)]
    with pytest.raises(MountError, match="failed to get root path and major:minor for /x"):
        refs.search_mount_refs_in_text("/x", "")
