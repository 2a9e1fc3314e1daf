"""Block devices mapped into pods (BLOCK-01 to -10)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from volumehost.errors import MountError, StillMountedError, UnmountError
from volumehost.mount import loop
from volumehost.mount.block_path import BlockPathHandler
from volumehost.mount.mounter import LinuxMounter

pytestmark = pytest.mark.root


@pytest.fixture
def handler(mounter: LinuxMounter) -> BlockPathHandler:
    return BlockPathHandler(mounter)


@pytest.fixture
def other_device(image) -> str:
    return loop.attach(image(1 << 20, "other.img"))


@pytest.mark.parametrize(
    ("device_path", "map_path", "link", "reason"),
    [
        ("", "/m", "l", "device path is empty"),
        ("/dev/x", "", "l", "map path is empty"),
        ("/dev/x", "relative", "l", "must be absolute"),
        ("/dev/x", "/m", "", "one path component"),
        ("/dev/x", "/m", "a/b", "one path component"),
        ("/dev/x", "/m", "..", "one path component"),
    ],
)
def test_unusable_arguments_block01(
    device_path: str, map_path: str, link: str, reason: str, handler: BlockPathHandler
) -> None:
    for bind_mount in (True, False):
        with pytest.raises(MountError, match=reason):
            handler.map_device(device_path, map_path, link, bind_mount=bind_mount)
    assert not os.path.exists("/m")


def test_a_bind_shows_the_device_and_can_be_repeated_block02(
    handler: BlockPathHandler, device: str, area: Path, mounter: LinuxMounter
) -> None:
    path = area / "map" / "uid"
    for _ in range(2):
        handler.map_device(device, str(area / "map"), "uid", bind_mount=True)
    assert stat.S_ISBLK(path.stat().st_mode)
    assert path.stat().st_rdev == os.stat(device).st_rdev
    assert stat.S_IMODE((area / "map").stat().st_mode) == 0o750
    assert [entry.path for entry in mounter.list_mounts()].count(str(path)) == 1
    assert handler.is_device_bind_mount_exist(str(path))
    for _ in range(2):
        handler.unmap_device(str(area / "map"), "uid", bind_mount=True)
    assert not path.exists()
    assert not handler.is_device_bind_mount_exist(str(path))


def test_a_device_by_another_name_is_the_same_device_block02(
    handler: BlockPathHandler, device: str, area: Path
) -> None:
    (area / "by-id").symlink_to(device)
    handler.map_device(device, str(area / "map"), "uid", bind_mount=True)
    handler.map_device(str(area / "by-id"), str(area / "map"), "uid", bind_mount=True)


def test_a_plain_file_is_not_mapped_as_a_device_which_could_not_be_unmapped(
    handler: BlockPathHandler, area: Path
) -> None:
    (area / "file").write_bytes(b"0" * 4096)
    with pytest.raises(MountError, match="it is no device"):
        handler.map_device(str(area / "file"), str(area / "map"), "uid", bind_mount=True)
    assert list((area / "map").iterdir()) == []


def test_another_device_in_the_place_is_an_error_block06(
    handler: BlockPathHandler, device: str, other_device: str, area: Path
) -> None:
    handler.map_device(device, str(area / "map"), "uid", bind_mount=True)
    with pytest.raises(MountError, match="another device is mapped there"):
        handler.map_device(other_device, str(area / "map"), "uid", bind_mount=True)


def test_a_link_in_the_place_of_the_bind_is_not_followed(handler: BlockPathHandler, device: str, area: Path) -> None:
    (area / "map").mkdir()
    (area / "precious").write_text("x")
    (area / "map" / "uid").symlink_to(area / "precious")
    with pytest.raises(MountError, match="symbolic links"):
        handler.map_device(device, str(area / "map"), "uid", bind_mount=True)
    assert (area / "precious").read_text() == "x"


def test_an_interrupted_bind_is_finished_or_taken_away_block04(
    handler: BlockPathHandler, device: str, area: Path
) -> None:
    """Killed between making the file and mounting on it."""
    (area / "map").mkdir()
    (area / "map" / "uid").touch()
    handler.map_device(device, str(area / "map"), "uid", bind_mount=True)
    handler.unmap_device(str(area / "map"), "uid", bind_mount=True)
    (area / "map" / "uid").touch()
    handler.unmap_device(str(area / "map"), "uid", bind_mount=True)
    assert not (area / "map" / "uid").exists()


def test_a_link_to_the_device_replaces_an_older_one_block03_block04(
    handler: BlockPathHandler, device: str, area: Path
) -> None:
    handler.map_device("/dev/null", str(area / "map"), "vol", bind_mount=False)
    handler.map_device(device, str(area / "map"), "vol", bind_mount=False)
    assert os.readlink(area / "map" / "vol") == device
    assert handler.is_symlink_exist(str(area / "map" / "vol"))
    for _ in range(2):
        handler.unmap_device(str(area / "map"), "vol", bind_mount=False)
    assert not os.path.lexists(area / "map" / "vol")
    assert not handler.is_symlink_exist(str(area / "map" / "vol"))


def test_what_is_no_link_is_not_removed_as_one_block04(
    handler: BlockPathHandler, area: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (area / "vol").touch()
    handler.unmap_device(str(area), "vol", bind_mount=False)
    assert (area / "vol").exists()
    assert "is not a link" in caplog.text
    with pytest.raises(MountError, match="map path is empty"):
        handler.unmap_device("", "vol", bind_mount=True)


def test_removing_the_map_path_stops_at_what_is_mounted_block05(
    handler: BlockPathHandler, device: str, area: Path
) -> None:
    handler.map_device(device, str(area / "map"), "uid", bind_mount=True)
    with pytest.raises(StillMountedError):
        handler.remove_map_path(str(area / "map"))
    handler.unmap_device(str(area / "map"), "uid", bind_mount=True)
    (area / "map" / "left").touch()
    handler.remove_map_path(str(area / "map"))
    assert not (area / "map").exists()


def test_references_are_binds_of_this_very_device_block06(
    handler: BlockPathHandler, device: str, other_device: str, area: Path
) -> None:
    directory = area / "map"
    for pod in ("pod1", "pod2"):
        handler.map_device(device, str(directory), pod, bind_mount=True)
    handler.map_device(other_device, str(directory), "pod3", bind_mount=True)
    handler.map_device(device, str(directory), "link", bind_mount=False)
    (directory / "file").touch()
    assert handler.get_device_bind_mount_refs(device, str(directory)) == [
        str(directory / "pod1"),
        str(directory / "pod2"),
    ]
    assert handler.get_device_bind_mount_refs(str(area / "none"), str(directory)) == []
    with pytest.raises(FileNotFoundError):
        handler.get_device_bind_mount_refs(device, str(area / "none"))


def test_a_volume_is_mapped_locked_and_unmapped_block08_block09(
    handler: BlockPathHandler, device: str, area: Path
) -> None:
    plugin, pod = area / "plugin" / "volumeDevices" / "pv", area / "pod"
    lock = handler.map_block_volume(device, str(plugin), str(pod), "vol", "uid1")
    assert handler.map_block_volume(device, str(plugin), str(pod), "vol", "uid1") == lock, "repeating changes nothing"
    other = handler.map_block_volume(device, str(plugin), str(area / "pod2"), "vol", "uid2")
    assert other != lock
    assert handler.get_loop_device(str(plugin / "uid1")) == lock
    assert os.readlink(pod / "vol") == device
    with pytest.raises(UnmountError, match=f"{lock} is attached to"):
        handler.unmap_device(str(plugin), "uid1", bind_mount=True)
    assert handler.find_global_map_path_uuid_from_pod(str(area / "plugin"), str(pod / "vol"), "uid1") == str(
        plugin / "uid1"
    )
    with pytest.raises(MountError, match="no mapping of that device"):
        handler.find_global_map_path_uuid_from_pod(str(area / "plugin"), str(pod / "vol"), "uid9")
    for _ in range(2):
        handler.unmap_block_volume(str(plugin), str(pod), "vol", "uid1")
    assert sorted(os.listdir(plugin)) == ["uid2"]
    assert os.listdir(pod) == []
    assert handler.get_loop_device(str(plugin / "uid2")) == other
    handler.unmap_block_volume(str(plugin), str(area / "pod2"), "vol", "uid2")
    with pytest.raises(MountError, match="device not found"):
        handler.get_loop_device(str(plugin / "uid2"))


def test_the_search_does_not_enter_what_is_mounted_block10(
    handler: BlockPathHandler, device: str, area: Path, mounter: LinuxMounter
) -> None:
    plugin = area / "plugin"
    (plugin / "staged").mkdir(parents=True)
    mounter.mount("tmpfs", str(plugin / "staged"), "tmpfs")
    os.mknod(plugin / "staged" / "uid", stat.S_IFBLK | 0o600, os.stat(device).st_rdev)
    handler.map_device(device, str(area / "pod"), "vol", bind_mount=False)
    with pytest.raises(MountError, match="no mapping"):
        handler.find_global_map_path_uuid_from_pod(str(plugin), str(area / "pod" / "vol"), "uid")
