"""Staging: a device and a filesystem, once; nothing is formatted over; everything is taken back."""

from __future__ import annotations

import os
import subprocess

import pytest

from volumehost.errors import FormatError
from volumehost.mount import loop
from volumehost_loop_driver.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    NotFoundError,
)
from volumehost_loop_driver.records import Capability, Source

pytestmark = pytest.mark.root
MiB = 1 << 20
XFS = Capability(block=False, mode="SINGLE_NODE_WRITER", fs_type="xfs")


def mount_of(parts, path: str):
    return next(entry for entry in parts.state.mounter.list_mounts() if entry.path == path)


def test_a_blank_volume_gets_a_filesystem_of_its_size_and_keeps_its_data(parts) -> None:
    id = parts.staged(size=32 * MiB)
    stage = parts.path("stage-one")
    assert mount_of(parts, stage).fs_type == "ext4"
    found = os.statvfs(stage)
    assert 24 * MiB < found.f_blocks * found.f_frsize <= 32 * MiB
    with open(f"{stage}/file", "w", encoding="utf-8") as file:
        file.write("kept")
    parts.staging.unstage(id, stage)
    assert not os.path.ismount(stage)
    assert parts.state.device(parts.state.volume(id)) is None
    parts.staging.stage(id, stage, parts.WRITER)
    with open(f"{stage}/file", encoding="utf-8") as file:
        assert file.read() == "kept"
    parts.tear_down(id)


def test_the_size_limit_is_real(parts) -> None:
    id = parts.staged(size=8 * MiB)
    with pytest.raises(OSError, match="No space left"), open(parts.path("stage-one/big"), "wb", buffering=0) as file:
        file.writelines(bytes(MiB) for _ in range(9))
    parts.tear_down(id)


def test_staging_twice_changes_nothing_wire13(parts) -> None:
    id = parts.staged()
    before = mount_of(parts, parts.path("stage-one"))
    parts.staging.stage(id, parts.path("stage-one"), parts.WRITER)
    assert mount_of(parts, parts.path("stage-one")) == before
    parts.staging.unstage(id, parts.path("stage-one"))
    parts.staging.unstage(id, parts.path("stage-one"))
    parts.tear_down(id)


def test_another_capability_or_another_path_is_refused_wire19(parts) -> None:
    id = parts.staged()
    with pytest.raises(AlreadyExistsError):
        parts.staging.stage(id, parts.path("stage-one"), parts.MULTI)
    with pytest.raises(AlreadyExistsError):
        parts.staging.stage(id, parts.path("stage-one"), parts.WRITER, read_only=True)
    with pytest.raises(FailedPreconditionError, match="staged at"):
        parts.staging.stage(id, parts.directory("elsewhere"), parts.WRITER)
    parts.staging.unstage(id, parts.path("elsewhere"))
    assert os.path.ismount(parts.path("stage-one")), "unstaging where it is not takes nothing away"
    parts.tear_down(id)


def test_an_unknown_volume(parts) -> None:
    with pytest.raises(NotFoundError):
        parts.staging.stage("none", parts.directory("stage"), parts.WRITER)
    parts.staging.unstage("none", parts.path("stage"))
    parts.state.mounter.mount("tmpfs", parts.path("stage"), "tmpfs")
    with pytest.raises(NotFoundError):
        parts.staging.unstage("none", parts.path("stage"))
    parts.state.mounter.unmount(parts.path("stage"))


def test_a_staging_path_is_made_but_nothing_else_is_mounted_over(parts) -> None:
    id = parts.create()
    parts.staging.stage(id, parts.path("made"), parts.WRITER)
    parts.staging.unstage(id, parts.path("made"))
    parts.state.mounter.mount("tmpfs", parts.path("made"), "tmpfs")
    with pytest.raises(FailedPreconditionError, match="something else is mounted"):
        parts.staging.stage(id, parts.path("made"), parts.WRITER)
    parts.state.mounter.unmount(parts.path("made"))
    with open(parts.path("file"), "wb"):
        pass
    os.symlink(parts.directory("real"), parts.path("link"))
    for path in ("file", "link"):
        with pytest.raises(FailedPreconditionError, match="not a directory"):
            parts.staging.stage(id, parts.path(path), parts.WRITER)


