"""The sizes of filesystems, read from their superblocks, against what mkfs was told."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost_loop_driver.superblock import parse_superblock, read_superblock

MiB = 1 << 20


def image(path, size: int) -> str:
    with open(path, "wb") as file:
        file.truncate(size)
    return str(path)


@pytest.mark.parametrize("options", [[], ["-b", "1024"], ["-b", "4096"], ["-O", "^64bit"]])
def test_ext4(tmp_path, options) -> None:
    path = image(tmp_path / "image", 32 * MiB)
    subprocess.run(["mkfs.ext4", "-qF", *options, path], check=True)
    found = read_superblock(path)
    assert found is not None
    assert (found.family, found.size) == ("ext", 32 * MiB)
    assert not found.smaller_than(32 * MiB)
    assert not found.smaller_than(32 * MiB + 4096)
    assert found.smaller_than(64 * MiB)


@pytest.mark.parametrize("extra", [4096, 256 * 1024, 512 * 1024, 1024 * 1024, 3 * MiB, 8 * MiB])
@pytest.mark.parametrize("base", [8 * MiB, 32 * MiB, 640 * MiB])
def test_what_is_left_over_at_the_end_is_not_mistaken_for_room_to_grow(tmp_path, base, extra) -> None:
    """mkfs and resize2fs leave out a last group that is too small: growing again and again would not help."""
    path = image(tmp_path / "image", base + extra)
    subprocess.run(["mkfs.ext4", "-qF", path], check=True)
    found = read_superblock(path)
    assert found is not None
    assert not found.smaller_than(base + extra)
    os.truncate(path, base + 2 * extra)
    if found.smaller_than(base + 2 * extra):
        subprocess.run(["resize2fs", path], check=True, capture_output=True)
        found = read_superblock(path)
        assert found is not None
        assert not found.smaller_than(base + 2 * extra)


def test_a_large_ext4_has_its_size_in_two_halves(tmp_path) -> None:
    size = 20 << 40
    path = image(tmp_path / "image", MiB)
    with open(path, "r+b") as file:
        header = bytearray(2048)
        blocks = size // 4096
        header[1024 + 4 : 1024 + 8] = (blocks & 0xFFFFFFFF).to_bytes(4, "little")
        header[1024 + 24] = 2
        header[1024 + 32 : 1024 + 36] = (32768).to_bytes(4, "little")
        header[1024 + 56 : 1024 + 58] = b"\x53\xef"
        header[1024 + 96] = 0x80
        header[1024 + 0x150 : 1024 + 0x154] = (blocks >> 32).to_bytes(4, "little")
        file.write(header)
    found = read_superblock(path)
    assert found is not None
    assert found.size == size


def test_xfs(tmp_path) -> None:
    path = image(tmp_path / "image", 300 * MiB)
    subprocess.run(["mkfs.xfs", "-qf", path], check=True)
    found = read_superblock(path)
    assert found is not None
    assert (found.family, found.size) == ("xfs", 300 * MiB)


def test_nothing_is_read_from_a_blank_image(tmp_path) -> None:
    assert read_superblock(image(tmp_path / "image", MiB)) is None
    assert read_superblock(image(tmp_path / "short", 100)) is None


@given(st.binary(max_size=4096))
def test_any_bytes_are_read_without_an_exception(data) -> None:
    parse_superblock(data)


@given(st.binary(min_size=2048, max_size=2048))
def test_senseless_superblocks_are_parsed_without_an_exception(data) -> None:
    found = parse_superblock(b"\0" * 1024 + data[:56] + b"\x53\xef" + data[58:1024])
    assert found is None or found.slack > 0
