"""The controller's side of volumes, without gRPC: create, delete, publish, and what each refuses."""

from __future__ import annotations

import os

import pytest

from volumehost_loop_driver.errors import (
    AlreadyExistsError,
    DriverError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
)
from volumehost_loop_driver.records import Capability, Settings, Source
from volumehost_loop_driver.volumes import Wanted

pytestmark = pytest.mark.root
MiB = 1 << 20


def files(parts) -> list[str]:
    return os.listdir(parts.state.volumes.directory)


def test_creating_twice_gives_the_same_volume_wire13(parts) -> None:
    wanted = Wanted("claim", required=10 * MiB, fs_type="ext4")
    first = parts.volumes.create(wanted)
    assert parts.volumes.create(wanted) == first
    assert parts.volumes.create(Wanted("claim", required=5 * MiB, limit=20 * MiB, fs_type="ext4")) == first
    assert first.size == 10 * MiB
    assert len(files(parts)) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"required": 20 * MiB},
        {"limit": 5 * MiB, "required": 0},
        {"fs_type": "xfs"},
        {"fs_type": ""},
        {"thick": True},
        {"settings": Settings(read_ahead_kib=4)},
        {"source": Source(volume_id="vol-x")},
    ],
)
def test_another_volume_of_the_same_name_is_refused(parts, other) -> None:
    fields = {"required": 10 * MiB, "fs_type": "ext4"}
    parts.volumes.create(Wanted("claim", **fields))
    with pytest.raises(AlreadyExistsError, match="'claim'"):
        parts.volumes.create(Wanted("claim", **{**fields, **other}))


def test_changed_settings_do_not_make_it_another_volume(parts) -> None:
    wanted = Wanted("claim", required=10 * MiB, fs_type="ext4", settings=Settings(read_ahead_kib=4))
    record = parts.volumes.create(wanted)
    parts.volumes.modify(record.id, Settings(read_ahead_kib=8))
    assert parts.volumes.create(wanted).id == record.id


def test_small_volumes_get_what_their_filesystem_needs(parts) -> None:
    assert parts.volumes.create(Wanted("a", required=1, fs_type="xfs")).size == 300 * MiB
    assert parts.volumes.create(Wanted("b", required=1, fs_type="")).size == 4096
    with pytest.raises(OutOfRangeError, match="300Mi"):
        parts.volumes.create(Wanted("c", required=1, limit=200 * MiB, fs_type="xfs"))


def test_deleting_twice_succeeds_and_leaves_nothing(parts) -> None:
    id = parts.create()
    parts.volumes.delete(id)
    parts.volumes.delete(id)
    parts.volumes.delete("never was")
    assert files(parts) == []


def test_a_configured_capacity_is_kept(make_parts) -> None:
    parts = make_parts(capacity=20 * MiB)
    first = parts.create("one", 12 * MiB)
    with pytest.raises(ResourceExhaustedError, match="--capacity"):
        parts.create("two", 12 * MiB)
    with pytest.raises(OutOfRangeError, match="--capacity"):
        parts.volumes.expand(first, 24 * MiB, 0)
    assert parts.state.volume(first).size == 12 * MiB
    parts.volumes.delete(first)
    parts.create("two", 12 * MiB)


def test_a_volume_is_published_to_this_node_alone(parts) -> None:
    id = parts.create()
    with pytest.raises(NotFoundError, match="node-2"):
        parts.volumes.publish(id, "node-2", read_only=False)
    with pytest.raises(NotFoundError, match="no such volume"):
        parts.volumes.publish("none", "node-1", read_only=False)
    assert parts.volumes.publish(id, "node-1", read_only=True).published_node == "node-1"
    parts.volumes.publish(id, "node-1", read_only=True)
    with pytest.raises(AlreadyExistsError, match="read-only"):
        parts.volumes.publish(id, "node-1", read_only=False)
    with pytest.raises(FailedPreconditionError, match="published to the node node-1"):
        parts.volumes.publish(id, "node-2", read_only=True)
    with pytest.raises(FailedPreconditionError, match="unpublish"):
        parts.volumes.delete(id)
    parts.volumes.unpublish(id, "node-2")
    assert parts.state.volume(id).published_node == "node-1", "it was not there"
    parts.volumes.unpublish(id, "")
    parts.volumes.unpublish(id, "node-1")
    parts.volumes.unpublish("none", "node-1")
    parts.volumes.delete(id)


