"""Publishing: a staged volume shown at targets, read-only too, as a directory or a device (CSI-WIRE-17, -18)."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from volumehost.errors import RemovalError
from volumehost_loop_driver.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError
from volumehost_loop_driver.records import Capability

pytestmark = pytest.mark.root
MiB = 1 << 20


def publish(parts, id: str, target: str, capability: Capability | None = None, *, read_only: bool = False) -> None:
    capability = capability or parts.MULTI
    parts.publishing.publish(id, parts.path("stage-one"), parts.path(target), capability, read_only=read_only)


def test_targets_show_the_same_volume_and_are_removed(parts) -> None:
    id = parts.staged(capability=parts.MULTI)
    publish(parts, id, "a")
    publish(parts, id, "b", read_only=True)
    with open(parts.path("a/file"), "w", encoding="utf-8") as file:
        file.write("shared")
    with open(parts.path("b/file"), encoding="utf-8") as file:
        assert file.read() == "shared"
    with pytest.raises(OSError, match="Read-only") as caught, open(parts.path("b/other"), "wb"):
        pass
    assert caught.value.errno == errno.EROFS
    for _ in range(2):
        parts.publishing.unpublish(id, parts.path("a"))
        assert not os.path.exists(parts.path("a"))
    with open(parts.path("b/file"), encoding="utf-8") as file:
        assert file.read() == "shared"
    parts.tear_down(id)


def test_repeating_is_success_and_other_arguments_are_refused_wire17(parts) -> None:
    id = parts.staged(capability=parts.MULTI)
    for _ in range(2):
        publish(parts, id, "a")
    assert len([entry for entry in parts.state.mounter.list_mounts() if entry.path == parts.path("a")]) == 1
    with pytest.raises(AlreadyExistsError, match="writable"):
        publish(parts, id, "a", read_only=True)
    with pytest.raises(AlreadyExistsError):
        publish(parts, id, "a", parts.WRITER)
    parts.tear_down(id)


@pytest.mark.parametrize("mode", ["SINGLE_NODE_WRITER", "SINGLE_NODE_SINGLE_WRITER", "SINGLE_NODE_READER_ONLY"])
def test_a_second_target_needs_the_mode_for_it_wire17(parts, mode) -> None:
    id = parts.staged(capability=parts.MULTI)
    capability = Capability(block=False, mode=mode, fs_type="ext4")
    publish(parts, id, "a", capability)
    with pytest.raises(FailedPreconditionError, match="allows one path"):
        publish(parts, id, "b", capability)
    assert not os.path.exists(parts.path("b"))
    parts.publishing.unpublish(id, parts.path("a"))
    publish(parts, id, "b", capability)
    parts.tear_down(id)


def test_a_target_that_somebody_unmounted_no_longer_counts(parts) -> None:
    id = parts.staged()
    publish(parts, id, "a", parts.WRITER)
    parts.state.mounter.unmount(parts.path("a"))
    publish(parts, id, "b", parts.WRITER)
    publish_again = parts.state.node.get(id).publications
    assert parts.path("b") in publish_again
    parts.publishing.unpublish(id, parts.path("a"))
    parts.tear_down(id)


def test_nothing_is_published_without_being_staged_there(parts) -> None:
    id = parts.create()
    with pytest.raises(FailedPreconditionError, match="not staged"):
        publish(parts, id, "a")
    parts.staging.stage(id, parts.directory("stage-one"), parts.MULTI)
    with pytest.raises(FailedPreconditionError, match="not staged at"):
        parts.publishing.publish(id, parts.directory("elsewhere"), parts.path("a"), parts.MULTI)
    with pytest.raises(FailedPreconditionError, match="as a filesystem"):
        publish(parts, id, "a", parts.BLOCK)
    with pytest.raises(NotFoundError):
        publish(parts, "none", "a")
    with pytest.raises(FailedPreconditionError, match="directory of the target"):
        publish(parts, id, "no/such/a")
    parts.tear_down(id)


def test_what_is_in_the_way_is_not_covered(parts) -> None:
    id = parts.staged(capability=parts.MULTI)
    with open(parts.path("file"), "wb"):
        pass
    os.symlink(parts.directory("real"), parts.path("link"))
    for target in ("file", "link"):
        with pytest.raises(FailedPreconditionError, match="not a directory"):
            publish(parts, id, target)
    with open(os.path.join(parts.directory("full"), "file"), "wb"):
        pass
    with pytest.raises(FailedPreconditionError, match="would be hidden"):
        publish(parts, id, "full")
    parts.state.mounter.mount("tmpfs", parts.directory("taken"), "tmpfs")
    with pytest.raises(FailedPreconditionError, match="something else"):
        publish(parts, id, "taken")
    with pytest.raises(FailedPreconditionError, match="something else"):
        parts.publishing.unpublish(id, parts.path("taken"))
    with pytest.raises(NotFoundError):
        parts.publishing.unpublish("none", parts.path("taken"))
    parts.state.mounter.unmount(parts.path("taken"))
    parts.tear_down(id)


@pytest.mark.parametrize("kind", ["directory", "device"])
def test_a_failed_mount_leaves_nothing_behind(parts, kind) -> None:
    capability = parts.MULTI if kind == "directory" else parts.BLOCK
    id = parts.staged(capability=capability)

    def fail() -> None:
        raise OSError(5, "Input/output error")

    parts.at_step["publish:remembered"] = fail
    with pytest.raises(OSError, match="Input/output"):
        publish(parts, id, "a", capability, read_only=True)
    assert not os.path.lexists(parts.path("a"))
    assert parts.state.node.get(id).publications == {}
    publish(parts, id, "a", capability, read_only=True)
    parts.tear_down(id)


def test_unpublishing_what_is_nobodys_succeeds(parts) -> None:
    parts.publishing.unpublish("none", parts.path("missing"))
    parts.publishing.unpublish("none", parts.directory("there"))
    assert os.path.isdir(parts.path("there")), "the volume is unknown, so the directory is not ours"


def test_files_below_a_target_that_was_not_mounted_are_kept_br70(parts) -> None:
    id = parts.staged()
    publish(parts, id, "a", parts.WRITER)
    parts.state.mounter.unmount(parts.path("a"))
    with open(parts.path("a/stray"), "wb"):
        pass
    with pytest.raises(RemovalError, match="stray"):
        parts.publishing.unpublish(id, parts.path("a"))
    assert os.path.exists(parts.path("a/stray"))
    os.unlink(parts.path("a/stray"))
    parts.tear_down(id)


def test_no_path_that_an_unpublish_names_costs_anybody_a_file(parts) -> None:
    id = parts.staged()
    with open(parts.path("precious"), "w", encoding="utf-8") as file:
        file.write("data")
    os.symlink(parts.path("precious"), parts.path("link"))
    os.mkdir(parts.path("full"))
    with open(parts.path("full/file"), "wb"):
        pass
    for name in ("precious", "link", "full"):
        with pytest.raises(RemovalError):
            parts.publishing.unpublish(id, parts.path(name))
        assert os.path.exists(parts.path(name))
    assert os.path.exists(parts.path("full/file"))
    parts.tear_down(id)


def test_the_group_of_a_pod_is_given_the_volume(parts) -> None:
    id = parts.staged(capability=parts.MULTI)
    with open(parts.path("stage-one/file"), "wb"):
        pass
    for group in (5001, 5002):
        capability = Capability(block=False, mode="SINGLE_NODE_MULTI_WRITER", fs_type="ext4", mount_group=group)
        publish(parts, id, "a", capability)
        parts.publishing.unpublish(id, parts.path("a"))
        publish(parts, id, "a", capability)
        assert os.stat(parts.path("a")).st_gid == group
        assert os.stat(parts.path("a/file")).st_gid == group
        assert os.stat(parts.path("a/file")).st_mode & 0o660 == 0o660
        parts.publishing.unpublish(id, parts.path("a"))
    parts.tear_down(id)


# --- raw block devices ----------------------------------------------------------------------------------------


def test_a_raw_volume_is_a_device_of_its_size(parts) -> None:
    id = parts.staged(capability=parts.BLOCK, size=8 * MiB)
    publish(parts, id, "disk", parts.BLOCK)
    assert stat.S_ISBLK(os.stat(parts.path("disk")).st_mode)
    with open(parts.path("disk"), "r+b", buffering=0) as file:
        assert file.seek(0, os.SEEK_END) == 8 * MiB
        file.seek(MiB)
        file.write(b"raw".ljust(512))
        os.fsync(file.fileno())
    with open(parts.image(id), "rb") as file:
        file.seek(MiB)
        assert file.read(3) == b"raw"
    for _ in range(2):
        parts.publishing.unpublish(id, parts.path("disk"))
        assert not os.path.lexists(parts.path("disk"))
    parts.tear_down(id)


def test_a_read_only_raw_volume_refuses_writes_and_sees_those_of_others(parts) -> None:
    id = parts.staged(capability=parts.BLOCK, size=8 * MiB)
    publish(parts, id, "disk", parts.BLOCK)
    for target in ("reader", "reader-2"):
        publish(parts, id, target, parts.BLOCK, read_only=True)
        publish(parts, id, target, parts.BLOCK, read_only=True)
    with pytest.raises(PermissionError), open(parts.path("reader"), "r+b", buffering=0) as file:
        file.write(bytes(512))
    with open(parts.path("disk"), "r+b", buffering=0) as file:
        file.write(b"new".ljust(512))
        os.fsync(file.fileno())
    with open(parts.path("reader"), "rb") as file:
        assert file.read(3) == b"new"
    with pytest.raises(AlreadyExistsError):
        publish(parts, id, "reader", parts.BLOCK)
    parts.volumes.expand(id, 12 * MiB, 0)
    for target in ("disk", "reader"):
        with open(parts.path(target), "rb") as file:
            assert file.seek(0, os.SEEK_END) == 12 * MiB, target
    parts.publishing.unpublish(id, parts.path("reader"))
    with open(parts.path("reader-2"), "rb") as file:
        assert file.read(3) == b"new", "the other reader keeps its device"
    parts.tear_down(id)


def test_a_raw_volume_for_readers_is_attached_read_only(parts) -> None:
    capability = Capability(block=True, mode="SINGLE_NODE_READER_ONLY")
    id = parts.staged(capability=capability)
    publish(parts, id, "disk", capability)
    with pytest.raises(PermissionError), open(parts.path("disk"), "r+b", buffering=0) as file:
        file.write(bytes(512))
    parts.tear_down(id)