@pytest.mark.parametrize("position", [0, 5000, 16 * MiB - 1])
def test_foreign_data_is_never_formatted_over(parts, position) -> None:
    id = parts.create(fs_type="")
    with open(parts.image(id), "r+b") as file:
        file.seek(position)
        file.write(b"D")
    with pytest.raises(FailedPreconditionError, match="no filesystem"):
        parts.staging.stage(id, parts.directory("stage"), parts.WRITER)
    with open(parts.image(id), "rb") as file:
        file.seek(position)
        assert file.read(1) == b"D"
    assert parts.state.device(parts.state.volume(id)) is None, "nothing stays attached"


def test_another_filesystem_and_a_partition_table_are_left_alone(parts) -> None:
    id = parts.create(fs_type="")
    subprocess.run(["mkswap", "-q", parts.image(id)], check=True, capture_output=True)
    with pytest.raises(FailedPreconditionError, match="swap"):
        parts.staging.stage(id, parts.directory("stage"), parts.WRITER)


def test_a_volume_that_was_written_with_zeros_counts_as_empty(parts) -> None:
    id = parts.create(fs_type="")
    with open(parts.image(id), "r+b") as file:
        file.write(bytes(MiB))
    parts.staging.stage(id, parts.directory("stage"), parts.WRITER)
    parts.tear_down(id)


def test_xfs_and_its_clone_at_once(parts) -> None:
    first = parts.staged("first", XFS, 300 * MiB)
    with open(parts.path("stage-first/file"), "w", encoding="utf-8") as file:
        file.write("data")
    second = parts.staged("second", XFS, 300 * MiB, source=Source(volume_id=first))
    with open(parts.path("stage-second/file"), encoding="utf-8") as file:
        assert file.read() == "data"
    parts.tear_down(first)
    parts.tear_down(second)


def test_mount_flags_reach_the_mount(parts) -> None:
    capability = Capability(block=False, mode="SINGLE_NODE_WRITER", fs_type="ext4", mount_flags=("noatime", "nodev"))
    id = parts.staged(capability=capability)
    assert {"noatime", "nodev"} <= set(mount_of(parts, parts.path("stage-one")).options)
    parts.tear_down(id)


def test_a_failed_mount_leaves_no_device_and_can_be_repeated(parts) -> None:
    id = parts.create()
    wrong = Capability(block=False, mode="SINGLE_NODE_WRITER", fs_type="ext4", mount_flags=("acme=1",))
    for _ in range(2):
        with pytest.raises(Exception, match="acme") as caught:
            parts.staging.stage(id, parts.directory("stage"), wrong)
        assert "mount" in str(caught.value)
    assert parts.state.device(parts.state.volume(id)) is None
    assert parts.state.node.get(id) is None
    parts.staging.stage(id, parts.path("stage"), parts.WRITER)
    parts.tear_down(id)


def test_a_filesystem_with_errors_beyond_repair_is_told_and_untouched(parts) -> None:
    id = parts.staged()
    parts.staging.unstage(id, parts.path("stage-one"))
    with open(parts.image(id), "r+b") as file:
        file.seek(2048)
        file.write(os.urandom(256 * 1024))
    with pytest.raises((FormatError, FailedPreconditionError)):
        parts.staging.stage(id, parts.path("stage-one"), parts.WRITER)
    assert parts.state.device(parts.state.volume(id)) is None


