"""Is something mounted exactly there (MOUNT-30 to -32), also where a lookup cannot be answered from the cache."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from volumehost.mount import syscalls
from volumehost.mount.mount_point import is_likely_not_mount_point, is_mount_point
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.places import Places, look_at_fd

pytestmark = pytest.mark.root


@pytest.fixture(params=["cached lookups", "network filesystems are known"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    """Places that look in the caller's thread, and places that look under a deadline."""
    if request.param == "cached lookups":
        return Places()
    known = tmp_path / "filesystems"
    known.write_text("nodev\tnfs4\n")
    return Places(known_filesystems=str(known))


def test_root_is_a_mount_point_mount32(places: Places) -> None:
    assert is_mount_point("/", places)
    assert not is_likely_not_mount_point("/", places)


def test_a_bind_mount_within_one_filesystem_is_seen(tmpfs: Path, mounter: LinuxMounter, places: Places) -> None:
    (tmpfs / "a").mkdir()
    (tmpfs / "b").mkdir()
    mounter.mount(str(tmpfs / "a"), str(tmpfs / "b"), "", ["bind"])
    assert is_mount_point(str(tmpfs / "b"), places)
    assert not is_mount_point(str(tmpfs / "a"), places)
    assert not is_likely_not_mount_point(str(tmpfs / "b"), places)
    assert is_likely_not_mount_point(str(tmpfs / "a"), places)


def test_a_bound_file_is_a_mount_point(tmpfs: Path, mounter: LinuxMounter, places: Places) -> None:
    for name in "ab":
        (tmpfs / name).touch()
    mounter.mount(str(tmpfs / "a"), str(tmpfs / "b"), "", ["bind"])
    assert is_mount_point(str(tmpfs / "b"), places)
    assert not is_mount_point(str(tmpfs / "a"), places)


def test_a_directory_bound_on_itself(tmpfs: Path, mounter: LinuxMounter, places: Places) -> None:
    (tmpfs / "a").mkdir()
    mounter.mount(str(tmpfs / "a"), str(tmpfs / "a"), "", ["bind"])
    assert is_mount_point(str(tmpfs / "a"), places)


def test_what_lies_below_a_mount_is_none(tmpfs: Path, places: Places) -> None:
    (tmpfs / "inside").mkdir()
    assert is_mount_point(str(tmpfs), places)
    assert not is_mount_point(str(tmpfs / "inside"), places)
    assert is_mount_point(str(tmpfs / "inside" / ".."), places)


def test_missing_paths_and_paths_through_files_are_errors(tmpfs: Path, places: Places) -> None:
    (tmpfs / "file").touch()
    with pytest.raises(FileNotFoundError):
        is_mount_point(str(tmpfs / "missing"), places)
    with pytest.raises(FileNotFoundError):
        is_mount_point(str(tmpfs / "missing" / "further"), places)
    with pytest.raises(NotADirectoryError):
        is_mount_point(str(tmpfs / "file" / "further"), places)
    (tmpfs / "dangling").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError):
        is_mount_point(str(tmpfs / "dangling"), places)


def test_a_socket_and_a_fifo_are_looked_at_without_touching_them(tmpfs: Path, places: Places) -> None:
    os.mkfifo(tmpfs / "fifo")
    assert not is_mount_point(str(tmpfs / "fifo"), places)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmpfs / "s"))
        assert not is_mount_point(str(tmpfs / "s"), places)


def test_the_type_and_device_come_without_a_walk_of_the_table(tmpfs: Path) -> None:
    place = Places().look(str(tmpfs))
    assert (place.mount_root, place.fs_type, place.local) == (True, "tmpfs", True)
    status = tmpfs.stat()
    assert place.stat.device == (os.major(status.st_dev), os.minor(status.st_dev))
    assert (place.stat.inode, place.stat.mode, place.stat.uid) == (status.st_ino, status.st_mode, status.st_uid)


def test_a_link_at_the_end_is_looked_at_itself_when_asked_for(tmpfs: Path, places: Places) -> None:
    (tmpfs / "link").symlink_to(tmpfs)
    assert places.look(str(tmpfs / "link")).mount_root is True
    assert places.look(str(tmpfs / "link"), follow=False).mount_root is False


