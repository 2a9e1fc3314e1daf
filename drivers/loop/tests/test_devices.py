"""Loop devices: never leaked, never somebody else's; and what a start finds after a crash or a reboot."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from volumehost.errors import RootDirectoryLockedError
from volumehost.mount import loop
from volumehost_csi_kit.server import AbortedError
from volumehost_loop_driver import state as state_module
from volumehost_loop_driver.freezing import frozen
from volumehost_loop_driver.state import DriverState

pytestmark = pytest.mark.root
MiB = 1 << 20


def test_a_device_of_somebody_else_on_our_image_is_left_alone(parts) -> None:
    id = parts.create()
    foreign = loop.attach(parts.image(id))
    try:
        parts.staging.stage(id, parts.directory("stage"), parts.WRITER)
        assert parts.state.node.get(id).device != foreign
        parts.staging.unstage(id, parts.path("stage"))
        again = parts.reopened()
        again.volumes.delete(id)
        assert loop.label_of(foreign), "still attached"
    finally:
        loop.detach(foreign)


def test_a_number_that_was_given_to_somebody_else_is_not_detached(parts, place) -> None:
    id = parts.staged(capability=parts.BLOCK)
    device = parts.state.node.get(id).device
    loop.detach(device)
    other = os.path.join(place, "other")
    with open(other, "wb") as file:
        file.truncate(MiB)
    subprocess.run(["losetup", device, other], check=True)
    try:
        parts.staging.unstage(id, parts.path("stage-one"))
        parts.volumes.delete(id)
        assert loop.is_attached_to(device, other)
    finally:
        loop.detach(device)


def test_devices_of_images_that_are_gone_are_detached_by_the_next_start(parts) -> None:
    id = parts.staged(capability=parts.BLOCK)
    staged, record = parts.state.node.get(id), parts.state.volume(id)
    os.unlink(parts.image(id))
    parts.state.volumes.remove(record)
    again = parts.reopened()
    assert loop.label_of(staged.device) == ""
    assert again.state.node.all() == []


def test_the_next_process_takes_over_what_is_staged_and_published(parts) -> None:
    id = parts.staged(capability=parts.BLOCK)
    parts.publishing.publish(id, parts.path("stage-one"), parts.path("disk"), parts.BLOCK, read_only=True)
    before = loop.list_attached()
    again = parts.reopened()
    again.staging.stage(id, parts.path("stage-one"), parts.BLOCK)
    again.publishing.publish(id, parts.path("stage-one"), parts.path("disk"), parts.BLOCK, read_only=True)
    ours = [item.device for item in before if "loop.csi.volumehost" in item.label]
    assert set(ours) <= {item.device for item in loop.list_attached()}
    again.tear_down(id)


def test_after_a_reboot_everything_is_set_up_afresh_br58(parts) -> None:
    id = parts.staged()
    parts.publishing.publish(id, parts.path("stage-one"), parts.path("target"), parts.WRITER)
    with open(parts.path("stage-one/file"), "wb"):
        pass
    parts.state.mounter.unmount(parts.path("target"))
    parts.state.mounter.unmount(parts.path("stage-one"))
    parts.state.devices.detach(parts.state.volume(id).key)
    again = parts.reopened(boot_id="boot-2")
    assert again.state.node.get(id) is None
    assert os.listdir(parts.path("data/node")) == ["boot-2"]
    again.staging.stage(id, parts.path("stage-one"), parts.WRITER)
    again.publishing.publish(id, parts.path("stage-one"), parts.path("target"), parts.WRITER)
    assert os.path.exists(parts.path("target/file"))
    again.tear_down(id)


def test_after_a_reboot_what_is_left_of_a_target_is_removed(parts) -> None:
    id = parts.staged()
    parts.publishing.publish(id, parts.path("stage-one"), parts.path("target"), parts.WRITER)
    parts.state.mounter.unmount(parts.path("target"))
    parts.state.mounter.unmount(parts.path("stage-one"))
    parts.state.devices.detach(parts.state.volume(id).key)
    again = parts.reopened(boot_id="boot-2")
    again.publishing.unpublish(id, parts.path("target"))
    assert not os.path.exists(parts.path("target"))
    again.staging.unstage(id, parts.path("stage-one"))
    again.volumes.delete(id)


@pytest.mark.parametrize("what", ["a directory", "a link to nowhere"])
def test_br56_what_is_no_file_among_the_node_state_holds_up_no_start(parts, what) -> None:
    id = parts.staged()
    (name,) = os.listdir(parts.state.node._directory)
    path = f"{parts.state.node._directory}/{name}"
    os.unlink(path)
    os.mkdir(path) if what == "a directory" else os.symlink("/nonexistent/file", path)
    again = parts.reopened()
    assert not os.path.lexists(path)
    again.staging.unstage(id, parts.path("stage-one"))
    again.volumes.delete(id)


def test_br56_a_volume_whose_record_cannot_be_read_is_unpublished_and_unstaged(parts) -> None:
    id = parts.staged()
    parts.publishing.publish(id, parts.path("stage-one"), parts.path("target"), parts.WRITER)
    key = parts.state.volume(id).key
    with open(f"{parts.state.volumes.directory}/{key}.json", "w") as file:
        file.write("{")
    again = parts.reopened()
    again.publishing.unpublish(id, parts.path("target"))
    again.staging.unstage(id, parts.path("stage-one"))
    assert again.state.node.all() == []
    assert os.path.exists(parts.image_of(key))


def test_node_state_that_cannot_be_read_is_asked_of_the_kernel(parts) -> None:
    id = parts.staged()
    directory = parts.path("data/node/boot-1")
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "wb") as file:
            file.write(b"{torn")
    again = parts.reopened()
    again.staging.unstage(id, parts.path("stage-one"))
    assert not os.path.ismount(parts.path("stage-one"))
    again.volumes.delete(id)


def test_a_filesystem_that_stayed_frozen_is_thawed_by_the_next_start(parts) -> None:
    id = parts.staged()
    subprocess.run(["fsfreeze", "--freeze", parts.path("stage-one")], check=True)
    staged = parts.state.node.get(id)
    parts.state.node.put(type(staged)(**{**{f: getattr(staged, f) for f in staged.__struct_fields__}, "frozen": True}))
    again = parts.reopened()
    with open(parts.path("stage-one/file"), "wb"):
        pass
    assert not again.state.node.get(id).frozen
    again.tear_down(id)


def test_thawing_is_certain_and_a_second_freeze_is_told(parts) -> None:
    id = parts.staged()
    stage = parts.path("stage-one")
    with pytest.raises(ZeroDivisionError), frozen(stage):
        raise ZeroDivisionError
    with open(f"{stage}/file", "wb"):
        pass
    subprocess.run(["fsfreeze", "--freeze", stage], check=True)
    with pytest.raises(Exception, match="somebody else has frozen it"), frozen(stage):
        pass
    subprocess.run(["fsfreeze", "--unfreeze", stage], check=True)
    parts.tear_down(id)


def test_one_process_works_on_a_data_directory_at_a_time(parts, monkeypatch) -> None:
    monkeypatch.setattr(state_module, "_LOCK_SECONDS", 0.0)
    with pytest.raises(RootDirectoryLockedError, match="another loop driver"):
        DriverState(parts.path("data"), "node-1")


def test_one_call_at_a_time_for_a_volume_others_side_by_side_wire14(parts) -> None:
    one, two = parts.create("one"), parts.create("two")
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        inside.set()
        leave.wait(30)

    parts.at_step["stage:attached"] = hold
    thread = threading.Thread(target=parts.staging.stage, args=(one, parts.directory("stage"), parts.BLOCK))
    thread.start()
    assert inside.wait(30)
    with pytest.raises(AbortedError, match="pending"):
        parts.volumes.delete(one, 0.01)
    parts.volumes.delete(two, 0.01)
    leave.set()
    thread.join(30)
    parts.tear_down(one)


def test_many_threads_on_one_volume_come_one_after_another(parts) -> None:
    id = parts.create()
    failures: list[BaseException] = []
    paths = [parts.directory("stage")]

    def work() -> None:
        try:
            for _ in range(5):
                parts.staging.stage(id, paths[0], parts.WRITER)
                parts.staging.unstage(id, paths[0])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert parts.state.device(parts.state.volume(id)) is None
