"""Growing filesystems (MOUNT-70, -71)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from volumehost.errors import MountError
from volumehost.mount import loop
from volumehost.mount.format import SafeFormatAndMount, device_size
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.programs import Programs
from volumehost.mount.resize import is_read_only, need_resize, resize

pytestmark = pytest.mark.root


def size_of(path: Path) -> int:
    statistics = os.statvfs(path)
    return statistics.f_blocks * statistics.f_frsize


@pytest.mark.parametrize("fs_type", ["ext4", "ext3", "xfs", "btrfs"])
def test_a_mounted_filesystem_grows_with_its_device_mount70(
    fs_type: str, image, area: Path, mounter: LinuxMounter
) -> None:
    if Programs().find(f"mkfs.{fs_type}") is None:
        pytest.skip(f"mkfs.{fs_type} is not installed")
    small = 400 << 20 if fs_type in {"xfs", "btrfs"} else 16 << 20
    path = image(small)
    device = loop.attach(path)
    SafeFormatAndMount(mounter).format_and_mount(device, str(area), fs_type)
    (area / "file").write_text("precious")
    before = size_of(area)
    os.truncate(path, 2 * small)
    loop.refresh_capacity(device)
    assert device_size(device) == 2 * small
    assert need_resize(device, str(area)) is True
    try:
        assert resize(device, str(area)) is True
    except MountError as error:
        if "CAP_SYS_RESOURCE" in error.hint:
            pytest.skip(f"growing a mounted filesystem is not permitted here: {error.hint}")
        raise
    assert size_of(area) > before * 1.5
    assert (area / "file").read_text() == "precious"


@pytest.mark.parametrize("fs_type", ["ext4", "ext3"])
def test_an_unmounted_ext_filesystem_grows_too(fs_type: str, image, area: Path, mounter: LinuxMounter) -> None:
    path = image(16 << 20)
    device = loop.attach(path)
    SafeFormatAndMount(mounter).format(device, fs_type)
    os.truncate(path, 32 << 20)
    loop.refresh_capacity(device)
    assert resize(device, str(area)) is True
    assert resize(device, str(area)) is True, "nothing is left to do"
    mounter.mount(device, str(area), fs_type)
    assert size_of(area) > 24 << 20


def test_an_empty_device_has_nothing_to_grow_mount70_mount71(device: str, area: Path) -> None:
    assert resize(device, str(area)) is False
    assert need_resize(device, str(area)) is False


def test_other_formats_are_an_error_mount70_mount71(device: str, area: Path) -> None:
    subprocess.run(["mkswap", device], check=True, capture_output=True)
    for call in (resize, need_resize):
        with pytest.raises(MountError, match=f"resize of format swap is not supported for device {device}"):
            call(device, str(area))


def test_a_read_only_device_needs_none_mount71(image, area: Path) -> None:
    device = loop.attach(image(), read_only=True)
    assert is_read_only(device)
    assert need_resize(device, str(area)) is False


def test_a_tool_that_fails_is_told(image, area: Path, tmp_path: Path) -> None:
    device = loop.attach(image())
    SafeFormatAndMount(LinuxMounter()).format(device)
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "resize2fs").write_text("#!/bin/sh\necho boom >&2; exit 1\n")
    (directory / "resize2fs").chmod(0o755)
    with pytest.raises(MountError, match="resize2fs: exit status 1: boom"):
        resize(device, str(area), Programs(f"{directory}:/usr/sbin:/sbin:/usr/bin:/bin"))


@pytest.mark.parametrize(
    ("total", "needed"), [(16 << 20, False), ((16 << 20) - 4096, False), ((16 << 20) - 4097, True), (1, True)]
)
def test_btrfs_compares_sizes_mount71(total: int, needed: bool, device: str, area: Path, tmp_path: Path) -> None:
    directory = tmp_path / "bin"
    directory.mkdir()
    for name, body in (
        ("blkid", "echo TYPE=btrfs"),
        (
            "btrfs",
            f'printf "superblock\\ntotal_bytes\\t\\t{total}\\nsectorsize\\t\\t4096\\ndev_item.total_bytes\\t1\\n"',
        ),
    ):
        (directory / name).write_text(f"#!/bin/sh\n{body}\n")
        (directory / name).chmod(0o755)
    programs = Programs(f"{directory}:/usr/bin:/bin")
    assert need_resize(device, str(area), programs) is needed


def test_a_missing_device_is_an_error(area: Path) -> None:
    calls: list[Callable[[str, str], bool]] = [resize, need_resize]
    for call in calls:
        with pytest.raises(MountError, match="No such file"):
            call(str(area / "none"), str(area))