def test_resolving_gives_the_path_without_links_br69(tmpfs: Path, places: Places) -> None:
    (tmpfs / "real").mkdir()
    (tmpfs / "link").symlink_to("real")
    (tmpfs / "absolute").symlink_to(tmpfs / "link")
    assert places.resolve(str(tmpfs / "absolute")) == str(tmpfs / "real")
    with pytest.raises(FileNotFoundError):
        places.resolve(str(tmpfs / "missing"))


@pytest.mark.parametrize("detour", ["{}/", "{}/.", "{}/../real", "/{}", "{}/.hidden/.."])
def test_resolving_a_path_that_is_not_clean_br69(tmpfs: Path, places: Places, detour: str) -> None:
    (tmpfs / "real" / ".hidden").mkdir(parents=True)
    assert places.resolve(detour.format(tmpfs / "real")) == str(tmpfs / "real")
    assert places.resolve(str(tmpfs / "real" / ".hidden")) == str(tmpfs / "real" / ".hidden")


def test_resolving_a_name_that_looks_deleted(tmpfs: Path, places: Places) -> None:
    (tmpfs / "x (deleted)").mkdir()
    assert places.resolve(str(tmpfs / "x (deleted)")) == str(tmpfs / "x (deleted)")


def test_existence_of_what_is_there_and_what_is_not(tmpfs: Path, places: Places) -> None:
    (tmpfs / "file").touch()
    (tmpfs / "dangling").symlink_to("nowhere")
    assert places.exists(str(tmpfs))
    assert places.exists(str(tmpfs / "file"))
    assert not places.exists(str(tmpfs / "missing"))
    assert not places.exists(str(tmpfs / "file" / "further"))
    assert not places.exists(str(tmpfs / "dangling"))


def test_a_kernel_that_tells_less_is_answered_from_the_table(tmpfs: Path, mounter: LinuxMounter) -> None:
    """Before 5.8 statx knows no mount roots."""
    (tmpfs / "a").mkdir()
    (tmpfs / "b").mkdir()
    mounter.mount(str(tmpfs / "a"), str(tmpfs / "b"), "", ["bind"])

    class OldKernel(Places):
        def look(self, path: str, *, follow: bool = True):
            place = super().look(path, follow=follow)
            return place._replace(mount_root=None, fs_type="")

    old = OldKernel()
    assert is_mount_point(str(tmpfs / "b"), old)
    assert not is_mount_point(str(tmpfs / "a"), old)
    assert is_mount_point(str(tmpfs), old)
    assert is_mount_point("/", old)
    # The quick test compares devices there, and misses a bind mount within one filesystem (MOUNT-30).
    assert not is_likely_not_mount_point(str(tmpfs), old)
    assert is_likely_not_mount_point(str(tmpfs / "b"), old)
    assert not is_likely_not_mount_point("/", old)


def test_no_descriptor_is_left_open(tmpfs: Path, places: Places) -> None:
    (tmpfs / "a").mkdir()
    places.look(str(tmpfs))
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(50):
        places.look(str(tmpfs))
        places.resolve(str(tmpfs / "a"))
        with pytest.raises(FileNotFoundError):
            places.look(str(tmpfs / "missing"))
    assert set(os.listdir("/proc/self/fd")) <= before


def test_mount_ids_are_unique_ones_where_the_kernel_has_them(tmpfs: Path) -> None:
    fd = os.open(tmpfs, os.O_PATH)
    try:
        place = look_at_fd(fd)
        classic = syscalls.statx(fd, "", syscalls.AT_EMPTY_PATH, syscalls.STATX_MNT_ID)
    finally:
        os.close(fd)
    assert classic.unique_id is False
    if place.stat.unique_id:
        assert place.stat.mount_id != classic.mount_id


def test_what_was_just_found_is_recalled_once_and_not_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who takes a mount away has asked about it before; who does so again may meet another one."""
    places, path, now = Places(), str(tmp_path), [100.0]
    monkeypatch.setattr("volumehost.mount.places.time.monotonic", lambda: now[0])
    found = places.check(path)
    assert places.look_or_recall(path) is found
    assert places.look_or_recall(path) is not found
    found = places.check(path)
    assert places.look_or_recall(f"{path}/..") is not found
    found = places.check(path)
    now[0] += 0.006
    assert places.look_or_recall(path) is not found
