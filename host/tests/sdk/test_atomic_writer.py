"""The atomic writer: ATOMIC-07 to -23."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from volumehost.errors import PayloadError
from volumehost.sdk import AtomicWriter, FileProjection

GENERATION = re.compile(r"\.\.\d{4}(_\d\d){5}\.[0-9a-z]+")


@pytest.fixture
def target(directory) -> str:
    path = f"{directory}/volume"
    os.mkdir(path)
    return path


def file(data: str, mode: int = 0o644, owner: int | None = None) -> FileProjection:
    return FileProjection(data.encode(), mode, owner)


def write(target: str, set_perms=None, **files: str | FileProjection) -> bool:
    payload = {name.replace("__", "/"): file(data) if isinstance(data, str) else data for name, data in files.items()}
    return AtomicWriter(target).write(payload, set_perms)


def visible(target: str) -> dict[str, str]:
    """What a reader of the volume sees: path to content."""
    found = {}
    for name in os.listdir(target):
        if name.startswith(".."):
            continue
        path = Path(target, name)
        files = [path] if path.is_file() else [below for below in path.rglob("*") if below.is_file()]
        found.update({str(below.relative_to(target)): below.read_text() for below in files})
    return found


def generations(target: str) -> list[str]:
    return [name for name in os.listdir(target) if GENERATION.fullmatch(name)]


def current(target: str) -> str:
    return os.readlink(f"{target}/..data")


class TestUpdates:
    def test_the_first_write(self, target):
        assert write(target, a="1", sub__b="2", sub__deep__c="3")
        assert visible(target) == {"a": "1", "sub/b": "2", "sub/deep/c": "3"}
        assert os.readlink(f"{target}/a") == "..data/a"
        assert os.readlink(f"{target}/sub") == "..data/sub"
        assert [current(target)] == generations(target)
        assert stat.S_IMODE(os.stat(f"{target}/{current(target)}").st_mode) == 0o755

    def test_the_name_has_the_time(self, target):
        AtomicWriter(target, clock=lambda: 0.0).write({"a": file("1")})
        assert current(target).startswith("..1970_01_01_00_00_00.")

    def test_the_same_again_changes_nothing(self, target):
        write(target, a="1", sub__b="2")
        before = current(target)
        assert not write(target, a="1", sub__b="2")
        assert current(target) == before
        assert visible(target) == {"a": "1", "sub/b": "2"}

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ({"a": "1"}, {"a": "2"}),
            ({"a": "1"}, {"a": "12"}),
            ({"a": "1"}, {"a": "1", "b": "2"}),
            ({"a": "1"}, {"a": "1", "sub__b": "2"}),
            ({"a": "1", "b": "2"}, {"a": "1"}),
            ({"a": "1", "sub__b": "2"}, {"a": "1"}),
            ({"a": "1", "sub__b": "2", "sub__c": "3"}, {"a": "1", "sub__c": "3"}),
            ({"a": "1", "sub__deep__b": "2"}, {"a": "1", "other__deep__b": "2"}),
            ({"a": "1", "b": "2"}, {}),
            ({}, {"a": "1"}),
            ({".dot": "1"}, {".dot": "2", ".other__.hidden": "3"}),
            ({"a": "1"}, {"a__b": "2"}),
            ({"a__b": "2"}, {"a": "1"}),
            ({"a__b__c": "2"}, {"a__b": "1"}),
        ],
    )
    def test_from_one_payload_to_another(self, target, before, after):
        assert write(target, **before)
        assert write(target, **after)
        assert visible(target) == {name.replace("__", "/"): data for name, data in after.items()}
        assert len(generations(target)) == 1
        entries = {name for name in os.listdir(target) if not name.startswith("..")}
        assert entries == {name.split("__")[0] for name in after}

    def test_a_write_that_is_refused_leaves_the_old_content(self, target):
        write(target, a="1")
        before = current(target)
        with pytest.raises(PayloadError):
            AtomicWriter(target).write({"a": file("2"), "../b": file("3")})
        assert current(target) == before
        assert visible(target) == {"a": "1"}

    def test_a_target_that_does_not_exist(self, target):
        with pytest.raises(PayloadError, match="does not exist"):
            AtomicWriter(f"{target}/missing")

    def test_a_target_that_is_a_link_is_not_followed(self, target, directory):
        os.symlink(target, f"{directory}/link")
        with pytest.raises(PayloadError, match="Not a directory"):
            write(f"{directory}/link", a="1")
        assert os.listdir(target) == []


class TestModesAndOwners:
    @pytest.mark.parametrize("mode", [0o400, 0o644, 0o777, 0o600, 0o000, 0o4755])
    def test_modes_are_exact_whatever_the_umask(self, target, mode):
        before = os.umask(0o077)
        try:
            write(target, a=file("1", mode), sub__b=file("2", mode))
        finally:
            os.umask(before)
        assert stat.S_IMODE(os.stat(f"{target}/a").st_mode) == mode
        assert stat.S_IMODE(os.stat(f"{target}/sub/b").st_mode) == mode
        assert stat.S_IMODE(os.stat(f"{target}/{current(target)}").st_mode) == 0o755

    @pytest.mark.root
    def test_owners_of_files_and_links(self, target):
        write(target, a=file("1", 0o600, 1234), sub__b=file("2", 0o600, 1234), c="3")
        assert os.stat(f"{target}/a").st_uid == os.lstat(f"{target}/a").st_uid == 1234
        assert os.stat(f"{target}/sub/b").st_uid == os.lstat(f"{target}/sub").st_uid == 1234
        assert os.lstat(f"{target}/c").st_uid == os.geteuid()
        assert os.stat(f"{target}/a").st_gid == os.getegid()

    @pytest.mark.root
    @pytest.mark.parametrize("other", [file("1", 0o640, 1234), file("1", 0o600, 4321)], ids=["mode", "owner"])
    def test_a_change_of_mode_or_owner_alone_is_a_change(self, target, other):
        """ATOMIC-10, improved."""
        write(target, a=file("1", 0o600, 1234))
        assert write(target, a=other)
        status = os.stat(f"{target}/a")
        assert (stat.S_IMODE(status.st_mode), status.st_uid) == (other.mode, other.fs_user)
        assert not write(target, a=other)

    @pytest.mark.root
    def test_bits_of_a_group_are_no_change(self, target):
        """With fsGroup a mode of 0400 ends as 0440 (PAYLOAD-03): no reason to write at each sync (PAYLOAD-05)."""
        from volumehost import Attributes
        from volumehost.sdk import set_volume_ownership

        class ReadOnly:
            def get_attributes(self):
                return Attributes(read_only=True)

        def set_perms(_name):
            set_volume_ownership(ReadOnly(), target, 5000)

        assert write(target, set_perms, a=file("1", 0o400))
        assert stat.S_IMODE(os.stat(f"{target}/a").st_mode) == 0o440
        assert not write(target, set_perms, a=file("1", 0o400))
        assert write(target, set_perms, a=file("1", 0o404))
        assert write(target, set_perms, a=file("1", 0o400))
        assert stat.S_IMODE(os.stat(f"{target}/a").st_mode) == 0o440


class TestSetPerms:
    def test_once_per_publication_on_a_filled_directory_that_nobody_sees(self, target):
        write(target, a="1")
        seen = []

        def set_perms(name):
            seen.append(name)
            assert Path(target, name, "a").read_text() == "2"
            assert Path(target, "a").read_text() == "1"

        assert write(target, set_perms, a="2")
        assert not write(target, set_perms, a="2")
        assert seen == [current(target)]

    def test_its_error_ends_the_write_and_leaves_nothing(self, target):
        write(target, a="1")
        before = current(target)

        def set_perms(_name):
            raise RuntimeError("no")

        with pytest.raises(RuntimeError, match="no"):
            write(target, set_perms, a="2")
        assert current(target) == before
        assert generations(target) == [before]
        assert visible(target) == {"a": "1"}


class TestRepair:
    """What a kill between any two steps leaves, the next write puts right."""

    def test_lost_links(self, target):
        """ATOMIC-08."""
        write(target, a="1", sub__b="2")
        before = current(target)
        os.unlink(f"{target}/a")
        os.unlink(f"{target}/sub")
        assert not write(target, a="1", sub__b="2")
        assert current(target) == before
        assert visible(target) == {"a": "1", "sub/b": "2"}

    def test_a_left_over_temporary_link(self, target):
        """ATOMIC-13."""
        write(target, a="1")
        os.symlink("..nowhere", f"{target}/..data_tmp")
        assert write(target, a="2")
        assert visible(target) == {"a": "2"}
        assert not os.path.lexists(f"{target}/..data_tmp")

    def test_an_unfinished_generation(self, target):
        write(target, a="1")
        os.mkdir(f"{target}/..2020_01_01_00_00_00.12345")
        Path(target, "..2020_01_01_00_00_00.12345", "a").write_text("half")
        assert not write(target, a="1")
        assert generations(target) == [current(target)]

    def test_stale_links_of_a_publication_that_was_cut_short(self, target):
        write(target, a="1", b="2")
        os.symlink("..data/gone", f"{target}/gone")
        assert not write(target, a="1", b="2")
        assert not os.path.lexists(f"{target}/gone")

    def test_a_current_generation_that_vanished(self, target):
        write(target, a="1")
        from volumehost.sdk import remove_all_one_filesystem

        remove_all_one_filesystem(f"{target}/{current(target)}")
        assert write(target, a="1")
        assert visible(target) == {"a": "1"}

    @pytest.mark.parametrize("stop_at", range(1, 26))
    def test_killed_at_any_system_call(self, target, stop_at):
        """A process dies at its n-th change of the volume; readers see one of the two versions, a retry ends it."""
        write(target, a="1", b="1", sub__c="1")
        code = f"""
