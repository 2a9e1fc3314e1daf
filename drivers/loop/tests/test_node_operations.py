"""Expansion on the node, figures and conditions, settings of a device in use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from volumehost.mount import loop
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.privileges import may_grow_mounted_ext
from volumehost_loop_driver.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
)
from volumehost_loop_driver.records import Capability, Settings, VolumeRecord
from volumehost_loop_driver.volumes import Wanted

pytestmark = pytest.mark.root
MiB = 1 << 20


def size_of(path: str) -> int:
    found = os.statvfs(path)
    return found.f_blocks * found.f_frsize


# --- expansion ------------------------------------------------------------------------------------------------


needs_resource = pytest.mark.skipif(
    not may_grow_mounted_ext(), reason="growing a mounted ext4 filesystem needs CAP_SYS_RESOURCE"
)


@pytest.mark.parametrize(
    ("fs_type", "size"), [pytest.param("ext4", 16 * MiB, marks=needs_resource), ("xfs", 300 * MiB)]
)
def test_a_mounted_filesystem_grows_wire18(parts, fs_type, size) -> None:
    capability = Capability(block=False, mode="SINGLE_NODE_WRITER", fs_type=fs_type)
    id = parts.staged(capability=capability, size=size)
    stage = parts.path("stage-one")
    before = size_of(stage)
    parts.volumes.expand(id, 2 * size, 0)
    assert size_of(stage) == before, "the node grows it"
    for _ in range(2):
        assert parts.staging.expand(id, stage, 2 * size) == 2 * size
    assert size_of(stage) > 1.8 * before
    assert parts.staging.expand(id, stage, 0) == 2 * size
    parts.tear_down(id)


def test_without_the_capability_it_is_told_and_grows_with_the_next_staging(parts) -> None:
    if may_grow_mounted_ext():
        pytest.skip("this process has CAP_SYS_RESOURCE")
    id = parts.staged()
    stage = parts.path("stage-one")
    assert parts.staging.expand(id, stage, 0) == 16 * MiB, "nothing is to do, so nothing is needed"
    parts.volumes.expand(id, 48 * MiB, 0)
    with pytest.raises(FailedPreconditionError, match="CAP_SYS_RESOURCE"):
        parts.staging.expand(id, stage, 0)
    parts.staging.unstage(id, stage)
    parts.staging.stage(id, stage, parts.WRITER)
    assert parts.staging.expand(id, stage, 0) == 48 * MiB
    assert size_of(stage) > 32 * MiB
    parts.tear_down(id)


def test_a_target_is_a_path_of_the_volume_too_and_others_are_not(parts) -> None:
    xfs = Capability(block=False, mode="SINGLE_NODE_WRITER", fs_type="xfs")
    id = parts.staged(capability=xfs, size=300 * MiB)
    parts.publishing.publish(id, parts.path("stage-one"), parts.path("target"), xfs)
    parts.volumes.expand(id, 320 * MiB, 0)
    assert parts.staging.expand(id, parts.path("target"), 320 * MiB) == 320 * MiB
    with pytest.raises(NotFoundError):
        parts.staging.expand(id, parts.path("elsewhere"), 320 * MiB)
    with pytest.raises(NotFoundError):
        parts.staging.expand("none", parts.path("target"), 320 * MiB)
    with pytest.raises(OutOfRangeError, match="controller first"):
        parts.staging.expand(id, parts.path("target"), 321 * MiB)
    parts.tear_down(id)


def test_what_is_not_staged_or_read_only_does_not_grow_wire19(parts) -> None:
    id = parts.create()
    with pytest.raises(FailedPreconditionError, match="not staged"):
        parts.staging.expand(id, parts.path("stage"), 1)
    parts.staging.stage(id, parts.directory("stage"), parts.WRITER)
    parts.staging.unstage(id, parts.path("stage"))
    parts.staging.stage(id, parts.path("stage"), parts.WRITER, read_only=True)
    with pytest.raises(FailedPreconditionError, match="read-only"):
        parts.staging.expand(id, parts.path("stage"), 1)
    parts.tear_down(id)


def test_a_raw_device_shows_its_new_size_at_once(parts) -> None:
    id = parts.staged(capability=parts.BLOCK, size=8 * MiB)
    parts.volumes.expand(id, 12 * MiB, 0)
    with open(parts.state.node.get(id).device, "rb") as file:
        assert file.seek(0, os.SEEK_END) == 12 * MiB
    assert parts.staging.expand(id, parts.path("stage-one"), 12 * MiB) == 12 * MiB
    parts.tear_down(id)


def test_a_volume_expanded_while_it_is_away_has_grown_when_it_is_back(parts) -> None:
    id = parts.staged()
    parts.staging.unstage(id, parts.path("stage-one"))
    parts.volumes.expand(id, 48 * MiB, 0)
    parts.staging.stage(id, parts.path("stage-one"), parts.WRITER)
    assert size_of(parts.path("stage-one")) > 32 * MiB
    parts.tear_down(id)


# --- figures and conditions -----------------------------------------------------------------------------------


def test_figures_of_a_filesystem(parts) -> None:
    id = parts.staged(size=32 * MiB)
    stage = parts.path("stage-one")
    before = parts.stats.of(id, stage)
    with open(f"{stage}/file", "wb") as file:
        file.write(os.urandom(4 * MiB))
        os.fsync(file.fileno())
    after = parts.stats.of(id, stage)
    assert after.condition == ""
    assert after.bytes.total == size_of(stage)
    assert after.bytes.used - before.bytes.used >= 4 * MiB
    assert after.bytes.available <= before.bytes.available - 4 * MiB
    assert after.inodes.used == before.inodes.used + 1
    parts.tear_down(id)


def test_figures_of_a_raw_device_wire21(parts) -> None:
    id = parts.staged(capability=parts.BLOCK, size=8 * MiB)
    stats = parts.stats.of(id, parts.path("stage-one"))
    assert (stats.bytes.total, stats.bytes.used, stats.inodes, stats.condition) == (8 * MiB, 0, None, "")
    with open(parts.image(id), "r+b") as file:
        file.write(os.urandom(MiB))
        os.fsync(file.fileno())
    stats = parts.stats.of(id, parts.path("stage-one"))
    assert MiB <= stats.bytes.used < 2 * MiB
    assert stats.bytes.available == stats.bytes.total - stats.bytes.used
    parts.tear_down(id)


def test_figures_of_what_is_not_there(parts) -> None:
    id = parts.create()
    for handle, path in ((id, parts.path("stage")), ("none", parts.path("stage"))):
        with pytest.raises(NotFoundError):
            parts.stats.of(handle, path)


def test_conditions(parts) -> None:
    id = parts.staged()
    stage, image = parts.path("stage-one"), parts.image(id)

    def condition() -> str:
        return parts.stats.of(id, stage).condition

    os.rename(image, image + "-away")
    assert "is missing" in condition()
    os.rename(image + "-away", image)
    assert condition() == ""
    with open(image, "r+b") as file:
        file.truncate(8 * MiB)
        assert "it should be" in condition()
        file.truncate(16 * MiB)
    LinuxMounter().mount("", stage, "", ["remount", "ro"])
    assert "read-only" in condition()
    LinuxMounter().mount("", stage, "", ["remount", "rw"])
    assert condition() == ""
    LinuxMounter().unmount(stage)
    assert "nothing is mounted" in condition()
    loop.detach(parts.state.node.get(id).device)
    assert "is gone" in condition()
    parts.volumes.delete(id)


# --- settings -------------------------------------------------------------------------------------------------


def queue(device: str, name: str) -> str:
    return Path(f"/sys/block/{os.path.basename(device)}/{name}").read_text(encoding="ascii").strip()


def test_settings_reach_the_device_now_and_when_it_is_attached_again(parts) -> None:
    id = parts.staged()
    device = parts.state.node.get(id).device
    parts.volumes.modify(id, Settings(read_ahead_kib=512, direct_io=True))
    assert (queue(device, "queue/read_ahead_kb"), queue(device, "loop/dio")) == ("512", "1")
    parts.volumes.modify(id, Settings(read_ahead_kib=64))
    assert (queue(device, "queue/read_ahead_kb"), queue(device, "loop/dio")) == ("64", "0")
    parts.volumes.modify(id, Settings(read_ahead_kib=32, direct_io=True))
    parts.staging.unstage(id, parts.path("stage-one"))
    parts.staging.stage(id, parts.path("stage-one"), parts.WRITER)
    device = parts.state.node.get(id).device
    assert (queue(device, "queue/read_ahead_kb"), queue(device, "loop/dio")) == ("32", "1")
    parts.tear_down(id)


def test_settings_of_a_volume_that_is_not_attached_wait_for_it(parts) -> None:
    id = parts.volumes.create(Wanted("one", required=16 * MiB, fs_type="ext4", settings=Settings(direct_io=True))).id
    parts.volumes.modify(id, Settings(read_ahead_kib=8))
    parts.staging.stage(id, parts.directory("stage"), parts.WRITER)
    device = parts.state.node.get(id).device
    assert (queue(device, "queue/read_ahead_kb"), queue(device, "loop/dio")) == ("8", "0")
    with pytest.raises(NotFoundError):
        parts.volumes.modify("none", Settings())
    parts.tear_down(id)


def test_direct_io_is_refused_where_the_disk_has_none(place, make_parts) -> None:
    os.mkdir(f"{place}/memory")
    LinuxMounter().mount("ramfs", f"{place}/memory", "ramfs")
    try:
        parts = make_parts(data="memory/data")
        parts.state.images.create("k", MiB, thick=False)
        parts.state.volumes.put(VolumeRecord(id="v", key="k", name="n", size=MiB))
        with pytest.raises(InvalidArgumentError, match="direct I/O"):
            parts.volumes.modify("v", Settings(direct_io=True))
        assert parts.state.volume("v").settings == Settings()
        parts.close()
    finally:
        LinuxMounter().unmount(f"{place}/memory")
