"""Cleaning up mount points (MOUNT-50 to -56, BR-70)."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from volumehost.errors import MountError, RemovalError, StillMountedError, UnmountError
from volumehost.mount.cleanup import cleanup_mount_point, cleanup_mount_point_with_force
from volumehost.mount.mounter import LinuxMounter

pytestmark = pytest.mark.root


class CarefulMounter(LinuxMounter):
    """A mounter that wants to be asked before it unmounts, as on machines where that is not harmless."""

    def can_safely_skip_mount_point_check(self) -> bool:
        return False


@pytest.fixture(params=[LinuxMounter, CarefulMounter])
def either(request: pytest.FixtureRequest) -> LinuxMounter:
    made: LinuxMounter = request.param(answer_seconds=1.0)
    return made


@pytest.mark.parametrize("extensive", [True, False])
def test_a_mount_point_is_unmounted_and_removed(extensive: bool, area: Path, either: LinuxMounter) -> None:
    (area / "m").mkdir()
    either.mount("tmpfs", str(area / "m"), "tmpfs")
    (area / "m" / "inside").touch()
    cleanup_mount_point(str(area / "m"), either, extensive)
    assert not (area / "m").exists()


@pytest.mark.parametrize("extensive", [True, False])
def test_a_bound_file_is_unmounted_and_removed_and_its_source_stays(
    extensive: bool, area: Path, either: LinuxMounter
) -> None:
    (area / "data").write_text("precious")
    (area / "place").touch()
    either.mount(str(area / "data"), str(area / "place"), "", ["bind"])
    cleanup_mount_point(str(area / "place"), either, extensive)
    assert not (area / "place").exists()
    assert (area / "data").read_text() == "precious"


def test_missing_is_a_warning_and_success_mount50(
    area: Path, either: LinuxMounter, caplog: pytest.LogCaptureFixture
) -> None:
    cleanup_mount_point(str(area / "missing"), either)
    assert "does not exist" in caplog.text
    assert caplog.records[0].levelno == logging.WARNING


def test_an_empty_directory_and_a_file_are_removed_mount52(area: Path, either: LinuxMounter) -> None:
    (area / "d").mkdir()
    (area / "f").touch()
    cleanup_mount_point(str(area / "d"), either)
    cleanup_mount_point(str(area / "f"), either)
    assert list(area.iterdir()) == []


def test_br70_files_below_the_mount_point_are_kept_and_reported(area: Path, either: LinuxMounter) -> None:
    (area / "m").mkdir()
    for number in range(7):
        (area / "m" / f"late{number}").write_text("precious")
    either.mount("tmpfs", str(area / "m"), "tmpfs")
    with pytest.raises(RemovalError, match=r"not empty, what is in it was kept: .*late0, .* and 2 more") as caught:
        cleanup_mount_point(str(area / "m"), either, extensive=True)
    assert len(caught.value.paths) == 7
    assert not either.is_mount_point(str(area / "m")), "it is unmounted all the same"
    assert all((area / "m" / f"late{number}").read_text() == "precious" for number in range(7))


def test_br70_a_process_that_writes_at_the_moment_of_the_unmount_loses_nothing(
    area: Path, mounter: LinuxMounter
) -> None:
    (area / "m").mkdir()
    mounter.mount("tmpfs", str(area / "m"), "tmpfs")
    program = (
        "import os, sys\nprint('ready', flush=True)\n"
        "while True:\n"
        "    try: os.close(os.open(sys.argv[1] + '/file', os.O_CREAT | os.O_WRONLY))\n"
        "    except FileNotFoundError: break\n"
        "    except OSError: pass\n"
        "    if not os.path.ismount(sys.argv[1]): break\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(area / "m")], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        try:
            while mounter.is_mount_point(str(area / "m")):
                try:
                    cleanup_mount_point(str(area / "m"), mounter)
                except (UnmountError, RemovalError):
                    continue
                break
            assert writer.wait(30) == 0
        finally:
            writer.kill()
    # Either the directory went first and the write failed, or the file was kept.
    assert not (area / "m").exists() or (area / "m" / "file").exists() or not list((area / "m").iterdir())


def test_a_busy_mount_stays_with_its_path_mount53(area: Path, either: LinuxMounter) -> None:
    (area / "m").mkdir()
    either.mount("tmpfs", str(area / "m"), "tmpfs")
    fd = os.open(area / "m", os.O_RDONLY)
    try:
        with pytest.raises(UnmountError, match=f"process {os.getpid()}"):
            cleanup_mount_point(str(area / "m"), either, extensive=True)
        assert either.is_mount_point(str(area / "m"))
    finally:
        os.close(fd)
    cleanup_mount_point(str(area / "m"), either, extensive=True)


def test_stacked_mounts_go_one_per_call_mount54(area: Path, either: LinuxMounter) -> None:
    (area / "m").mkdir()
    for _ in range(2):
        either.mount("tmpfs", str(area / "m"), "tmpfs")
    with pytest.raises(StillMountedError):
        cleanup_mount_point(str(area / "m"), either, extensive=True)
    assert either.is_mount_point(str(area / "m"))
    cleanup_mount_point(str(area / "m"), either, extensive=True)
    assert not (area / "m").exists()


@pytest.mark.parametrize("extensive", [True, False])
def test_br64_a_dead_mount_goes_with_either(extensive: bool, area: Path, either: LinuxMounter, fuse: Callable) -> None:
    fuse(area / "m").kill()
    cleanup_mount_point(str(area / "m"), either, extensive)
    assert not os.path.lexists(area / "m")


def test_what_a_link_leads_to_is_not_unmounted(area: Path, either: LinuxMounter) -> None:
    (area / "m").mkdir()
    either.mount("tmpfs", str(area / "m"), "tmpfs")
    (area / "link").symlink_to("m")
    cleanup_mount_point(str(area / "link"), either, extensive=True)
    assert not os.path.lexists(area / "link")
    assert either.is_mount_point(str(area / "m"))


def test_the_form_with_force_mount55(area: Path, either: LinuxMounter) -> None:
    (area / "m").mkdir()
    either.mount("tmpfs", str(area / "m"), "tmpfs")
    cleanup_mount_point_with_force(str(area / "m"), either, timeout=10)
    assert not (area / "m").exists()


def test_a_path_that_cannot_be_looked_at_is_an_error_mount50(area: Path, either: LinuxMounter) -> None:
    os.symlink("loop", area / "loop")
    with pytest.raises(MountError, match="Error checking path"):
        cleanup_mount_point(str(area / "loop" / "x"), either)
