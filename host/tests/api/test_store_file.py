"""The store's file: private, checked when it is opened, never harmed when it cannot be used."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from volumehost.api.embedded.history import HistoryLimits
from volumehost.api.embedded.tables import MIGRATIONS, SCHEMA_VERSION, bring_up_to_date
from volumehost.api.objects import ConfigMap, ObjectMeta, Secret
from volumehost.api.store import EmbeddedStore
from volumehost.errors import ObjectNotFoundError, StoreError
from volumehost.mount import syscalls
from volumehost.mount.mounter import LinuxMounter


def config_map(name: str, size: int = 0) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data={"fill": "x" * size} if size else {})


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "root dir" / "store.sqlite3")


def test_file_and_directory_are_private(path: str) -> None:
    old = os.umask(0)
    try:
        with EmbeddedStore(path) as store:
            store.create(Secret(metadata=ObjectMeta(name="s")))
            files = {
                name: stat.S_IMODE(os.stat(os.path.join(os.path.dirname(path), name)).st_mode)
                for name in os.listdir(os.path.dirname(path))
            }
            assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o750
    finally:
        os.umask(old)
    assert files.keys() == {"store.sqlite3", "store.sqlite3-wal", "store.sqlite3-shm"}
    assert set(files.values()) == {0o600}


def test_a_file_open_to_others_is_closed_to_them(path: str, caplog: pytest.LogCaptureFixture) -> None:
    EmbeddedStore(path).close()
    os.chmod(path, 0o644)
    with caplog.at_level(logging.WARNING):
        EmbeddedStore(path).close()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert "made private" in caplog.text


def test_objects_outlive_the_process_that_made_them(path: str) -> None:
    with EmbeddedStore(path) as store:
        uid = store.create(config_map("c")).metadata.uid
    with EmbeddedStore(path) as store:
        assert store.get(ConfigMap, "c").metadata.uid == uid


def test_every_write_is_durable_when_it_returns(path: str) -> None:
    with EmbeddedStore(path) as store, store._database.read() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_an_empty_file_is_a_new_store(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    Path(path).touch()
    with EmbeddedStore(path) as store:
        store.create(config_map("c"))


def test_a_closed_store_says_so(path: str) -> None:
    store = EmbeddedStore(path)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="has been closed"):
        store.list(ConfigMap)


def make_directory(path: str) -> None:
    os.mkdir(path)


def make_link(path: str) -> None:
    Path(f"{path}.target").touch()
    os.symlink(f"{path}.target", path)


def make_socket(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)


def make_fifo(path: str) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("make", [make_directory, make_link, make_socket, make_fifo])
def test_what_is_no_file_is_refused(tmp_path: Path, make: Callable[[str], None]) -> None:
    path = str(tmp_path / "store.sqlite3")
    make(path)
    with pytest.raises(StoreError):
        EmbeddedStore(path)
    assert os.path.lexists(path)


def test_a_parent_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").touch()
    with pytest.raises(StoreError, match="open the store"):
        EmbeddedStore(str(tmp_path / "root" / "store.sqlite3"))


# --- damage ------------------------------------------------------------------------------------------------


def read_everything(path: str) -> None:
    with EmbeddedStore(path) as store:
        store.list(ConfigMap)


def test_a_file_that_is_no_database_is_left_alone(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    Path(path).write_bytes(b"this is not a database, it is precious" * 100)
    with pytest.raises(StoreError, match="is damaged") as caught:
        EmbeddedStore(path)
    assert "move it aside" in caught.value.hint
    assert Path(path).read_bytes().startswith(b"this is not a database, it is precious")


def test_a_damaged_file_is_told_and_left_alone(path: str) -> None:
    with EmbeddedStore(path) as store:
        for number in range(50):
            store.create(config_map(f"c{number}", 2000))
    content = bytearray(Path(path).read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    Path(path).write_bytes(content)
    with pytest.raises(StoreError, match="damaged") as caught:
        read_everything(path)
    assert "recover" in caught.value.hint
    assert os.path.getsize(path) == len(content)


def test_a_truncated_file_is_told(path: str) -> None:
    with EmbeddedStore(path) as store:
        for number in range(50):
            store.create(config_map(f"c{number}", 2000))
    os.truncate(path, 5000)
    with pytest.raises(StoreError, match="damaged"):
        read_everything(path)


def test_the_database_of_another_program_is_left_alone(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE precious (x)")
    other.close()
    before = Path(path).read_bytes()
    with pytest.raises(StoreError, match="another program"):
        EmbeddedStore(path)
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("precious",)]
    other.close()
    assert len(Path(path).read_bytes()) == len(before)


def test_a_file_of_a_newer_program_is_left_alone(path: str) -> None:
    EmbeddedStore(path).close()
    with sqlite3.connect(path) as newer:
        newer.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    newer.close()
    with pytest.raises(StoreError, match=f"has version {SCHEMA_VERSION + 1}") as caught:
        EmbeddedStore(path)
    assert "upgrade" in caught.value.hint


def test_an_older_file_is_brought_up_to_date_keeping_what_is_in_it(path: str) -> None:
    with EmbeddedStore(path) as store:
        store.create(config_map("c"))
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        newer = (*MIGRATIONS, "ALTER TABLE objects ADD COLUMN extra TEXT; CREATE TABLE more (x)")
        bring_up_to_date(connection, path, newer)
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(newer)
        assert connection.execute("SELECT name, extra FROM objects").fetchall() == [("c", None)]
        bring_up_to_date(connection, path, newer)
    finally:
        connection.close()


def test_a_migration_that_fails_changes_nothing(path: str) -> None:
    EmbeddedStore(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        with pytest.raises(sqlite3.OperationalError):
            bring_up_to_date(connection, path, (*MIGRATIONS, "CREATE TABLE more (x); NONSENSE"))
        assert connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'more'").fetchone()[0] == 0
    finally:
        connection.close()


def test_a_file_that_was_removed_or_replaced_takes_no_writes(path: str) -> None:
    with EmbeddedStore(path) as store:
        store.create(config_map("c"))
        os.rename(path, f"{path}.old")
        with pytest.raises(StoreError, match="was removed while it was in use"):
            store.create(config_map("lost"))
        shutil.copy(f"{path}.old", path)
        with pytest.raises(StoreError, match="was replaced while it was in use"):
            store.create(config_map("lost"))
        os.rename(f"{path}.old", path)
        store.create(config_map("kept"))


def test_a_lock_of_another_process_is_waited_for_and_then_told(path: str) -> None:
    with EmbeddedStore(path, busy_timeout=0.2) as store:
        other = sqlite3.connect(path, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="locked") as caught:
                store.create(config_map("c"))
            assert "another process" in caught.value.hint
            assert store.list(ConfigMap).items == []
            other.execute("ROLLBACK")
        finally:
            other.close()
        store.create(config_map("c"))


def test_a_child_of_fork_works_on_without_harming_its_parent(path: str) -> None:
    with EmbeddedStore(path) as store:
        store.create(config_map("parent"))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                store.create(config_map("child"))
                store.get(ConfigMap, "parent")
                store.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert store.get(ConfigMap, "child").metadata.name == "child"
        store.create(config_map("later"))


# --- filesystems that refuse -------------------------------------------------------------------------------


@pytest.fixture
def small_filesystem(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of one MiB, unmounted afterwards."""
    target = tmp_path / "small"
    target.mkdir()
    mounter = LinuxMounter()
    mounter.mount("tmpfs", str(target), "tmpfs", ["size=1m"])
    yield target
    mounter.unmount(str(target))


