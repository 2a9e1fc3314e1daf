"""The space that is held back for unmounting."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from volumehost.hosts.reserve import RESERVE_BYTES, RESERVE_FILES, hold_reserve, spend_reserve
from volumehost.mount.mounter import LinuxMounter


@pytest.fixture
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A filesystem of such a size, as the options of tmpfs tell it."""
    directory = tmp_path / "disk"
    directory.mkdir()
    mounter = LinuxMounter()
    mounter.mount("tmpfs", str(directory), "tmpfs", request.param.split(","))
    yield directory
    mounter.unmount(str(directory))


def fill(disk: Path) -> None:
    filesystem = os.statvfs(disk)
    with (disk / "filler").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, filesystem.f_bavail * filesystem.f_frsize)


@pytest.mark.root
@pytest.mark.parametrize("disk", ["size=16m"], indirect=True)
def test_it_takes_real_space_and_gives_it_back_only_when_the_disk_is_full(disk: Path) -> None:
    hold_reserve(str(disk))
    reserve = disk / "reserve"
    assert sum(file.stat().st_blocks * 512 for file in reserve.iterdir()) == RESERVE_BYTES
    inode = reserve.stat().st_ino
    spend_reserve(str(disk))
    hold_reserve(str(disk))
    assert reserve.stat().st_ino == inode
    fill(disk)
    spend_reserve(str(disk))
    assert os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize == RESERVE_BYTES
    hold_reserve(str(disk))
    assert not reserve.exists()
    (disk / "filler").unlink()
    hold_reserve(str(disk))
    assert reserve.exists()


@pytest.mark.root
@pytest.mark.parametrize("disk", ["size=4m"], indirect=True)
def test_on_a_small_disk_nothing_is_held_back(disk: Path) -> None:
    hold_reserve(str(disk))
    assert not (disk / "reserve").exists()
    fill(disk)
    spend_reserve(str(disk))


@pytest.mark.root
@pytest.mark.parametrize("disk", ["size=16m,nr_inodes=300"], indirect=True)
def test_files_are_held_back_too_for_a_disk_that_has_space_but_no_files_left(disk: Path) -> None:
    before = os.statvfs(disk).f_favail
    hold_reserve(str(disk))
    assert before - os.statvfs(disk).f_favail == RESERVE_FILES
    filler = disk / "files"
    filler.mkdir()
    for number in range(os.statvfs(disk).f_favail):
        (filler / str(number)).touch()
    with pytest.raises(OSError, match="No space left"):
        (filler / "more").touch()
    spend_reserve(str(disk))
    assert os.statvfs(disk).f_favail == RESERVE_FILES
    spend_reserve(str(disk))
    hold_reserve(str(disk))
    assert not (disk / "reserve").exists()


@pytest.mark.root
@pytest.mark.parametrize("disk", ["size=16m"], indirect=True)
def test_what_somebody_put_into_it_is_not_deleted(disk: Path) -> None:
    hold_reserve(str(disk))
    (disk / "reserve" / "mine").write_text("kept")
    fill(disk)
    spend_reserve(str(disk))
    assert (disk / "reserve" / "mine").read_text() == "kept"
    assert os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize == RESERVE_BYTES


def test_what_stands_in_its_place_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "reserve").symlink_to(tmp_path / "elsewhere")
    hold_reserve(str(tmp_path))
    assert not (tmp_path / "elsewhere").exists()
    assert (tmp_path / "reserve").is_symlink()


def test_a_root_directory_that_is_not_there_is_no_matter(tmp_path: Path) -> None:
    spend_reserve(str(tmp_path / "absent"))
    hold_reserve(str(tmp_path / "absent"))
    assert list(tmp_path.iterdir()) == []