import os, sys
calls = 0
def watch(event, args):
    global calls
    if event in ("os.mkdir", "os.symlink", "os.rename", "os.remove", "os.rmdir", "os.chmod") or (
        event == "open" and len(args) > 2 and isinstance(args[2], int) and args[2] & os.O_CREAT
    ):
        calls += 1
        if calls == {stop_at}:
            os.kill(os.getpid(), 9)
from volumehost.sdk import AtomicWriter, FileProjection
writer = AtomicWriter({target!r})
files = {{name: FileProjection(b"2", 0o644) for name in ("a", "sub/c", "new")}}
sys.addaudithook(watch)
writer.write(files)
print("finished")
"""
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode in (-9, 0), result.stderr
        versions = {Path(target, "..data", name).read_text() for name in ("a", "sub/c")}
        assert len(versions) == 1
        wanted = {"a": "2", "sub/c": "2", "new": "2"}
        AtomicWriter(target).write({name: file(data) for name, data in wanted.items()})
        assert visible(target) == wanted
        assert generations(target) == [current(target)]
        assert {name for name in os.listdir(target) if name.startswith("..")} == {"..data", current(target)}


def test_readers_through_the_data_link_never_see_a_mixture(target):
    """ATOMIC-18: whoever opens ``..data`` once reads one generation."""
    write(target, a="0", b="0")
    stop = threading.Event()
    mixtures, reads = [], [0]

    def read():
        while not stop.is_set():
            if not os.path.islink(f"{target}/..data"):
                mixtures.append("..data was gone")
            try:
                fd = os.open(f"{target}/..data", os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                continue  # the link was read, and what it led to removed: a newer generation is there
            try:
                contents = set()
                for name in ("a", "b"):
                    below = os.open(name, os.O_RDONLY, dir_fd=fd)
                    contents.add(os.read(below, 10))
                    os.close(below)
                reads[0] += 1
                if len(contents) != 1:
                    mixtures.append(contents)
            except FileNotFoundError:
                pass  # removed while it was read: a newer generation is there
            finally:
                os.close(fd)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        writer = AtomicWriter(target, sync=False)
        version = 0
        while reads[0] < 200 or version < 200:
            version += 1
            writer.write({"a": file(str(version)), "b": file(str(version))})
    finally:
        stop.set()
        thread.join()
    assert mixtures == []


def test_without_sync_the_result_is_the_same(target):
    assert AtomicWriter(target, sync=False).write({"a": file("1"), "sub/b": file("2")})
    assert visible(target) == {"a": "1", "sub/b": "2"}


def test_large_files(target):
    data = os.urandom(3 << 20)
    AtomicWriter(target).write({"big": FileProjection(data, 0o644)})
    assert Path(target, "big").read_bytes() == data
    assert not AtomicWriter(target).write({"big": FileProjection(data, 0o644)})
