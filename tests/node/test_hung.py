"""A filesystem whose server does not answer wedges nobody else (BR-52, BR-54)."""

import os
import signal
import subprocess
import sys

import pytest

from volumehost.errors import VolumesFailedError, WaitTimeoutError
from volumehost.node.recorded_status import read_status

pytestmark = pytest.mark.root


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


def test_br52_a_host_path_that_does_not_answer_fails_alone(manager, make_pod, stopped, tmp_path):
    (tmp_path / "remote").mkdir()
    stopped(str(tmp_path / "remote"))
    pod = make_pod(
        {"name": "remote", "hostPath": {"path": str(tmp_path / "remote" / "x"), "type": "Directory"}},
        {"name": "scratch", "emptyDir": {}},
    )
    with manager(enter=False) as node:
        with pytest.raises((WaitTimeoutError, VolumesFailedError)):
            node.mount_pod(pod, timeout=1.0)
        states = {volume.volume: volume.state for volume in node.status()[0].volumes}
        assert states["scratch"] == "mounted"
        assert states["remote"] in ("mounting", "failed")


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
