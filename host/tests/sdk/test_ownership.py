"""fsGroup ownership on real trees: FSGRP-01 to -09, and a container that swaps entries meanwhile."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from volumehost import Attributes, MounterArgs
from volumehost.errors import OperationStoppedError, OwnershipError
from volumehost.mount.mounter import LinuxMounter
from volumehost.sdk import OwnershipReport, apply_ownership, set_volume_ownership

pytestmark = pytest.mark.root

GROUP = 5000


@dataclass
class Mounter:
    read_only: bool = False

    def get_attributes(self) -> Attributes:
        return Attributes(read_only=self.read_only)


def apply(directory: str, *, read_only: bool = False, **kwargs) -> OwnershipReport:
    return set_volume_ownership(Mounter(read_only), directory, GROUP, **kwargs)


def mode(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def gid(path: str) -> int:
    return os.lstat(path).st_gid


@pytest.fixture
def tree(directory) -> str:
    """A directory with one of everything."""
    path = f"{directory}/volume"
    for directory_path in (path, f"{path}/sub", f"{path}/sub/deep"):
        os.mkdir(directory_path, 0o700)
    Path(path, "file").touch(0o600)
    Path(path, "sub", "script").touch(0o700)
    os.mkfifo(f"{path}/fifo", 0o600)
    os.mknod(f"{path}/device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.symlink("file", f"{path}/link")
    os.symlink("/etc/passwd", f"{path}/sub/outside")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{path}/socket")
    return path


def test_everything_gets_group_and_bits(tree):
    os.chmod(f"{tree}/socket", 0o600)
    report = apply(tree)
    paths = [tree, *(str(path) for path in Path(tree).rglob("*"))]
    assert {gid(path) for path in paths} == {GROUP}
    assert mode(tree) == mode(f"{tree}/sub") == 0o2770
    assert mode(f"{tree}/file") == mode(f"{tree}/fifo") == mode(f"{tree}/device") == mode(f"{tree}/socket") == 0o660
    assert mode(f"{tree}/sub/script") == 0o760
    assert report == OwnershipReport(processed=len(paths), changed=len(paths), failed=0)


def test_a_read_only_volume_gets_reading_bits(tree):
    apply(tree, read_only=True)
    assert mode(f"{tree}/file") == 0o640
    assert mode(f"{tree}/sub") == 0o2750


def test_existing_bits_and_owners_stay(directory):
    """FSGRP-04; setuid and setgid too, which chown takes away."""
    path = f"{directory}/file"
    Path(path).touch()
    os.chown(path, 1234, 4321)
    os.chmod(path, 0o6755)
    apply(directory)
    assert (os.stat(path).st_uid, gid(path), mode(path)) == (1234, GROUP, 0o6775)


def test_links_change_themselves_and_not_what_they_lead_to(tree):
    before = os.stat("/etc/passwd")
    apply(tree)
    assert gid(f"{tree}/sub/outside") == GROUP
    after = os.stat("/etc/passwd")
    assert (after.st_gid, after.st_mode) == (before.st_gid, before.st_mode)


def test_without_a_group_nothing_happens(tree):
    calls = []
    assert set_volume_ownership(Mounter(), tree, None, on_complete=calls.append) == OwnershipReport()
    assert calls == []
    assert mode(tree) == 0o700


def test_group_zero_is_a_group(directory):
    os.chown(directory, -1, GROUP)
    set_volume_ownership(Mounter(), directory, 0)
    assert gid(directory) == 0


@pytest.mark.parametrize("policy", [None, "Always", "Nonsense"])
def test_other_policies_always_walk(tree, policy):
    apply(tree)
    Path(tree, "new").touch(0o600)
    os.chown(f"{tree}/new", -1, 0)
    report = apply(tree, policy=policy)
    assert report.processed > 5
    assert report.changed == 1
    assert gid(f"{tree}/new") == GROUP


class TestOnRootMismatch:
    def test_a_right_root_is_left_alone(self, tree):
        apply(tree)
        os.chown(f"{tree}/file", -1, 0)
        calls = []
        assert apply(tree, policy="OnRootMismatch", on_complete=calls.append) == OwnershipReport()
        assert gid(f"{tree}/file") == 0
        assert calls == []

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda path: os.chown(path, -1, 0),
            lambda path: os.chmod(path, 0o770),
            lambda path: os.chmod(path, 0o2750),
            lambda path: os.chmod(path, 0o2760),
        ],
        ids=["group", "setgid", "write", "execute"],
    )
    def test_any_mismatch_of_the_root_walks(self, tree, spoil):
        apply(tree)
        spoil(tree)
        os.chown(f"{tree}/file", -1, 0)
        apply(tree, policy="OnRootMismatch")
        assert gid(f"{tree}/file") == GROUP
        assert mode(tree) & 0o2770 == 0o2770

    def test_a_read_only_volume_needs_less(self, tree):
        apply(tree, read_only=True)
        assert apply(tree, read_only=True, policy="OnRootMismatch").processed == 0
        assert apply(tree, policy="OnRootMismatch").processed > 0

    def test_a_root_that_is_no_directory_walks(self, directory):
        Path(directory, "file").touch()
        apply(f"{directory}/file")
        assert apply(f"{directory}/file", policy="OnRootMismatch").processed == 1


def test_the_root_is_last_so_that_a_killed_walk_is_repeated(tree):
    """FSGRP-06."""
    with pytest.raises(OwnershipError):
        _apply_until_unreadable(tree)
    assert gid(tree) != GROUP
    apply(tree, policy="OnRootMismatch")
    assert gid(f"{tree}/sub/script") == GROUP


def _apply_until_unreadable(tree: str) -> None:
    """A directory inside of the tree that answers nothing: a FUSE filesystem whose daemon is gone."""
    from volumehost.mount import syscalls

    os.mkdir(f"{tree}/sub/dead")
    fd = os.open("/dev/fuse", os.O_RDWR)
    syscalls.mount("fuse", f"{tree}/sub/dead", "fuse", 0, f"fd={fd},rootmode=40000,user_id=0,group_id=0")
    os.close(fd)
    try:
        apply(tree)
    finally:
        LinuxMounter().unmount(f"{tree}/sub/dead")


def test_the_callback_gets_the_outcome(tree):
    outcomes = []
    apply(tree, on_complete=outcomes.append)
    with pytest.raises(OwnershipError) as caught:
        apply(f"{tree}/missing", on_complete=outcomes.append)
    assert outcomes == [None, caught.value]
    assert "missing" in str(caught.value)


def test_a_file_as_volume(directory):
    Path(directory, "file").touch(0o600)
    assert apply(f"{directory}/file").changed == 1
    assert (gid(f"{directory}/file"), mode(f"{directory}/file")) == (GROUP, 0o660)


def test_a_link_as_root_is_not_followed(tree, directory):
    os.symlink(tree, f"{directory}/link")
    apply(f"{directory}/link")
    assert gid(tree) == 0


def test_entries_that_refuse_are_counted_and_the_rest_is_done(tree, caplog):
    """FSGRP-08, improved: the number is reported."""
    subprocess.run(["chattr", "+i", f"{tree}/file"], check=True, timeout=60)
    try:
        report = apply(tree)
    finally:
        subprocess.run(["chattr", "-i", f"{tree}/file"], check=True, timeout=60)
    assert report.failed == 1
    assert gid(f"{tree}/sub/script") == gid(tree) == GROUP
    assert gid(f"{tree}/file") == 0
    assert "1 of 10 entries refused the change" in caplog.text


@pytest.mark.parametrize("kind", ["bind", "tmpfs"])
def test_what_is_mounted_inside_is_not_the_volumes(tree, directory, kind):
    os.mkdir(f"{directory}/data")
    os.mkdir(f"{tree}/mounted")
    if kind == "bind":
        LinuxMounter().mount(f"{directory}/data", f"{tree}/mounted", options=["bind"])
    else:
        LinuxMounter().mount("tmpfs", f"{tree}/mounted", "tmpfs", ["size=1M", "mode=700"])
    Path(tree, "mounted", "precious").touch(0o600)
    try:
        report = apply(tree)
        assert report.mounts_skipped == 1
        assert (gid(f"{tree}/mounted/precious"), mode(f"{tree}/mounted/precious")) == (0, 0o600)
        assert gid(f"{tree}/mounted") == 0
        assert gid(f"{tree}/sub") == GROUP
    finally:
        LinuxMounter().unmount(f"{tree}/mounted")


def test_a_tree_that_is_right_costs_no_change(tree):
    apply(tree)
    before = {path: os.lstat(path).st_ctime_ns for path in Path(tree).rglob("*")}
    report = apply(tree)
    assert report.changed == 0
    assert {path: os.lstat(path).st_ctime_ns for path in Path(tree).rglob("*")} == before


def test_an_entry_that_became_a_link_after_it_was_listed(tree, directory):
    """The moment that the race below only sometimes hits."""
    from volumehost.sdk.ownership import _OwnershipWalk

    Path(directory, "victim").touch(0o600)
    os.symlink(f"{directory}/victim", f"{tree}/swapped")
    walk = _OwnershipWalk(tree, GROUP, False)
    fd = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        walk._open_and_apply(fd, "swapped")
    finally:
        os.close(fd)
    assert (gid(f"{directory}/victim"), mode(f"{directory}/victim")) == (0, 0o600)
    assert gid(f"{tree}/swapped") == GROUP


def test_a_container_that_swaps_files_for_links_gains_nothing(tree, directory):
    victim = f"{directory}/victim"
    Path(victim).touch(0o600)
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            for name in ("file", "sub/script"):
                path = f"{tree}/{name}"
                os.unlink(path)
                os.symlink(victim, path)
                os.unlink(path)
                Path(path).touch(0o600)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(300):
            try:
                apply(tree)
            except OwnershipError:
                continue  # an entry vanished between the listing and the look at it
    finally:
        stop.set()
        thread.join()
    assert (gid(victim), mode(victim)) == (0, 0o600)


# --- on the way -------------------------------------------------------------------------------------------------------


def test_between_entries_the_caller_learns_how_many_are_done(tree: str) -> None:
    seen: list[tuple[int, int]] = []
    report = apply(tree, between=lambda processed, failed: seen.append((processed, failed)))
    assert [processed for processed, _ in seen] == sorted(processed for processed, _ in seen)
    assert seen[0] == (0, 0)
    assert seen[-1] == (report.processed - 1, 0), "before the root, which is the last"


def test_fsgrp06_a_walk_that_is_ended_on_the_way_does_not_reach_the_root_and_is_made_again(tree: str) -> None:
    def stop(processed: int, failed: int) -> None:
        if processed == 3:
            raise OperationStoppedError("nobody waits for it")

    completed: list[Exception | None] = []
    with pytest.raises(OperationStoppedError):
        apply(tree, between=stop, on_complete=completed.append)
    (error,) = completed
    assert isinstance(error, OperationStoppedError)
    assert gid(tree) != GROUP
    entries = [os.path.join(place, name) for place, dirs, files in os.walk(tree) for name in (*dirs, *files)]
    assert 0 < sum(gid(path) == GROUP for path in entries) < len(entries)
    apply(tree, policy="OnRootMismatch")
    assert all(gid(path) == GROUP for path in (tree, *entries))


# --- for the set-up of a plugin --------------------------------------------------------------------------------


def test_the_host_applies_the_group_where_it_offers_to(tree: str) -> None:
    asked = []
    args = MounterArgs(fs_group=GROUP, volume_ownership_applicator=lambda *each: asked.append(each))
    mounter = Mounter()
    apply_ownership(mounter, tree, args)
    assert asked == [(mounter, tree, args)]
    assert gid(tree) != GROUP


def test_without_an_offer_it_is_done_here(tree: str) -> None:
    completed: list[Exception | None] = []
    args = MounterArgs(fs_group=GROUP, fs_group_change_policy="OnRootMismatch")
    for _ in range(2):
        apply_ownership(Mounter(), tree, args, on_complete=completed.append)
    assert gid(f"{tree}/sub/script") == GROUP
    assert completed == [None], "the second time the root is right"


def test_without_a_group_nobody_does_anything(tree: str) -> None:
    def refuse(*_args: object) -> None:
        raise AssertionError("asked")

    apply_ownership(Mounter(), tree, MounterArgs(volume_ownership_applicator=refuse), on_complete=refuse)
    assert gid(tree) != GROUP
