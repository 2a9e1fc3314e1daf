"""kill -9 of a real process at every named step; the next manager converges and nothing leaks (BR-55 to -58, BR-61)."""

import contextlib
import os
import subprocess

import pytest

from volumehost.node.status.recorded import read_status

pytestmark = pytest.mark.root

MOUNT_STEPS = ["plugin", "check", "journal", "set-up", "mark-mounted"]
UNMOUNT_STEPS = ["plugin", "journal", "clean-subpaths", "tear-down", "mark-unmounted"]

# Each of the pod's four volumes takes each step once: the first, one in the middle, the last.
COUNTS = [1, 3, 4]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("step", MOUNT_STEPS)
def test_killed_while_mounting_then_mounted(drive, make_pod, manager, mounts, nothing_left, step, count):
    pod = make_pod()
    assert drive("mount", pod, "volume_mount", step, count) == -9
    node = manager()
    status = node.mount_pod(pod, timeout=30)
    assert status.ready
    cache = next(volume for volume in status.volumes if volume.volume == "cache")
    assert mounts() == [cache.path]
    node.unmount_pod("web", timeout=30)
    nothing_left()
    assert node.status() == []


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("step", MOUNT_STEPS)
def test_killed_while_mounting_then_unmounted(drive, make_pod, manager, nothing_left, step, count):
    pod = make_pod()
    assert drive("mount", pod, "volume_mount", step, count) == -9
    node = manager()
    node.unmount_pod("web", timeout=30)
    nothing_left()
    assert node.status() == []


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("step", UNMOUNT_STEPS)
def test_killed_while_unmounting_the_next_manager_completes_it(
    drive, make_pod, manager, nothing_left, until, step, count
):
    pod = make_pod()
    assert drive("mount", pod) == 0
    assert drive("unmount", pod, "volume_unmount", step, count) == -9
    node = manager()
    until(lambda: node.status() == [])
    nothing_left()


@pytest.mark.parametrize("step", UNMOUNT_STEPS)
def test_killed_while_unmounting_the_command_can_be_repeated(drive, make_pod, nothing_left, root, step):
    pod = make_pod()
    assert drive("mount", pod) == 0
    assert drive("unmount", pod, "volume_unmount", step, 2) == -9
    read_status(root)
    assert drive("unmount", pod) == 0
    nothing_left()
    assert read_status(root).pods == ()


def test_killed_again_and_again_it_converges(drive, make_pod, manager, nothing_left):
    pod = make_pod()
    for step in MOUNT_STEPS:
        assert drive("mount", pod, "volume_mount", step, 2) == -9
    assert drive("mount", pod) == 0
    for step in UNMOUNT_STEPS[:3]:
        assert drive("unmount", pod, "volume_unmount", step, 1) == -9
    assert drive("unmount", pod) == 0
    nothing_left()


def test_what_was_written_before_the_kill_is_there_after_it(drive, make_pod, manager, nothing_left, holder):
    pod = make_pod()
    process = holder(pod)
    with_paths = {volume.volume: volume.path for volume in _volumes(manager)}
    for name in ("scratch", "cache"):
        with open(f"{with_paths[name]}/kept", "w") as file:
            file.write(name)
    process.kill()
    process.wait()
    node = manager()
    node.mount_pod(pod, timeout=30)
    for name in ("scratch", "cache"):
        with open(f"{with_paths[name]}/kept") as file:
            assert file.read() == name
    node.unmount_pod("web", timeout=30)
    nothing_left()


def _volumes(manager):
    (pod,) = read_status(manager(enter=False)._settings.root_dir).pods
    return pod.volumes


def test_br51_a_pod_that_was_deleted_stays_mounted_until_the_word_that_it_ended(
    holder, make_pod, manager, mounts, nothing_left
):
    from volumehost.api.objects import Pod

    pod = make_pod()
    process = holder(pod)
    process.kill()
    process.wait()
    with manager(enter=False) as node:
        node.api.delete(Pod, "web", "default")
        assert node.api.get(Pod, "web", "default").metadata.deletion_timestamp
    with manager(enter=False) as node:
        assert len(mounts()) == 1
        states = {volume.state for volume in node.status()[0].volumes}
        assert states == {"mounted"}
        node.unmount_pod("web", timeout=30)
    nothing_left()


def test_the_journal_torn_by_the_kill_is_repaired(drive, make_pod, manager, root, nothing_left):
    pod = make_pod()
    assert drive("mount", pod, "volume_mount", "mark-mounted", 4) == -9
    path = f"{root}/volumes.journal"
    os.truncate(path, os.path.getsize(path) - 7)
    node = manager()
    assert node.mount_pod(pod, timeout=30).ready
    node.unmount_pod("web", timeout=30)
    nothing_left()


def test_killed_at_any_moment(start, make_pod, manager, nothing_left):
    """Not between steps but anywhere: after ever longer times, from before the first mount to after the last."""
    pod = make_pod()
    for milliseconds in range(40, 400, 30):
        for action in ("mount", "unmount"):
            process = start(action, pod)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(milliseconds / 1000)
            process.kill()
            process.wait()
    with manager(enter=False) as node:
        assert node.mount_pod(pod, timeout=30).ready if _may_mount(node) else True
        for status in node.status():
            node.unmount_pod(status.name, timeout=30)
        assert node.status() == []
    nothing_left()


def _may_mount(node):
    """Whether the pod is not just being unmounted, which a former process was told to do."""
    return not any(status.state == "unmounting" for status in node.status())
