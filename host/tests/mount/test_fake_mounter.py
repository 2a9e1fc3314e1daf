"""What only the fake mounter has: a log and errors on demand (MOUNT-80, -81)."""

from __future__ import annotations

from pathlib import Path

import pytest

from volumehost.errors import CorruptedMountError, MountError, UnmountError
from volumehost.mount.cleanup import cleanup_mount_point
from volumehost.testing.fake_mounter import FakeAction, FakeMounter, mount_point


def test_the_log_has_what_was_asked_in_order(tmp_path: Path) -> None:
    mounter = FakeMounter()
    mounter.mount("dev", str(tmp_path), "ext4", ["ro"], sensitive_options=["secret=x"])
    mounter.unmount(str(tmp_path))
    assert mounter.log == [
        FakeAction("mount", str(tmp_path), "dev", "ext4"),
        FakeAction("unmount", str(tmp_path)),
    ]
    mounter.log.clear()
    assert len(mounter.log) == 2
    mounter.reset_log()
    assert mounter.log == []


def test_a_bind_mount_has_the_device_of_its_source_mount80(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    mounter = FakeMounter([mount_point("/dev/sdz", str(tmp_path / "a"), "ext4")])
    mounter.mount(str(tmp_path / "a"), str(tmp_path / "b"), "", ["bind"])
    entry = mounter.list_mounts()[-1]
    assert (entry.source, entry.fs_type) == ("/dev/sdz", "ext4")
    assert mounter.get_mount_refs(str(tmp_path / "a")) == [str(tmp_path / "b")]


def test_unmount_takes_every_layer_mount80(tmp_path: Path) -> None:
    mounter = FakeMounter()
    mounter.mount("a", str(tmp_path), "tmpfs")
    mounter.mount("b", str(tmp_path), "tmpfs")
    mounter.unmount(str(tmp_path))
    assert mounter.list_mounts() == []


def test_an_injected_error_lasts_until_the_unmount_mount81(tmp_path: Path) -> None:
    mounter = FakeMounter()
    mounter.mount("a", str(tmp_path), "tmpfs")
    mounter.fail_check(str(tmp_path), CorruptedMountError("dead"))
    with pytest.raises(CorruptedMountError):
        mounter.is_mount_point(str(tmp_path))
    assert mounter.get_mount_refs(str(tmp_path)) == []
    mounter.unmount(str(tmp_path))
    assert mounter.is_mount_point(str(tmp_path)) is False


def test_mounting_fails_while_it_is_told_to(tmp_path: Path) -> None:
    mounter = FakeMounter()
    mounter.fail_mount(str(tmp_path), MountError("no"))
    with pytest.raises(MountError, match="no"):
        mounter.mount("a", str(tmp_path), "tmpfs")
    mounter.fail_mount(str(tmp_path), None)
    mounter.mount("a", str(tmp_path), "tmpfs")


def test_the_unmount_hook_can_refuse_and_the_path_stays_mount56(tmp_path: Path) -> None:
    target = tmp_path / "t"
    target.mkdir()

    def refuse(path: str) -> None:
        raise UnmountError(f"refused {path}")

    mounter = FakeMounter([mount_point("a", str(target), "tmpfs")], unmount_hook=refuse)
    with pytest.raises(UnmountError, match="refused"):
        cleanup_mount_point(str(target), mounter)
    assert target.exists()
    assert mounter.is_mount_point(str(target))


def test_a_mounter_that_can_skip_the_test_unmounts_first_mount51_mount56(tmp_path: Path) -> None:
    target = tmp_path / "t"
    target.mkdir()
    mounter = FakeMounter(skip_mount_point_check=True)
    cleanup_mount_point(str(target), mounter)
    assert mounter.log == [FakeAction("unmount", str(target))]
    assert not target.exists()


def test_cleanup_without_a_mount_does_not_unmount_mount52(tmp_path: Path) -> None:
    target = tmp_path / "t"
    target.mkdir()
    mounter = FakeMounter()
    cleanup_mount_point(str(target), mounter)
    cleanup_mount_point(str(target), mounter)
    assert mounter.log == []


def test_an_error_of_the_test_is_the_result_mount56(tmp_path: Path) -> None:
    mounter = FakeMounter()
    mounter.fail_check(str(tmp_path), PermissionError("no"))
    with pytest.raises(PermissionError):
        cleanup_mount_point(str(tmp_path), mounter)
    assert tmp_path.exists()


def test_a_corrupted_mount_is_unmounted_and_removed_mount51(tmp_path: Path) -> None:
    target = tmp_path / "t"
    target.mkdir()
    mounter = FakeMounter([mount_point("a", str(target), "fuse")])
    mounter.fail_check(str(target), CorruptedMountError("dead"))
    cleanup_mount_point(str(target), mounter, extensive=True)
    assert not target.exists()
    assert mounter.list_mounts() == []


def test_still_mounted_after_the_unmount_is_an_error_mount53(tmp_path: Path) -> None:
    target = tmp_path / "t"
    target.mkdir()
    mounter = FakeMounter([mount_point("a", str(target), "tmpfs")])

    class Stubborn(FakeMounter):
        def unmount(self, target: str, *, timeout: float | None = None) -> None:
            mounter.unmount("/elsewhere")

    stubborn = Stubborn(mounter.list_mounts())
    with pytest.raises(UnmountError, match="failed to cleanup mount point"):
        cleanup_mount_point(str(target), stubborn)
    assert target.exists()