def test_what_is_staged_is_neither_unpublished_nor_deleted_br46(parts) -> None:
    id = parts.create()
    parts.volumes.publish(id, "node-1", read_only=False)
    parts.staging.stage(id, parts.directory("stage"), parts.WRITER)
    with pytest.raises(FailedPreconditionError, match="in use at"):
        parts.volumes.unpublish(id, "node-1")
    parts.staging.unstage(id, parts.path("stage"))
    parts.volumes.unpublish(id, "node-1")
    parts.volumes.delete(id)


def test_a_raw_volume_that_is_staged_is_not_deleted(parts) -> None:
    id = parts.staged(capability=parts.BLOCK)
    with pytest.raises(FailedPreconditionError):
        parts.volumes.delete(id)
    parts.tear_down(id)


def test_what_somebody_unmounted_by_hand_can_be_deleted(parts) -> None:
    id = parts.staged()
    parts.state.mounter.unmount(parts.path("stage-one"))
    parts.volumes.delete(id)
    assert parts.state.node.get(id) is None


def test_conditions_of_an_image(parts) -> None:
    id = parts.create()
    record = parts.state.volume(id)
    assert parts.volumes.condition(record) == ""
    os.truncate(parts.image(id), 4096)
    assert "it should be" in parts.volumes.condition(record)
    with pytest.raises(DriverError, match="the rest of its data is lost"):
        parts.staging.stage(id, parts.directory("stage"), parts.WRITER)
    os.unlink(parts.image(id))
    assert "is missing" in parts.volumes.condition(record)
    with pytest.raises(DriverError, match="is missing"):
        parts.staging.stage(id, parts.directory("stage"), parts.WRITER)
    parts.volumes.delete(id)


def test_expanding(parts) -> None:
    id = parts.create(size=8 * MiB)
    assert parts.volumes.expand(id, 8 * MiB, 0).size == 8 * MiB
    assert parts.volumes.expand(id, 1, 0).size == 8 * MiB, "it is that large"
    assert parts.volumes.expand(id, 12 * MiB + 1, 0).size == 12 * MiB + 4096
    assert os.stat(parts.image(id)).st_size == 12 * MiB + 4096
    with pytest.raises(OutOfRangeError):
        parts.volumes.expand(id, 0, 8 * MiB)
    with pytest.raises(NotFoundError):
        parts.volumes.expand("none", 1, 0)


def test_an_expansion_that_was_cut_short_is_made_good(parts) -> None:
    id = parts.create(size=8 * MiB)
    os.truncate(parts.image(id), 12 * MiB)
    assert parts.volumes.expand(id, 10 * MiB, 0).size == 12 * MiB
    assert parts.state.volume(id).size == 12 * MiB


@pytest.mark.parametrize(("fs_type", "size"), [("ext4", 8 * MiB), ("xfs", 304 * MiB)])
def test_a_thick_volume_has_its_blocks_and_keeps_having_them(parts, fs_type, size) -> None:
    id = parts.volumes.create(Wanted("thick", required=size, fs_type=fs_type, thick=True)).id
    parts.volumes.expand(id, size + 8 * MiB, 0)
    status = parts.state.images.status(parts.state.volume(id).key)
    assert status.allocated >= size + 8 * MiB
    capability = Capability(block=False, mode="SINGLE_NODE_WRITER", fs_type=fs_type)
    parts.staging.stage(id, parts.directory("stage"), capability)
    status = parts.state.images.status(parts.state.volume(id).key)
    assert status.allocated >= size + 8 * MiB, "formatting keeps them"
    parts.tear_down(id)


@pytest.mark.parametrize("handle", ["../../etc", "/", "a/b", "^", "..", "v" * 4096, "\udcff", "\n", "vol-\0"])
def test_hostile_handles_are_handles_of_nothing(parts, handle) -> None:
    parts.volumes.delete(handle)
    parts.volumes.unpublish(handle, "node-1")
    parts.snapshots.delete(handle)
    parts.staging.unstage(handle, parts.directory("stage"))
    with pytest.raises(NotFoundError) as caught:
        parts.staging.stage(handle, parts.directory("stage"), parts.WRITER)
    assert len(str(caught.value)) < 1000
    with pytest.raises(NotFoundError):
        parts.volumes.publish(handle, "node-1", read_only=False)


def test_hostile_names_name_no_file(parts) -> None:
    for name in ("../../escape", "/etc/passwd", "a\nb", "x" * 4096):
        parts.create(name)
    assert all(entry.endswith((".img", ".json")) and "/" not in entry for entry in files(parts))
    assert not os.path.exists(parts.path("escape.img"))
