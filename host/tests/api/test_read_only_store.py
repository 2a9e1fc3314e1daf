from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from volumehost.api.objects import ConfigMap, ObjectMeta, Pod
from volumehost.api.read_only_store import ReadOnlyStore
from volumehost.api.store import EmbeddedStore
from volumehost.errors import ObjectNotFoundError, StoreError
from volumehost.mount.mounter import LinuxMounter


def config(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data={"a": "1"})


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    found = tmp_path / "root %20?#dir"
    found.mkdir()
    return found


@pytest.fixture
def path(directory: Path) -> str:
    """A store with one object, closed."""
    path = str(directory / "store.sqlite3")
    with EmbeddedStore(path) as store:
        store.create(config("one"))
    return path


def names(store: EmbeddedStore) -> list[str]:
    return [each.metadata.name for each in store.list(ConfigMap).items]


def test_a_store_that_is_not_there_is_empty_and_is_not_made(directory: Path) -> None:
    with ReadOnlyStore(str(directory / "absent" / "store.sqlite3")) as store:
        assert store.list(Pod).items == []
        with pytest.raises(ObjectNotFoundError):
            store.get(Pod, "web")
    assert list(directory.iterdir()) == []


def test_it_reads_and_leaves_no_file_behind(path: str, directory: Path) -> None:
    with ReadOnlyStore(path) as store:
        assert names(store) == ["one"]
    assert os.listdir(directory) == ["store.sqlite3"]


def test_it_sees_what_others_write_meanwhile(path: str) -> None:
    with ReadOnlyStore(path) as reader, EmbeddedStore(path) as writer:
        writer.create(config("two"))
        assert names(reader) == ["one", "two"]


def test_every_write_is_refused(path: str) -> None:
    with ReadOnlyStore(path) as store:
        for write in (
            lambda: store.create(config("new")),
            lambda: store.replace(config("one")),
            lambda: store.delete(ConfigMap, "one"),
            lambda: store.patch(ConfigMap, "one", {"data": {"a": "2"}}),
        ):
            with pytest.raises(StoreError, match="opened for reading only"):
                write()
    with EmbeddedStore(path) as store:
        assert names(store) == ["one"]


def test_what_is_no_store_is_refused_and_left_alone(directory: Path) -> None:
    path = directory / "store.sqlite3"
    path.write_bytes(b"\0binary junk" * 1000)
    with pytest.raises(StoreError, match="damaged"):
        ReadOnlyStore(str(path))
    assert path.read_bytes() == b"\0binary junk" * 1000
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match="not a regular file"):
        ReadOnlyStore(str(path))


@pytest.fixture
def read_only_directory(directory: Path) -> Iterator[Path]:
    """The directory on a filesystem that is mounted read-only, which its contents survive."""
    mounter = LinuxMounter()
    mounter.mount(str(directory), str(directory), "", ["bind", "ro"])
    yield directory
    mounter.unmount(str(directory))


@pytest.mark.root
def test_it_reads_on_a_read_only_filesystem(path: str, read_only_directory: Path) -> None:
    with ReadOnlyStore(path) as store:
        assert names(store) == ["one"]
    assert os.listdir(read_only_directory) == ["store.sqlite3"]


@pytest.mark.root
def test_on_a_read_only_filesystem_it_also_reads_what_a_killed_process_left_in_the_log(directory: Path) -> None:
    path = str(directory / "store.sqlite3")
    child = os.fork()
    if child == 0:  # the child dies without closing its store
        EmbeddedStore(path).create(config("logged"))
        os._exit(0)
    os.waitpid(child, 0)
    assert (directory / "store.sqlite3-wal").stat().st_size
    mounter = LinuxMounter()
    mounter.mount(str(directory), str(directory), "", ["bind", "ro"])
    try:
        with ReadOnlyStore(path) as store:
            assert names(store) == ["logged"]
    finally:
        mounter.unmount(str(directory))


# --- untouched ------------------------------------------------------------------------------------------------------


def test_untouched_it_changes_no_file_while_others_write(path: str, directory: Path) -> None:
    """Not the shared memory, no lock in it, no time of access: as if nobody had looked."""
    with EmbeddedStore(path) as writer:
        writer.create(config("two"))

        def state() -> dict[str, tuple[bytes, int, int]]:
            found = {each.name: (each.read_bytes(), each.stat()) for each in directory.iterdir()}
            return {name: (data, status.st_mtime_ns, status.st_ctime_ns) for name, (data, status) in found.items()}

        before = state()
        assert set(before) == {"store.sqlite3", "store.sqlite3-wal", "store.sqlite3-shm"}
        with ReadOnlyStore(path, untouched=True) as reader:
            assert names(reader) == ["one", "two"]
            assert state() == before
        assert state() == before
    with ReadOnlyStore(path, untouched=True) as reader:
        assert names(reader) == ["one", "two"]
    assert os.listdir(directory) == ["store.sqlite3"]


def test_untouched_it_is_of_one_moment_while_others_write_and_checkpoint(path: str) -> None:
    """Every reading has the objects up to some number and no other."""
    stop = threading.Event()

    def write() -> None:
        number = 0
        with EmbeddedStore(path) as store:
            while not stop.is_set():
                number += 1
                store.create(config(f"n{number:06}"))
                if number % 5 == 0:
                    with store._database.read() as connection:
                        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = 0
        for _ in range(30):
            with ReadOnlyStore(path, untouched=True) as reader:
                found = sorted(names(reader))
            assert found == [*(f"n{number:06}" for number in range(1, len(found))), "one"]
            assert len(found) >= seen
            seen = len(found)
    finally:
        stop.set()
        writer.join()
