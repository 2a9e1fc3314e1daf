"""LinuxMounter on the kernel's own filesystems: options, errors, stacked mounts, unmount."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import pytest

from volumehost.errors import MountError, UnmountError
from volumehost.mount.mounter import LinuxMounter

pytestmark = pytest.mark.root


def test_tmpfs_gets_its_size_and_mode(area: Path, mounter: LinuxMounter) -> None:
    mounter.mount("tmpfs", str(area), "tmpfs", ["size=8k,mode=0710", "noexec"])
    filesystem = os.statvfs(area)
    assert filesystem.f_blocks * filesystem.f_frsize == 8192
    assert area.stat().st_mode & 0o7777 == 0o710
    entry = next(entry for entry in mounter.list_mounts() if entry.path == str(area))
    assert (entry.fs_type, entry.source) == ("tmpfs", "tmpfs")
    assert "noexec" in entry.options


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["size=banana"], "size"),
        (["no_such_option=1"], "no_such_option"),
    ],
)
def test_the_filesystem_itself_says_what_is_wrong_with_an_option(
    options: list[str], reason: str, area: Path, mounter: LinuxMounter
) -> None:
    with pytest.raises(MountError, match=reason) as caught:
        mounter.mount("tmpfs", str(area), "tmpfs", options)
    assert caught.value.errno == errno.EINVAL
    assert caught.value.action == f"mount tmpfs at {area}"
    assert not mounter.is_mount_point(str(area))


def test_a_sensitive_option_is_masked_in_every_text(
    area: Path, mounter: LinuxMounter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for secret in ("password=hunter2hunter2", "size=hunter2hunter2"):
        with pytest.raises(MountError) as caught:
            mounter.mount("tmpfs", str(area), "tmpfs", ["ro"], sensitive_options=[secret])
        assert "hunter2" not in str(caught.value)
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(
    ("source", "fs_type", "reason"),
    [
        ("/dev/null", "ext4", "not a block device"),
        ("/does/not/exist", "ext4", "does not exist"),
        ("x", "nosuchfs", "does not know this filesystem"),
    ],
)
def test_errors_are_explained(source: str, fs_type: str, reason: str, area: Path, mounter: LinuxMounter) -> None:
    with pytest.raises(MountError, match=reason):
        mounter.mount(source, str(area), fs_type)


def test_a_path_with_a_nul_is_refused_before_anything_is_done(area: Path, mounter: LinuxMounter) -> None:
    with pytest.raises(MountError, match="null byte"):
        mounter.mount("tmpfs", f"{area}\0/etc", "tmpfs")
    with pytest.raises(UnmountError, match="null byte"):
        mounter.unmount(f"{area}\0")
    assert not mounter.is_mount_point(str(area))


def test_stacked_mounts_go_one_by_one_mount54(area: Path, mounter: LinuxMounter) -> None:
    mounter.mount("tmpfs", str(area), "tmpfs")
    (area / "first").touch()
    mounter.mount("tmpfs", str(area), "tmpfs")
    assert not (area / "first").exists()
    mounter.unmount(str(area))
    assert (area / "first").exists()
    assert mounter.is_mount_point(str(area))
    mounter.unmount(str(area))
    assert not mounter.is_mount_point(str(area))


def test_unmount_does_not_follow_a_link_at_the_end(area: Path, mounter: LinuxMounter) -> None:
    target = area / "target"
    target.mkdir()
    (area / "link").symlink_to(target)
    mounter.mount("tmpfs", str(target), "tmpfs")
    with pytest.raises(UnmountError, match="symbolic link"):
        mounter.unmount(str(area / "link"))
    assert mounter.is_mount_point(str(target))


def test_relative_paths_work(area: Path, mounter: LinuxMounter, monkeypatch: pytest.MonkeyPatch) -> None:
    (area / "t").mkdir()
    monkeypatch.chdir(area)
    mounter.mount("tmpfs", "t", "tmpfs")
    assert mounter.is_mount_point("t")
    assert mounter.is_mount_point("t/")
    assert mounter.is_mount_point("./t/.")
    mounter.unmount("t")
    assert not mounter.is_mount_point("t")


def test_names_that_no_encoding_explains(area: Path, mounter: LinuxMounter) -> None:
    target = os.fsdecode(os.fsencode(area) + b"/\xff \xfe\n")
    os.mkdir(target)
    mounter.mount("tmpfs", target, "tmpfs")
    assert mounter.is_mount_point(target)
    assert any(entry.path == target for entry in mounter.list_mounts())
    mounter.unmount(target)
    assert not mounter.is_mount_point(target)


def options_at(mounter: LinuxMounter, path: Path) -> tuple[set[str], set[str]]:
    entry = next(entry for entry in reversed(mounter.list_mounts()) if entry.path == str(path))
    return set(entry.options), set(entry.super_options)


def test_a_remount_keeps_the_flags_that_it_does_not_speak_of_mount09(area: Path, mounter: LinuxMounter) -> None:
    mounter.mount("tmpfs", str(area), "tmpfs", ["nosuid", "nodev", "noexec", "noatime", "size=4m"])
    mounter.mount("", str(area), "", ["remount", "bind", "ro"])
    assert {"ro", "nosuid", "nodev", "noexec", "noatime"} <= options_at(mounter, area)[0]
    assert "rw" in options_at(mounter, area)[1], "of this mount alone"
    mounter.mount("", str(area), "", ["remount", "bind", "rw", "exec", "relatime"])
    assert {"rw", "nosuid", "nodev", "relatime"} <= options_at(mounter, area)[0]
    assert "noexec" not in options_at(mounter, area)[0]


def test_a_remount_of_the_filesystem_changes_its_own_options(area: Path, mounter: LinuxMounter) -> None:
    mounter.mount("tmpfs", str(area), "tmpfs", ["nosuid", "size=4m"])
    mounter.mount("tmpfs", str(area), "tmpfs", ["remount", "size=8m"])
    assert os.statvfs(area).f_blocks * os.statvfs(area).f_frsize == 8 << 20
    assert "nosuid" in options_at(mounter, area)[0]
    mounter.mount("", str(area), "", ["remount", "ro"])
    assert "ro" in options_at(mounter, area)[1]
    assert len([entry for entry in mounter.list_mounts() if entry.path == str(area)]) == 1


def test_propagation_of_an_existing_mount_can_be_changed(tmpfs: Path, mounter: LinuxMounter) -> None:
    mounter.mount("", str(tmpfs), "", ["shared"])
    assert next(entry for entry in mounter.list_mounts() if entry.path == str(tmpfs)).shared
    mounter.mount("", str(tmpfs), "", ["private"])
    assert not next(entry for entry in mounter.list_mounts() if entry.path == str(tmpfs)).shared


def test_a_new_filesystem_gets_its_propagation(area: Path, mounter: LinuxMounter) -> None:
    mounter.mount("tmpfs", str(area), "tmpfs", ["shared"])
    assert next(entry for entry in mounter.list_mounts() if entry.path == str(area)).shared


def test_unmounting_below_a_file_or_nothing_succeeds_mount13(area: Path, mounter: LinuxMounter) -> None:
    (area / "file").touch()
    mounter.unmount(str(area / "file"))
    mounter.unmount(str(area / "file" / "x"))
    mounter.unmount(str(area / "missing" / "x"))


def test_a_busy_mount_named_with_a_slash_at_the_end_names_its_holder(tmpfs: Path, mounter: LinuxMounter) -> None:
    fd = os.open(tmpfs, os.O_RDONLY)
    try:
        with pytest.raises(UnmountError, match=f"process {os.getpid()}"):
            mounter.unmount(f"{tmpfs}/")
    finally:
        os.close(fd)


def test_a_device_is_mounted_and_its_data_survives(device: str, area: Path, mounter: LinuxMounter) -> None:
    from volumehost.mount.format import SafeFormatAndMount

    SafeFormatAndMount(mounter).format(device)
    mounter.mount(device, str(area), "ext4")
    (area / "file").write_text("kept")
    mounter.unmount(str(area))
    assert not (area / "file").exists()
    mounter.mount(device, str(area), "ext4", ["ro"])
    assert (area / "file").read_text() == "kept"


def test_the_mount_table_of_a_thread_with_its_own_namespace_is_read(area: Path, mounter: LinuxMounter) -> None:
    """A thread can have mounts that the main thread does not see."""
    import threading

    from volumehost.mount import syscalls

    seen: list[tuple[bool, bool]] = []

    def elsewhere() -> None:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        own = LinuxMounter()
        own.mount("tmpfs", str(area), "tmpfs")
        seen.append((own.is_mount_point(str(area)), any(entry.path == str(area) for entry in own.list_mounts())))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(30)
    assert seen == [(True, True)]
    assert not mounter.is_mount_point(str(area))
