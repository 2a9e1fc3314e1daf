"""Formatting, checking and mounting devices (MOUNT-60 to -69)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from volumehost.errors import FormatError
from volumehost.mount import format as fmt
from volumehost.mount.format import FormatLimit, SafeFormatAndMount, get_disk_format
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.programs import Programs
from volumehost.testing.fake_mounter import FakeMounter

pytestmark = pytest.mark.root


@pytest.fixture
def scripts(tmp_path: Path) -> Callable[[str, str], Programs]:
    directory = tmp_path / "bin"
    directory.mkdir()

    def add(name: str, body: str) -> Programs:
        script = directory / name
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(0o755)
        return Programs(f"{directory}:/usr/sbin:/sbin:/usr/bin:/bin")

    return add


def superblock(device: str) -> str:
    return subprocess.run(["dumpe2fs", "-h", device], capture_output=True, text=True, check=True).stdout


def kind_of(call: Callable[[], object]) -> FormatError:
    with pytest.raises(FormatError) as caught:
        call()
    return caught.value


def test_an_empty_device_is_formatted_with_the_default_and_mounted_mount62_mount64(
    device: str, area: Path, mounter: LinuxMounter
) -> None:
    assert get_disk_format(device) == ""
    SafeFormatAndMount(mounter).format_and_mount(device, str(area))
    assert get_disk_format(device) == "ext4"
    entry = next(entry for entry in mounter.list_mounts() if entry.path == str(area))
    assert (entry.fs_type, entry.source) == ("ext4", device)
    assert re.search(r"Reserved block count: +0$", superblock(device), re.MULTILINE)


def test_data_survives_the_next_mount(device: str, area: Path, mounter: LinuxMounter) -> None:
    formatter = SafeFormatAndMount(mounter)
    formatter.format_and_mount(device, str(area), "ext4")
    (area / "file").write_text("precious")
    mounter.unmount(str(area))
    formatter.format_and_mount(device, str(area), "ext4", ["noatime"])
    assert (area / "file").read_text() == "precious"
    assert "noatime" in next(entry for entry in mounter.list_mounts() if entry.path == str(area)).options


def test_format_options_go_first_mount64(device: str, area: Path, mounter: LinuxMounter) -> None:
    SafeFormatAndMount(mounter).format_and_mount(device, str(area), "ext4", format_options=["-L", "mylabel"])
    assert "Filesystem volume name:   mylabel" in superblock(device)


@pytest.mark.parametrize("fs_type", ["xfs", "btrfs"])
def test_other_filesystems(fs_type: str, image, area: Path, mounter: LinuxMounter) -> None:
    from volumehost.mount import loop

    if Programs().find(f"mkfs.{fs_type}") is None:
        pytest.skip(f"mkfs.{fs_type} is not installed")
    device = loop.attach(image(400 << 20))
    SafeFormatAndMount(mounter).format_and_mount(device, str(area), fs_type)
    assert get_disk_format(device) == fs_type


def test_an_empty_device_is_not_formatted_for_a_read_only_mount_mount63(
    device: str, area: Path, mounter: LinuxMounter
) -> None:
    for options, sensitive in ((["ro"], []), ([], ["ro"]), (["noatime,ro"], [])):
        error = kind_of(
            lambda options=options, sensitive=sensitive: SafeFormatAndMount(mounter).format_and_mount(
                device, str(area), "ext4", options, sensitive_options=sensitive
            )
        )
        assert error.kind == fmt.UNFORMATTED_READ_ONLY
    assert get_disk_format(device) == ""
    assert not mounter.is_mount_point(str(area))


def test_a_partition_table_is_never_formatted_over_mount61(device: str, area: Path, mounter: LinuxMounter) -> None:
    with open(device, "r+b") as file:
        file.seek(446)
        file.write(bytes([0, 0, 2, 0, 0x83, 1, 1, 1]) + (1).to_bytes(4, "little") + (1000).to_bytes(4, "little"))
        file.seek(510)
        file.write(b"\x55\xaa")
        os.fsync(file.fileno())
    assert get_disk_format(device) == fmt.PARTITIONED
    error = kind_of(lambda: SafeFormatAndMount(mounter).format_and_mount(device, str(area)))
    assert error.kind == fmt.FILESYSTEM_MISMATCH
    assert get_disk_format(device) == fmt.PARTITIONED, "untouched"


def test_data_that_is_no_filesystem_is_refused_where_formatting_is_ruled_out(
    device: str, area: Path, mounter: LinuxMounter
) -> None:
    with open(device, "r+b") as file:
        file.write(b"rows of a database")
    formatter = SafeFormatAndMount(mounter)
    error = kind_of(lambda: formatter.format_and_mount(device, str(area), may_format=False))
    assert error.kind == fmt.FILESYSTEM_MISMATCH
    with open(device, "rb") as file:
        assert file.read(18) == b"rows of a database"


def test_another_filesystem_than_wanted_is_a_mismatch_and_untouched_mount65(
    device: str, area: Path, mounter: LinuxMounter
) -> None:
    subprocess.run(["mkswap", device], check=True, capture_output=True)
    error = kind_of(lambda: SafeFormatAndMount(mounter).format_and_mount(device, str(area), "ext4"))
    assert error.kind == fmt.FILESYSTEM_MISMATCH
    assert "holds swap, not ext4" in error.reason
    assert get_disk_format(device) == "swap"


def test_a_failure_of_the_right_filesystem_is_an_unknown_mount_error_mount65(
    device: str, area: Path, mounter: LinuxMounter
) -> None:
    formatter = SafeFormatAndMount(mounter)
    formatter.format(device)
    error = kind_of(lambda: formatter.format_and_mount(device, str(area / "missing"), "ext4"))
    assert error.kind == fmt.UNKNOWN_MOUNT_ERROR


def test_a_failed_format_is_told_with_its_output_mount64(scripts, device: str, area: Path) -> None:
    programs = scripts("mkfs.ext4", "echo boom >&2; exit 5")
    mounter = FakeMounter()
    formatter = SafeFormatAndMount(mounter, programs=programs)
    error = kind_of(lambda: formatter.format_and_mount(device, str(area)))
    assert error.kind == fmt.FORMAT_FAILED
    assert "mkfs.ext4: exit status 5: boom" in error.reason
    assert mounter.log == []


def test_a_missing_mkfs_is_a_failed_format(device: str, area: Path) -> None:
    formatter = SafeFormatAndMount(FakeMounter())
    error = kind_of(lambda: formatter.format_and_mount(device, str(area), "nosuchfs"))
    assert error.kind == fmt.FORMAT_FAILED
    assert "mkfs.nosuchfs is not installed" in error.reason


@pytest.mark.parametrize(
    ("output", "status", "expected"),
    [
        ("TYPE=ext4", 0, "ext4"),
        ("DEVNAME=/dev/x=y\nTYPE=xfs\n", 0, "xfs"),
        ("TYPE=ext4\nPTTYPE=dos", 0, fmt.PARTITIONED),
        ("PTTYPE=gpt", 0, fmt.PARTITIONED),
        ("", 2, ""),
        ("", 0, ""),
        ("TYPE=a=b", 0, None),
        ("nonsense", 0, None),
        ("", 8, None),
        ("", 1, None),
    ],
)
def test_what_blkid_says_mount61(scripts, output: str, status: int, expected: str | None, device: str) -> None:
    programs = scripts("blkid", f"echo warning=1=2 >&2; printf '%s' '{output}'; exit {status}")
    if expected is None:
        assert kind_of(lambda: get_disk_format(device, programs)).kind == fmt.GET_DISK_FORMAT_FAILED
    else:
        assert get_disk_format(device, programs) == expected


def test_a_device_that_cannot_be_read_is_not_taken_for_an_empty_one(area: Path) -> None:
    error = kind_of(lambda: SafeFormatAndMount(FakeMounter()).format_and_mount(str(area / "none"), str(area)))
    assert error.kind == fmt.GET_DISK_FORMAT_FAILED
    assert "No such file" in error.reason


@pytest.mark.parametrize(
    ("status", "mounts"), [(0, True), (1, True), (2, True), (3, True), (4, False), (8, True), (32, True), (255, True)]
)
def test_what_fsck_says_mount66(scripts, status: int, mounts: bool, device: str, area: Path) -> None:
    SafeFormatAndMount(FakeMounter()).format(device)
    programs = scripts("fsck", f'[ "$*" = "-a {device}" ] || exit 99; echo checked; exit {status}')
    mounter = FakeMounter()
    formatter = SafeFormatAndMount(mounter, programs=programs)
    if mounts:
        formatter.format_and_mount(device, str(area))
        assert mounter.is_mount_point(str(area))
    else:
        error = kind_of(lambda: formatter.format_and_mount(device, str(area)))
        assert error.kind == fmt.HAS_FILESYSTEM_ERRORS
        assert "checked" in error.reason
        assert mounter.log == []


def test_a_fresh_filesystem_and_a_read_only_one_are_not_checked_mount64_mount66(
    scripts, tmp_path: Path, device: str, area: Path
) -> None:
    programs = scripts("fsck", f"echo called >> {tmp_path}/fsck")
    formatter = SafeFormatAndMount(FakeMounter(), programs=programs)
    formatter.format_and_mount(device, str(area))
    formatter.format_and_mount(device, str(area), "ext4", ["ro"])
    assert not (tmp_path / "fsck").exists()
    formatter.format_and_mount(device, str(area))
    assert (tmp_path / "fsck").read_text() == "called\n"


def test_a_missing_fsck_is_a_warning_mount66(
    device: str, area: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    SafeFormatAndMount(FakeMounter()).format(device)
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "blkid").symlink_to(shutil.which("blkid", path="/usr/sbin:/sbin:/usr/bin:/bin") or "/sbin/blkid")
    SafeFormatAndMount(FakeMounter(), programs=Programs(str(bare))).format_and_mount(device, str(area))
    assert "fsck is not installed" in caplog.text


def test_defaults_are_appended_to_the_options_mount60(device: str, area: Path) -> None:
    seen: list[tuple[str, ...]] = []

    class Noting(FakeMounter):
        def mount(self, source, target, fs_type="", options=(), **arguments):
            seen.append((fs_type, *options, *arguments["sensitive_options"]))

    SafeFormatAndMount(Noting()).format_and_mount(device, str(area), "ext4", ["noatime"], sensitive_options=["pw=x"])
    assert seen == [("ext4", "noatime", "defaults", "pw=x")]


# --- concurrency ------------------------------------------------------------------------------------------


def formatting(limit: FormatLimit, begun: threading.Semaphore, release: threading.Event) -> threading.Thread:
    def work() -> None:
        with limit.token():
            begun.release()
            release.wait(30)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_no_more_formats_at_once_than_allowed_mount68() -> None:
    limit, begun, release = FormatLimit(2, 300.0), threading.Semaphore(0), threading.Event()
    threads = [formatting(limit, begun, release) for _ in range(3)]
    assert begun.acquire(timeout=30)
    assert begun.acquire(timeout=30)
    assert not begun.acquire(timeout=0.2)
    release.set()
    assert begun.acquire(timeout=30)
    for thread in threads:
        thread.join(30)


def test_a_slow_format_gives_its_token_back_when_its_time_is_up_mount68() -> None:
    limit, begun, release = FormatLimit(1, 0.05), threading.Semaphore(0), threading.Event()
    threads = [formatting(limit, begun, release) for _ in range(2)]
    assert begun.acquire(timeout=30)
    assert begun.acquire(timeout=30), "though the first is still at work"
    release.set()
    for thread in threads:
        thread.join(30)
    # Each token came back once, not twice.
    one, release = formatting(limit, begun, threading.Event()), threading.Event()
    assert begun.acquire(timeout=30)
    assert one.is_alive()
    del release


@pytest.mark.parametrize("count", [0, -1])
def test_less_than_one_means_no_limit_mount68(count: int) -> None:
    limit, begun, release = FormatLimit(count), threading.Semaphore(0), threading.Event()
    threads = [formatting(limit, begun, release) for _ in range(5)]
    for _ in range(5):
        assert begun.acquire(timeout=30)
    release.set()
    for thread in threads:
        thread.join(30)
