"""Dead and stopped FUSE filesystems: told from missing ones, never waited for without end (BR-52, BR-64, MOUNT-41)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from volumehost.errors import (
    CorruptedMountError,
    MountError,
    MountTimeoutError,
    UnmountError,
    UnmountTimeoutError,
    is_operation_finished_error,
    is_uncertain_progress_error,
)
from volumehost.mount import syscalls
from volumehost.mount.cleanup import cleanup_mount_point, cleanup_mount_point_with_force
from volumehost.mount.corrupted import is_corrupted_mount
from volumehost.mount.deadline import DeadlineExceededError, DeadlineRunner
from volumehost.mount.hostutil import LinuxHostUtils
from volumehost.mount.mount_point import is_mount_point
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.places import Places
from volumehost.mount.removal import remove_all_one_filesystem
from volumehost.mount.whereabouts import whereabouts
from volumehost.testing.hung import hung_filesystem

pytestmark = pytest.mark.root


def test_a_living_daemon_is_an_ordinary_mount(area: Path, mounter: LinuxMounter, fuse: Callable) -> None:
    fuse(area / "m")
    assert mounter.is_mount_point(str(area / "m"))
    assert Places().exists(str(area / "m"))
    assert next(entry for entry in mounter.list_mounts() if entry.path == str(area / "m")).fs_type == "fuse.test"
    mounter.unmount(str(area / "m"))
    assert not mounter.is_mount_point(str(area / "m"))


def test_br64_a_dead_mount_is_corrupted_and_neither_missing_nor_healthy(
    area: Path, mounter: LinuxMounter, fuse: Callable
) -> None:
    fuse(area / "m").kill()
    assert not os.path.exists(area / "m"), "this is what fools a naive test"
    with pytest.raises(CorruptedMountError, match="does not answer") as caught:
        mounter.is_mount_point(str(area / "m"))
    assert caught.value.errno == errno.ENOTCONN
    assert is_corrupted_mount(caught.value)
    with pytest.raises(OSError, match="not connected"):
        Places().exists(str(area / "m"))
    assert mounter.get_mount_refs(str(area / "m")) == []


def test_br52_many_questions_about_one_hung_mount_hold_one_thread_and_others_are_answered(
    area: Path, tmpfs: Path, until: Callable
) -> None:
    """Whatever is asked, and wherever in it."""
    runner = DeadlineRunner()
    places = Places(runner, answer_seconds=0.02)
    for name in ("hung", "well"):
        (area / name).mkdir()
    with hung_filesystem(area / "hung") as hung:
        for number in range(20):
            with pytest.raises(DeadlineExceededError):
                places.ask(f"{area}/hung/{number}")
            with pytest.raises(DeadlineExceededError):
                places.look(f"{area}/hung/{number}/below")
        assert len(runner.in_progress()) == 1
        places._answer_seconds = 30.0  # enough for who answers, on a machine that is busy
        with hung_filesystem(area / "well") as other:
            other.die()
            with pytest.raises(OSError, match="not connected"):
                places.ask(f"{area}/well/x")
        hung.die()
        until(lambda: runner.in_progress() == [])
        with pytest.raises(OSError, match="not connected") as caught:
            places.ask(f"{area}/hung/1")
        assert caught.value.errno == errno.ENOTCONN


def test_br52_what_is_mounted_in_place_of_a_hung_one_is_asked_at_once(
    area: Path, mounter: LinuxMounter, until: Callable
) -> None:
    runner = DeadlineRunner()
    places = Places(runner, answer_seconds=0.02)
    (area / "m").mkdir()
    (area / "source").mkdir()
    (area / "source" / "file").touch()
    with hung_filesystem(area / "m"):
        for _ in range(3):
            with pytest.raises(DeadlineExceededError):
                places.ask(f"{area}/m/file")
        (helper,) = runner._working
        until(lambda: "of the kernel" in whereabouts(helper.thread))
        places._answer_seconds = 30.0
        syscalls.umount2(str(area / "m"), syscalls.MNT_DETACH)
        syscalls.mount(str(area / "source"), str(area / "m"), "", syscalls.MS_BIND, "")
        assert runner.in_progress(), "the old one still hangs"
        assert places.ask(f"{area}/m/file").st_size == 0
        syscalls.umount2(str(area / "m"), 0)
    until(lambda: runner.in_progress() == [])


@pytest.mark.parametrize("extensive", [True, False])
def test_br64_a_dead_mount_is_cleaned_up_and_can_be_mounted_again(
    extensive: bool, area: Path, mounter: LinuxMounter, fuse: Callable
) -> None:
    fuse(area / "m").kill()
    cleanup_mount_point(str(area / "m"), mounter, extensive)
    assert not (area / "m").exists()
    assert not [entry for entry in mounter.list_mounts() if entry.path == str(area / "m")], "no stacking"
    fuse(area / "m")
    assert mounter.is_mount_point(str(area / "m"))


def test_br62_a_dead_mount_is_not_entered_by_a_removal(area: Path, fuse: Callable) -> None:
    (area / "tree").mkdir()
    (area / "tree" / "file").touch()
    fuse(area / "tree" / "m").kill()
    with pytest.raises(UnmountError, match="it is a mount point"):
        remove_all_one_filesystem(str(area / "tree"))
    assert not (area / "tree" / "file").exists()
    assert os.listdir(area / "tree") == ["m"]


def test_br52_a_stopped_daemon_costs_a_deadline_not_the_caller(
    area: Path, mounter: LinuxMounter, fuse: Callable, until: Callable
) -> None:
    daemon = fuse(area / "m")
    daemon.stop()
    with pytest.raises(CorruptedMountError, match="no answer within 1 s") as caught:
        mounter.is_mount_point(str(area / "m"))
    assert caught.value.errno == errno.ETIMEDOUT
    assert mounter.is_mount_point("/"), "others are not affected"
    daemon.kill()


def test_br52_nothing_of_this_room_waits_for_a_stopped_daemon(
    area: Path, tmpfs: Path, mounter: LinuxMounter, fuse: Callable, until: Callable
) -> None:
    daemon = fuse(area / "m")
    daemon.stop()
    places = Places()
    utils = LinuxHostUtils(mounter, places=places)
    hung = str(area / "m")
    try:
        assert places.look(hung).mount_root is True, "what the kernel knows by itself it tells"
        assert places.resolve(hung) == hung
        places._answer_seconds = 0.2
        for question in (places.ask, places.exists, utils.get_file_type, utils.path_exists, utils.get_owner):
            with pytest.raises(DeadlineExceededError):
                question(hung)
        for question in (places.look, places.resolve, utils.get_file_type):
            with pytest.raises(DeadlineExceededError):
                question(f"{hung}/below")
        with pytest.raises(DeadlineExceededError):
            utils.make_dir(f"{hung}/below")
        # A place of its own still mounts and unmounts.
        (tmpfs / "t").mkdir()
        mounter.mount("tmpfs", str(tmpfs / "t"), "tmpfs")
        mounter.unmount(str(tmpfs / "t"))
        assert any(entry.path == hung for entry in mounter.list_mounts())
    finally:
        daemon.kill()


def test_br52_references_of_a_stopped_mount_come_from_the_table(
    area: Path, mounter: LinuxMounter, fuse: Callable, until: Callable
) -> None:
    """It is not known to be dead, so what else shows it still counts."""
    daemon = fuse(area / "m")
    (area / "other").mkdir()
    mounter.mount(str(area / "m"), str(area / "other"), "", ["bind"])
    daemon.stop()
    try:
        assert mounter.get_mount_refs(str(area / "m")) == [str(area / "other")]
    finally:
        daemon.kill()
    # Now it is, as soon as the call has come back that was stuck.
    until(lambda: mounter.get_mount_refs(str(area / "m")) == [])


def test_br52_an_unmount_that_waits_for_a_stopped_daemon_ends_at_the_deadline(
    area: Path, device: str, mounter: LinuxMounter, fuse: Callable, until: Callable
) -> None:
    daemon = fuse(area / "m", device)
    daemon.stop()
    try:
        with pytest.raises(UnmountTimeoutError, match=r"no answer within 0\.3 s") as caught:
            mounter.unmount(str(area / "m"), timeout=0.3)
        assert is_uncertain_progress_error(caught.value)
        assert not is_operation_finished_error(caught.value)
        assert caught.value.errno == errno.ETIMEDOUT
        # The kernel has taken it out of the tree already: the next attempt finds nothing to do.
        mounter.unmount_with_force(str(area / "m"), timeout=30)
        assert not mounter.is_mount_point(str(area / "m"))
    finally:
        daemon.kill()


def test_br52_mounting_from_or_on_a_stopped_filesystem_ends_at_the_deadline(
    area: Path, fuse: Callable, mounter: LinuxMounter
) -> None:
    daemon = fuse(area / "m")
    (area / "t").mkdir()
    daemon.stop()
    try:
        for source, target in ((area / "m" / "x", area / "t"), (area / "t", area / "m" / "x")):
            with pytest.raises(MountError, match="no answer within") as caught:
                mounter.mount(str(source), str(target), "", ["bind"], timeout=0.2)
            assert isinstance(caught.value, MountTimeoutError)
            assert is_uncertain_progress_error(caught.value), "it may still come about"
            assert caught.value.errno == errno.ETIMEDOUT
    finally:
        daemon.kill()
    assert not mounter.is_mount_point(str(area / "t"))


def test_br52_a_stopped_mount_can_be_cleaned_up_at_once(area: Path, mounter: LinuxMounter, fuse: Callable) -> None:
    daemon = fuse(area / "m")
    daemon.stop()
    cleanup_mount_point(str(area / "m"), mounter, extensive=True)
    assert not (area / "m").exists()


def test_br52_force_ends_the_calls_that_hold_a_stopped_mount_mount15(
    area: Path, mounter: LinuxMounter, fuse: Callable
) -> None:
    fuse(area / "m").stop()
    with pytest.raises(CorruptedMountError):
        mounter.is_mount_point(str(area / "m"))
    # The question is still stuck in the mount, and keeps it busy.
    with pytest.raises(UnmountError, match="by a call that has not come back: stat"):
        mounter.unmount(str(area / "m"))
    cleanup_mount_point_with_force(str(area / "m"), mounter, timeout=30)
    assert not (area / "m").exists()


def test_a_mount_of_another_user_that_root_may_not_see_is_found_in_the_table(area: Path, mounter: LinuxMounter) -> None:
    """EACCES: go on to the table (MOUNT-31)."""

    class Refused(Places):
        def look(self, path: str, *, follow: bool = True):
            if path == str(area / "m"):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return super().look(path, follow=follow)

    (area / "m").mkdir()
    assert not is_mount_point(str(area / "m"), Refused())
    mounter.mount("tmpfs", str(area / "m"), "tmpfs")
    assert is_mount_point(str(area / "m"), Refused())


@pytest.mark.parametrize(
    ("number", "corrupted"),
    [
        (errno.ENOTCONN, True),
        (errno.ESTALE, True),
        (errno.EIO, True),
        (errno.EACCES, True),
        (errno.EHOSTDOWN, True),
        (errno.EWOULDBLOCK, True),
        (errno.ENODEV, True),
        (errno.EPERM, False),
        (errno.ENOENT, False),
        (errno.ENOTDIR, False),
    ],
)
def test_which_errors_mean_a_corrupted_mount_mount41(number: int, corrupted: bool) -> None:
    error = OSError(number, os.strerror(number))
    assert is_corrupted_mount(error) is corrupted
    wrapped = ValueError("wrapped")
    wrapped.__cause__ = error
    assert is_corrupted_mount(wrapped) is corrupted
    assert is_corrupted_mount(None) is False
