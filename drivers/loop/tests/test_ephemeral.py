"""Inline ephemeral volumes: made when they are published, gone when they are unpublished (CSI-EPH rules)."""

from __future__ import annotations

import os

import pytest

from volumehost_loop_driver.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from volumehost_loop_driver.records import Capability

pytestmark = pytest.mark.root
MiB = 1 << 20
ID = "csi-0123abcd/../odd"


def test_it_lives_as_long_as_its_target_eph04(parts) -> None:
    for _ in range(2):
        parts.ephemeral.publish(ID, parts.path("target"), parts.WRITER, 16 * MiB)
        with open(parts.path("target/file"), "ab") as file:
            file.write(b"x")
    assert os.path.getsize(parts.path("target/file")) == 2, "repeating keeps what is there"
    stats = parts.stats.of(ID, parts.path("target"))
    assert 8 * MiB < stats.bytes.total <= 16 * MiB
    assert stats.condition == ""
    for _ in range(2):
        parts.publishing.unpublish(ID, parts.path("target"))
    assert not os.path.exists(parts.path("target"))
    assert os.listdir(parts.state.volumes.directory) == []
    assert parts.state.node.all() == []


def test_read_only_and_group(parts) -> None:
    capability = Capability(block=False, mode="SINGLE_NODE_WRITER", fs_type="ext4", mount_group=777)
    parts.ephemeral.publish("a", parts.path("a"), capability, MiB)
    assert os.stat(parts.path("a")).st_gid == 777
    parts.ephemeral.publish("b", parts.path("b"), parts.WRITER, MiB, read_only=True)
    with pytest.raises(OSError, match="Read-only"), open(parts.path("b/file"), "wb"):
        pass
    for name in ("a", "b"):
        parts.publishing.unpublish(name, parts.path(name))


def test_what_is_refused(parts, make_parts) -> None:
    with pytest.raises(InvalidArgumentError, match="filesystem"):
        parts.ephemeral.publish(ID, parts.path("target"), parts.BLOCK, MiB)
    persistent = parts.create()
    with pytest.raises(AlreadyExistsError, match="not ephemeral"):
        parts.ephemeral.publish(persistent, parts.path("target"), parts.WRITER, MiB)
    parts.ephemeral.publish(ID, parts.path("target"), parts.WRITER, MiB)
    with pytest.raises(FailedPreconditionError, match="published at"):
        parts.ephemeral.publish(ID, parts.path("other"), parts.WRITER, MiB)
    with pytest.raises(AlreadyExistsError):
        parts.ephemeral.publish(ID, parts.path("target"), parts.WRITER, MiB, read_only=True)
    parts.publishing.unpublish(ID, parts.path("target"))
    small = make_parts(capacity=MiB, data="small")
    with pytest.raises(ResourceExhaustedError):
        small.ephemeral.publish(ID, parts.path("target"), parts.WRITER, 2 * MiB)


def test_a_failure_can_be_repeated_and_undone(parts) -> None:
    wrong = Capability(block=False, mode="SINGLE_NODE_WRITER", fs_type="ext4", mount_flags=("acme=1",))
    with pytest.raises(Exception, match="acme"):
        parts.ephemeral.publish(ID, parts.path("target"), wrong, 4 * MiB)
    assert os.listdir(parts.state.volumes.directory) == [], "a volume that nobody saw is not kept"
    assert not os.path.exists(parts.path("target"))
    parts.publishing.unpublish(ID, parts.path("target"))
    parts.ephemeral.publish(ID, parts.path("target"), parts.WRITER, 4 * MiB)
    parts.publishing.unpublish(ID, parts.path("target"))


def test_br56_one_that_is_mounted_is_known_again_when_the_node_state_of_it_is_lost(parts) -> None:
    parts.ephemeral.publish(ID, parts.path("target"), parts.WRITER, 4 * MiB)
    with open(parts.path("target/kept"), "w") as file:
        file.write("content")
    before = [mount.mount_id for mount in parts.state.mounter.list_mounts() if mount.path == parts.path("target")]
    (name,) = os.listdir(parts.path("data/node/boot-1"))
    os.unlink(parts.path(f"data/node/boot-1/{name}"))
    again = parts.reopened()
    again.ephemeral.publish(ID, parts.path("target"), parts.WRITER, 4 * MiB)
    assert os.path.exists(parts.path("target/kept"))
    after = [mount.mount_id for mount in again.state.mounter.list_mounts() if mount.path == parts.path("target")]
    assert after == before
    again.publishing.unpublish(ID, parts.path("target"))
    assert again.state.node.all() == []


def test_br56_one_whose_record_cannot_be_read_is_taken_away_and_its_image_is_left_alone(parts) -> None:
    parts.ephemeral.publish(ID, parts.path("target"), parts.WRITER, 4 * MiB)
    key = parts.state.volumes.get(ID).key
    directory = parts.state.volumes.directory
    with open(f"{directory}/{key}.json", "w") as file:
        file.write("[]")
    again = parts.reopened()
    with pytest.raises(FailedPreconditionError, match="cannot be read"):
        again.ephemeral.publish(ID, parts.path("target"), parts.WRITER, 4 * MiB)
    for _ in range(2):
        again.publishing.unpublish(ID, parts.path("target"))
    assert not os.path.exists(parts.path("target"))
    assert again.state.node.all() == []
    assert sorted(os.listdir(directory)) == [f"{key}.img", f"{key}.json"]


def test_unpublishing_it_where_it_is_not_deletes_nothing(parts) -> None:
    parts.ephemeral.publish(ID, parts.path("target"), parts.WRITER, 4 * MiB)
    parts.publishing.unpublish(ID, parts.path("elsewhere"))
    assert os.path.ismount(parts.path("target"))
    parts.publishing.unpublish(ID, parts.path("target"))


def test_after_a_reboot_it_is_mounted_again_with_its_data(parts) -> None:
    parts.ephemeral.publish(ID, parts.path("target"), parts.WRITER, 4 * MiB)
    with open(parts.path("target/file"), "wb"):
        pass
    parts.state.mounter.unmount(parts.path("target"))
    parts.state.devices.detach(parts.state.volume(ID).key)
    again = parts.reopened(boot_id="boot-2")
    again.ephemeral.publish(ID, parts.path("target"), parts.WRITER, 4 * MiB)
    assert os.path.exists(parts.path("target/file"))
    again.publishing.unpublish(ID, parts.path("target"))
    assert not os.path.exists(parts.path("target"))
