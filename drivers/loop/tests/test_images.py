"""Images: blank, copied, grown, formatted under another name, and what is left of them after a crash."""

from __future__ import annotations

import os

import pytest

from volumehost_loop_driver.copying import copy_contents, data_extents
from volumehost_loop_driver.images import Images

MiB = 1 << 20


@pytest.fixture
def images(tmp_path) -> Images:
    return Images(str(tmp_path))


def write(path: str, position: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(position)
        file.write(data)
        os.fsync(file.fileno())


def format_badly(path: str) -> None:
    write(path, 0, b"half a filesystem")
    raise RuntimeError("mkfs failed")


def test_a_thin_image_takes_no_space_and_a_thick_one_takes_all_of_it(images) -> None:
    images.create("thin", 8 * MiB, thick=False)
    images.create("thick", 8 * MiB, thick=True)
    thin, thick = images.status("thin"), images.status("thick")
    assert thin is not None
    assert thick is not None
    assert (thin.size, thin.allocated) == (8 * MiB, 0)
    assert thick.size == 8 * MiB
    assert thick.allocated >= 8 * MiB
    assert images.is_blank("thin")
    assert images.is_blank("thick"), "allocated blocks read as zeros"


def test_an_image_that_is_there_is_never_made_again(images) -> None:
    images.create("one", MiB, thick=False)
    write(images.path("one"), 5000, b"data")
    with pytest.raises(FileExistsError):
        images.create("one", MiB, thick=False)
    assert not images.is_blank("one")


def test_one_byte_at_the_end_is_data_and_written_zeros_are_not(images) -> None:
    images.create("one", 3 * MiB, thick=False)
    write(images.path("one"), 0, bytes(2 * MiB))
    assert images.is_blank("one")
    write(images.path("one"), 3 * MiB - 1, b"\1")
    assert not images.is_blank("one")


def test_growing_keeps_data_and_never_shrinks(images) -> None:
    images.create("one", MiB, thick=False)
    write(images.path("one"), 0, b"first")
    images.grow("one", 4 * MiB, thick=True)
    images.grow("one", 2 * MiB, thick=True)
    status = images.status("one")
    assert status is not None
    assert status.size == 4 * MiB
    assert status.allocated >= 4 * MiB
    with open(images.path("one"), "rb") as file:
        assert file.read(5) == b"first"


def test_a_copy_has_the_same_bytes_and_the_same_holes(images) -> None:
    images.create("one", 64 * MiB, thick=False)
    for position, data in ((0, b"begin"), (20 * MiB + 7, b"middle"), (64 * MiB - 3, b"end")):
        write(images.path("one"), position, data)
    images.copy(images.path("one"), "two", 80 * MiB, thick=False)
    status = images.status("two")
    assert status is not None
    assert status.size == 80 * MiB
    assert status.allocated <= MiB, "holes stay holes"
    with open(images.path("one"), "rb") as one, open(images.path("two"), "rb") as two:
        assert two.read(64 * MiB) == one.read()


def test_what_the_kernel_cannot_copy_is_copied_by_hand(images, tmp_path, monkeypatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    images.create("one", 4 * MiB, thick=False)
    write(images.path("one"), 3 * MiB, b"data")
    with open(images.path("one"), "rb") as source, open(tmp_path / "target", "w+b") as target:
        assert copy_contents(source.fileno(), target.fileno()) is False
        target.seek(3 * MiB)
        assert target.read(4) == b"data"


def test_a_failed_copy_leaves_nothing(images, tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        images.copy(str(tmp_path / "missing"), "two", MiB, thick=False)
    assert os.listdir(tmp_path) == []


def test_extents_of_nothing_and_of_a_hole(tmp_path) -> None:
    with open(tmp_path / "file", "w+b") as file:
        assert data_extents(file.fileno(), 0) == []
        file.truncate(MiB)
        assert data_extents(file.fileno(), MiB) == []


@pytest.mark.parametrize("thick", [False, True])
def test_a_failed_formatting_leaves_a_blank_image(images, thick) -> None:
    images.create("one", MiB, thick=thick)
    with pytest.raises(RuntimeError, match="mkfs"), images.formatting("one", thick=thick) as path:
        format_badly(path)
    assert images.is_blank("one")
    status = images.status("one")
    assert status is not None
    assert (status.allocated >= MiB) is thick


def test_a_formatting_that_was_cut_short_is_made_blank_again(images) -> None:
    images.create("one", MiB, thick=False)
    os.rename(images.path("one"), images.path("one") + ".formatting")
    write(images.path("one") + ".formatting", 0, b"half a filesystem")
    assert images.status("one") is not None, "it is not missing"
    images.settle("one", MiB, thick=False)
    assert images.is_blank("one")


def test_settling_touches_no_data_and_tells_what_is_missing(images) -> None:
    images.create("one", MiB, thick=False)
    write(images.path("one"), 0, b"data")
    images.settle("one", MiB, thick=False)
    assert not images.is_blank("one")
    with pytest.raises(FileNotFoundError):
        images.settle("none", MiB, thick=False)


def test_only_images_that_nobody_knows_are_removed(images, tmp_path) -> None:
    images.create("known", MiB, thick=False)
    images.create("unknown", MiB, thick=False)
    for name in ("half.img.formatting", "known.json", "notes.txt", ".hidden.img"):
        (tmp_path / name).write_bytes(b"")
    assert sorted(images.remove_unknown({"known"})) == ["half.img.formatting", "unknown.img"]
    assert sorted(os.listdir(tmp_path)) == [".hidden.img", "known.img", "known.json", "notes.txt"]


def test_an_image_that_was_swapped_for_a_link_is_not_followed(images, tmp_path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"precious")
    os.symlink(tmp_path / "elsewhere", images.path("one"))
    with pytest.raises(OSError, match="symbolic links"):
        images.grow("one", MiB, thick=False)
    with pytest.raises(OSError, match="symbolic links"):
        images.is_blank("one")
    assert (tmp_path / "elsewhere").read_bytes() == b"precious"
