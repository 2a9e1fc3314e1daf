from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from volumehost.cli.kernel_view import format_size, mounts_below, view_paths
from volumehost.mount.mounter import LinuxMounter


@pytest.fixture
def mounter() -> LinuxMounter:
    return LinuxMounter()


@pytest.fixture
def place(tmp_path: Path, mounter: LinuxMounter) -> Iterator[Path]:
    """A directory with a space in its name, where whatever a test mounts is taken away again."""
    base = tmp_path / "a place"
    base.mkdir()
    yield base
    for entry in reversed(mounts_below(str(base))):
        mounter.unmount(entry.path)


@pytest.mark.root
def test_a_tmpfs_is_seen_with_its_type_options_and_size(place: Path, mounter: LinuxMounter) -> None:
    target = place / "memory"
    target.mkdir()
    mounter.mount("tmpfs", str(target), "tmpfs", ["size=1m", "nosuid"])
    (target / "inside").mkdir()
    own, inside, outside = view_paths([str(target), str(target / "inside"), str(place)])
    assert (own.target, own.mounted_at, own.source, own.fs_type, own.size) == (
        str(target),
        str(target),
        "tmpfs",
        "tmpfs",
        1 << 20,
    )
    assert {"rw", "nosuid", "size=1024k"} <= set(own.options)
    assert own.own_mount
    assert not inside.own_mount
    assert inside.mounted_at == str(target)
    assert outside.mounted_at != str(target)
    assert own.row()[-1] == "1M"


@pytest.mark.root
def test_a_bind_mount_of_a_file_shows_where_it_comes_from_and_that_it_is_read_only(
    place: Path, mounter: LinuxMounter
) -> None:
    source, target = place / "source file", place / "target"
    source.write_text("x")
    target.write_text("")
    mounter.mount(str(source), str(target), "", ["bind", "ro"])
    (view,) = view_paths([str(target)])
    assert view.own_mount
    assert view.source.endswith("source file]")
    assert "ro" in view.options
    assert "rw" not in view.options


@pytest.mark.root
def test_the_upper_one_of_two_mounts_at_one_place_is_the_one_that_is_seen(place: Path, mounter: LinuxMounter) -> None:
    for size in ("1m", "2m"):
        mounter.mount("tmpfs", str(place), "tmpfs", [f"size={size}"])
    (view,) = view_paths([str(place)])
    assert view.size == 2 << 20
    assert len(mounts_below(str(place))) == 2


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        view_paths([str(tmp_path / "absent")])


def test_links_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (view,) = view_paths([str(tmp_path / "link")])
    assert view.target == str(tmp_path / "real")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1K"),
        (16 << 20, "16M"),
        (3 << 29, "1.5G"),
        (1 << 60, "1E"),
        (1 << 70, "1024E"),
    ],
)
def test_sizes_in_the_unit_that_reads_best(size: int, text: str) -> None:
    assert format_size(size) == text