def test_readers_get_a_read_only_mount_and_no_formatting_mount63(parts) -> None:
    reader = Capability(block=False, mode="SINGLE_NODE_READER_ONLY", fs_type="ext4")
    id = parts.create()
    with pytest.raises(FailedPreconditionError, match="not formatted"):
        parts.staging.stage(id, parts.directory("stage"), reader)
    parts.staging.stage(id, parts.path("stage"), parts.WRITER)
    parts.staging.unstage(id, parts.path("stage"))
    for capability, read_only in ((reader, False), (parts.WRITER, True)):
        parts.staging.stage(id, parts.path("stage"), capability, read_only=read_only)
        with pytest.raises(OSError, match="Read-only"), open(parts.path("stage/file"), "wb"):
            pass
        parts.staging.unstage(id, parts.path("stage"))
    parts.volumes.delete(id)


def test_a_journal_is_replayed_also_for_readers(parts) -> None:
    """The filesystem was not unmounted cleanly: a read-only mount needs its device writable."""
    id = parts.staged()
    with open(parts.path("stage-one/file"), "w", encoding="utf-8") as file:
        file.write("synced")
        file.flush()
        os.fsync(file.fileno())
    copy = parts.path("copy")
    with open(parts.image(id), "rb") as source, open(copy, "wb") as target:
        target.write(source.read())
    parts.staging.unstage(id, parts.path("stage-one"))
    os.replace(copy, parts.image(id))
    parts.staging.stage(id, parts.path("stage-one"), parts.WRITER, read_only=True)
    with open(parts.path("stage-one/file"), encoding="utf-8") as file:
        assert file.read() == "synced"
    parts.tear_down(id)


def test_the_group_owns_the_volume_with_setgid(parts) -> None:
    capability = Capability(block=False, mode="SINGLE_NODE_WRITER", fs_type="ext4", mount_group=4242)
    id = parts.staged(capability=capability)
    found = os.stat(parts.path("stage-one"))
    assert found.st_gid == 4242
    assert found.st_mode & 0o2770 == 0o2770
    other = Capability(block=False, mode="SINGLE_NODE_WRITER", fs_type="ext4", mount_group=4243)
    parts.staging.stage(id, parts.path("stage-one"), other)
    assert os.stat(parts.path("stage-one")).st_gid == 4243, "the group is the pod's, and no other use"
    parts.tear_down(id)


def test_a_device_that_is_detached_elsewhere_is_attached_again(parts) -> None:
    id = parts.staged(capability=parts.BLOCK)
    loop.detach(parts.state.node.get(id).device)
    parts.staging.stage(id, parts.path("stage-one"), parts.BLOCK)
    assert parts.state.device(parts.state.volume(id)) == parts.state.node.get(id).device
    parts.tear_down(id)


def test_a_volume_that_is_published_is_not_unstaged_wire15(parts) -> None:
    id = parts.staged()
    parts.publishing.publish(id, parts.path("stage-one"), parts.path("target"), parts.WRITER)
    with pytest.raises(FailedPreconditionError, match="published at"):
        parts.staging.unstage(id, parts.path("stage-one"))
    parts.tear_down(id)


def test_a_filesystem_that_is_still_mounted_is_not_grown_through_its_image(parts) -> None:
    """Somebody has unmounted the staging path, a target still shows the filesystem."""
    id = parts.staged(size=16 * MiB)
    target = parts.path("target")
    parts.publishing.publish(id, parts.path("stage-one"), target, parts.WRITER)
    with open(f"{target}/file", "wb") as file:
        file.write(b"data")
    parts.state.mounter.unmount(parts.path("stage-one"))
    parts.volumes.expand(id, 48 * MiB, 0)
    parts.staging.stage(id, parts.path("stage-one"), parts.WRITER)
    parts.state.mounter.unmount(target)
    os.rmdir(target)
    parts.staging.unstage(id, parts.path("stage-one"))
    check = subprocess.run(["e2fsck", "-fn", parts.image(id)], check=False, capture_output=True, text=True)
    assert check.returncode == 0, check.stdout
    parts.staging.stage(id, parts.path("stage-one"), parts.WRITER)
    with open(parts.path("stage-one/file"), "rb") as file:
        assert file.read() == b"data"
    parts.tear_down(id)