def fill(store: EmbeddedStore) -> None:
    for number in range(100):
        store.create(config_map(f"c{number}", 50_000))


@pytest.mark.root
def test_a_full_disk_is_told_and_nothing_is_lost(small_filesystem: Path) -> None:
    path = str(small_filesystem / "store.sqlite3")
    with EmbeddedStore(path) as store:
        kept = store.create(config_map("kept", 1000))
        with pytest.raises(StoreError) as caught:
            fill(store)
        assert "full" in str(caught.value) or "full" in caught.value.hint
        assert store.get(ConfigMap, "kept") == kept
        count = len(store.list(ConfigMap).items)
    with EmbeddedStore(path) as store:
        assert len(store.list(ConfigMap).items) == count


@pytest.mark.root
def test_a_disk_without_room_for_a_store(small_filesystem: Path) -> None:
    (small_filesystem / "fill").write_bytes(b"x" * (1024 * 1024))
    with pytest.raises(StoreError) as caught:
        EmbeddedStore(str(small_filesystem / "store.sqlite3"))
    assert caught.value.subject.endswith("store.sqlite3")


@pytest.mark.root
def test_a_disk_with_room_but_without_files_is_told_as_full(small_filesystem: Path) -> None:
    path = str(small_filesystem / "store.sqlite3")
    EmbeddedStore(path).close()
    usage = os.statvfs(small_filesystem)
    for more in (0, 2):
        limit = f"size=1m,nr_inodes={usage.f_files - usage.f_ffree + more}"
        syscalls.mount("tmpfs", str(small_filesystem), "tmpfs", syscalls.MS_REMOUNT, limit)
        if more:
            EmbeddedStore(path).close()
        else:
            with pytest.raises(StoreError, match=r"the filesystem is full \(free space, or files"):
                EmbeddedStore(path)


@pytest.mark.root
def test_a_read_only_filesystem_is_told(small_filesystem: Path) -> None:
    path = str(small_filesystem / "store.sqlite3")
    EmbeddedStore(path).close()
    mounter = LinuxMounter()
    mounter.mount(str(small_filesystem), str(small_filesystem), "", ["bind", "ro"])
    try:
        with pytest.raises(StoreError, match=r"[Rr]ead-only"):
            EmbeddedStore(path)
    finally:
        mounter.unmount(str(small_filesystem))


def test_deleted_secrets_leave_no_trace_in_the_file(path: str) -> None:
    marker = b"c2VjcmV0LW1hcmtlci1vZi10aGlzLXRlc3Q="
    with EmbeddedStore(path, history=HistoryLimits(changes=1)) as store:
        store.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": marker.decode()}})
        store.delete(Secret, "s")
        for number in range(200):
            store.create(config_map(f"c{number}"))
        with pytest.raises(ObjectNotFoundError):
            store.get(Secret, "s")
    assert marker not in Path(path).read_bytes()


def test_a_relative_path_stays_where_it_was_opened(tmp_path: Path) -> None:
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        store = EmbeddedStore("store.sqlite3")
    finally:
        os.chdir(here)
    with store:
        store.create(config_map("c"))
    assert (tmp_path / "store.sqlite3").exists()


def test_a_link_is_explained(tmp_path: Path) -> None:
    make_link(str(tmp_path / "store.sqlite3"))
    with pytest.raises(StoreError) as caught:
        EmbeddedStore(str(tmp_path / "store.sqlite3"))
    assert "symbolic link" in caught.value.hint
