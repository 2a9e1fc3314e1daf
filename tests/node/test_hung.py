"""A filesystem whose server does not answer wedges nobody else (BR-52, BR-54)."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from volumehost.errors import VolumesFailedError, WaitTimeoutError
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.mountinfo import read_mount_table
from volumehost.node.status.recorded import read_status
from volumehost.testing.hung import FS_TYPE, hung_filesystem

pytestmark = pytest.mark.root


def _states(node):
    return {volume.volume: volume.state for volume in node.status()[0].volumes}


def _path(status, name):
    (volume,) = [volume for volume in status.volumes if volume.volume == name]
    return volume.path


@pytest.fixture
def stopped(fuse):
    """Mounts a FUSE filesystem at a path and stops its daemon; goes on at the end, so that everything can end."""
    daemons = []

    def mount(path):
        daemon = fuse(path)
        daemon.send_signal(signal.SIGSTOP)
        daemons.append(daemon)
        return daemon

    yield mount
    for daemon in daemons:
        daemon.kill()
        daemon.send_signal(signal.SIGCONT)


def test_br52_a_stopped_fuse_daemon_under_one_pod_leaves_ten_others_alone(manager, make_pod, stopped, tmp_path, until):
    with manager(enter=False) as node:
        status = node.mount_pod(make_pod({"name": "scratch", "emptyDir": {}}, name="stuck"), timeout=30)
        stopped(_path(status, "scratch"))
        with pytest.raises(WaitTimeoutError):
            node.unmount_pod("stuck", timeout=0.3)
        for number in range(10):
            pod = make_pod({"name": "cache", "emptyDir": {"medium": "Memory"}}, name=f"ok-{number}")
            assert node.mount_pod(pod, timeout=30).ready
            node.unmount_pod(f"ok-{number}", timeout=30)
        (left,) = node.status()
        assert left.name == "stuck"
        (volume,) = left.volumes
        assert volume.state in ("unmounting", "failed", "uncertain")
        assert read_status(node.root_dir).pods


def test_br52_a_host_path_that_does_not_answer_fails_alone(manager, make_pod, stopped, tmp_path, until):
    (tmp_path / "remote").mkdir()
    stopped(str(tmp_path / "remote"))
    pod = make_pod(
        {"name": "remote", "hostPath": {"path": str(tmp_path / "remote" / "x"), "type": "Directory"}},
        {"name": "scratch", "emptyDir": {}},
    )
    with manager(enter=False) as node:
        with pytest.raises((WaitTimeoutError, VolumesFailedError)):
            node.mount_pod(pod, timeout=1.0)
        until(lambda: _states(node)["scratch"] == "mounted")
        assert _states(node)["remote"] in ("mounting", "failed")


@pytest.fixture
def impatient():
    """A mounter that does not wait long for an answer."""
    return LinuxMounter(answer_seconds=0.1)


def _mounts_at(path):
    return [mount.fs_type for mount in read_mount_table() if mount.path == path]


@pytest.mark.parametrize("medium", ["", "Memory"])
def test_br64_a_pod_whose_mount_is_dead_goes_and_comes_again(manager, make_pod, nothing_left, impatient, medium):
    pod = make_pod({"name": "scratch", "emptyDir": {"medium": medium}})
    with manager(enter=False, mounter=impatient) as node:
        path = _path(node.mount_pod(pod, timeout=30), "scratch")
        with hung_filesystem(path) as dead:
            dead.die()
            node.unmount_pod("web", timeout=30)
            assert _mounts_at(path) == []
        path = _path(node.mount_pod(pod, timeout=30), "scratch")
        assert _mounts_at(path) == (["tmpfs"] if medium else [])
        node.unmount_pod("web", timeout=30)
    nothing_left()


def test_br64_a_dead_mount_of_a_pod_that_stays_is_set_up_again_without_stacking(manager, make_pod, impatient, until):
    pod = make_pod({"name": "scratch", "emptyDir": {"medium": "Memory"}})
    with manager(enter=False, mounter=impatient) as node:
        status = node.mount_pod(pod, timeout=30)
        path = _path(status, "scratch")
        with hung_filesystem(path) as dead:
            dead.die()
            again = node.mount_pod(pod, timeout=30)
            assert again.ready
            assert _mounts_at(path) == ["tmpfs"]
            assert os.listdir(path) == []
        node.unmount_pod("web", timeout=30)


def test_br52_a_mount_that_only_does_not_answer_is_not_taken_away_from_its_pod(manager, make_pod, impatient):
    """Its server may come back, and whoever uses it waits for that."""
    pod = make_pod({"name": "scratch", "emptyDir": {"medium": "Memory"}})
    with manager(enter=False, mounter=impatient) as node:
        path = _path(node.mount_pod(pod, timeout=30), "scratch")
        with hung_filesystem(path):
            before = set(threading.enumerate())
            for _ in range(5):
                assert node.mount_pod(pod, timeout=30).ready
            assert _mounts_at(path) == ["tmpfs", FS_TYPE]
            assert len(set(threading.enumerate()) - before) <= 3
        node.unmount_pod("web", timeout=30)


EXIT = """
import signal, sys, json
from volumehost import VolumeManager
from volumehost.errors import VolumeHostError
root, manifest = sys.argv[1:]
with VolumeManager(root, exit_grace=1.0) as manager:
    try:
        manager.mount_pod(json.load(open(manifest)), timeout=0.5)
    except VolumeHostError as error:
        print(type(error).__name__, flush=True)
"""


def test_br54_the_process_ends_though_an_operation_hangs(make_pod, stopped, tmp_path, root):
    import json

    (tmp_path / "remote").mkdir()
    stopped(str(tmp_path / "remote"))
    pod = make_pod({"name": "remote", "hostPath": {"path": str(tmp_path / "remote" / "x"), "type": "Directory"}})
    (tmp_path / "pod.json").write_text(json.dumps(pod))
    command = [sys.executable, "-c", EXIT, root, str(tmp_path / "pod.json")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("WaitTimeoutError", "VolumesFailedError")
    assert os.path.isdir(root)
