"""Snapshots, clones and groups: of one instant, independent of their origin, restored to larger volumes."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from volumehost_loop_driver.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
)
from volumehost_loop_driver.records import Capability, Source
from volumehost_loop_driver.volumes import ANY_FILESYSTEM

pytestmark = pytest.mark.root
MiB = 1 << 20


def put(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def get(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def test_a_snapshot_shows_what_was_written_and_not_even_synced(parts) -> None:
    id = parts.staged()
    put(parts.path("stage-one/file"), "before")
    snapshot = parts.snapshots.create("snap", id)
    put(parts.path("stage-one/file"), "after")
    assert "freeze:frozen" in parts.steps
    parts.tear_down(id)
    restored = parts.staged("two", source=Source(snapshot_id=snapshot.id))
    assert get(parts.path("stage-two/file")) == "before"
    put(parts.path("stage-two/file"), "other")
    parts.tear_down(restored)
    parts.snapshots.delete(snapshot.id)
    parts.snapshots.delete(snapshot.id)
    assert os.listdir(parts.state.snapshots.directory) == []


def test_writers_go_on_after_the_snapshot_and_wait_only_while_it_is_taken(parts) -> None:
    id = parts.staged()
    written = threading.Event()
    during: list[bool] = []

    def write() -> None:
        put(parts.path("stage-one/late"), "late")
        written.set()

    thread = threading.Thread(target=write, daemon=True)

    def at_freeze() -> None:
        thread.start()
        during.append(written.wait(0.2))

    parts.at_step["freeze:frozen"] = at_freeze
    snapshot = parts.snapshots.create("snap", id)
    assert during == [False], "frozen: the writer waits"
    assert written.wait(30)
    thread.join(30)
    restored = parts.staged("two", source=Source(snapshot_id=snapshot.id))
    assert not os.path.exists(parts.path("stage-two/late"))
    parts.tear_down(restored)
    parts.tear_down(id)


def test_a_failed_copy_thaws_and_leaves_nothing(parts) -> None:
    id = parts.staged()

    def fail() -> None:
        raise OSError(28, "No space left on device")

    parts.at_step["snapshot:image"] = fail
    with pytest.raises(OSError, match="No space"):
        parts.snapshots.create("snap", id)
    put(parts.path("stage-one/file"), "not frozen")
    assert not parts.state.node.get(id).frozen
    assert parts.snapshots.create("snap", id).size == 16 * MiB
    parts.tear_down(id)


def test_the_same_snapshot_twice_and_another_of_its_name(parts) -> None:
    id, other = parts.create("one"), parts.create("two")
    first = parts.snapshots.create("snap", id)
    assert parts.snapshots.create("snap", id) == first
    with pytest.raises(AlreadyExistsError, match=id):
        parts.snapshots.create("snap", other)
    with pytest.raises(NotFoundError):
        parts.snapshots.create("another", "none")


def test_a_snapshot_counts_against_the_capacity(make_parts) -> None:
    parts = make_parts(capacity=30 * MiB)
    id = parts.create()
    with pytest.raises(ResourceExhaustedError):
        parts.snapshots.create("snap", id)
    assert os.listdir(parts.state.snapshots.directory) == []


def test_a_restored_volume_may_be_larger_and_its_filesystem_grows_when_staged(parts) -> None:
    id = parts.staged(size=16 * MiB)
    snapshot = parts.snapshots.create("snap", id)
    parts.tear_down(id)
    restored = parts.staged("two", size=48 * MiB, source=Source(snapshot_id=snapshot.id))
    found = os.statvfs(parts.path("stage-two"))
    assert found.f_blocks * found.f_frsize > 32 * MiB
    parts.tear_down(restored)
    with pytest.raises(OutOfRangeError, match="16Mi of its source"):
        parts.create("three", 8 * MiB, source=Source(snapshot_id=snapshot.id))
    with pytest.raises(NotFoundError):
        parts.create("four", source=Source(snapshot_id="none"))
    with pytest.raises(NotFoundError):
        parts.create("five", source=Source(volume_id="none"))


def test_xfs_grows_too(parts) -> None:
    xfs = Capability(block=False, mode="SINGLE_NODE_WRITER", fs_type="xfs")
    id = parts.staged(capability=xfs, size=300 * MiB)
    put(parts.path("stage-one/file"), "data")
    clone = parts.staged("two", xfs, 400 * MiB, source=Source(volume_id=id))
    found = os.statvfs(parts.path("stage-two"))
    assert found.f_blocks * found.f_frsize > 310 * MiB
    assert get(parts.path("stage-two/file")) == "data"
    parts.tear_down(clone)
    parts.tear_down(id)


def test_a_copy_has_the_filesystem_of_its_source_unless_another_is_named(parts) -> None:
    id = parts.create("one", 300 * MiB, "xfs")
    snapshot = parts.snapshots.create("snap", id)
    for name, source in (("two", Source(volume_id=id)), ("three", Source(snapshot_id=snapshot.id))):
        copy = parts.create(name, 300 * MiB, ANY_FILESYSTEM, source=source)
        assert parts.create(name, 300 * MiB, ANY_FILESYSTEM, source=source) == copy
        assert parts.state.volume(copy).fs_type == "xfs"
    assert parts.state.volume(parts.create("four", MiB, ANY_FILESYSTEM)).fs_type == "ext4"
    parts.create("raw", MiB, "")
    with pytest.raises(AlreadyExistsError):
        parts.create("raw", MiB, ANY_FILESYSTEM)


def test_a_clone_of_a_raw_volume_has_what_its_user_has_written(parts) -> None:
    id = parts.staged(capability=parts.BLOCK)
    with open(parts.state.node.get(id).device, "r+b") as device:
        device.write(b"in the cache")
        device.flush()
        clone = parts.create("two", fs_type="", source=Source(volume_id=id))
    with open(parts.image(clone), "rb") as file:
        assert file.read(12) == b"in the cache"
    parts.tear_down(id)
    parts.volumes.delete(clone)


def test_where_blocks_can_be_shared_a_snapshot_takes_no_space(place, make_parts) -> None:
    """Reflink: the data directory lies on xfs."""
    image, mount = os.path.join(place, "xfs.img"), os.path.join(place, "xfs")
    with open(image, "wb") as file:
        file.truncate(320 * MiB)
    subprocess.run(["mkfs.xfs", "-qf", "-m", "reflink=1", image], check=True)
    os.mkdir(mount)
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    try:
        parts = make_parts(data="xfs/data")
        id = parts.create(size=128 * MiB, fs_type="")
        with open(parts.image(id), "r+b") as file:
            file.writelines(os.urandom(MiB) for _ in range(100))
            os.fsync(file.fileno())
        before = os.statvfs(mount).f_bfree
        for number in range(5):
            parts.snapshots.create(f"snap-{number}", id)
        clone = parts.create("clone", 128 * MiB, fs_type="", source=Source(volume_id=id))
        taken = (before - os.statvfs(mount).f_bfree) * os.statvfs(mount).f_frsize
        assert taken < 10 * MiB, "six copies of 100 MiB share their blocks"
        with open(parts.image(id), "rb") as one, open(parts.image(clone), "rb") as two:
            assert one.read() == two.read()
        parts.close()
    finally:
        subprocess.run(["umount", mount], check=True)


# --- groups ---------------------------------------------------------------------------------------------------


def test_a_group_shows_one_instant_of_all_its_volumes(parts) -> None:
    ids = [parts.staged("one"), parts.staged("two"), parts.create("three")]
    put(parts.path("stage-one/file"), "1")
    put(parts.path("stage-two/file"), "1")
    group = parts.snapshots.create_group("group", ids)
    assert parts.steps.count("freeze:frozen") == 2
    assert parts.steps.index("snapshot:image") > len(parts.steps) - 1 - parts.steps[::-1].index("freeze:frozen"), (
        "all are frozen before the first is copied"
    )
    assert parts.snapshots.create_group("group", reversed(ids)) == group
    with pytest.raises(AlreadyExistsError):
        parts.snapshots.create_group("group", ids[:2])
    found, snapshots = parts.snapshots.group(group.id)
    assert found == group
    assert {snapshot.source_volume_id for snapshot in snapshots} == set(ids)
    assert {snapshot.group_id for snapshot in snapshots} == {group.id}
    with pytest.raises(InvalidArgumentError, match="belongs to the group"):
        parts.snapshots.delete(snapshots[0].id)
    for _ in range(2):
        parts.snapshots.delete_group(group.id)
    assert os.listdir(parts.state.snapshots.directory) == []
    with pytest.raises(NotFoundError):
        parts.snapshots.group(group.id)
    for id in ids:
        parts.tear_down(id)


def test_half_a_group_is_none(parts) -> None:
    ids = [parts.create("one"), parts.create("two")]
    with pytest.raises(NotFoundError):
        parts.snapshots.create_group("group", [*ids, "vol-zzz"])
    assert os.listdir(parts.state.snapshots.directory) == []


def test_two_groups_of_the_same_volumes_do_not_wait_for_each_other_for_ever(parts) -> None:
    ids = [parts.create(f"{number}", MiB) for number in range(6)]
    results: list[str] = []

    def take(name: str, volumes: list[str]) -> None:
        results.append(parts.snapshots.create_group(name, volumes, 20).id)

    threads = [
        threading.Thread(target=take, args=(f"group-{number}", ids if number % 2 else ids[::-1])) for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(set(results)) == 6
