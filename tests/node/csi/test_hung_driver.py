"""One CSI driver of ten is stopped in its work: the other nine go on, and it is told with its place (BR-52)."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest

from volumehost.errors import WaitTimeoutError
from volumehost.node.status.recorded import read_status
from volumehost_csi_kit.fake import FakeDriver, FakeDriverProcess

pytestmark = pytest.mark.root

NAMES = [f"driver-{number}.csi.example.com" for number in range(10)]
HUNG = NAMES[-1]
#: More volumes of the driver that hangs are wanted than one driver may have workers.
HUNG_PODS = 24


@pytest.fixture
def drivers(sockets, tmp_path):
    """Nine in this process, and the tenth in one of its own."""
    with contextlib.ExitStack() as stack:
        made = {}
        for number, name in enumerate(NAMES):
            endpoint = f"unix://{sockets}/{number}.sock"
            data = tmp_path / f"driver-{number}"
            data.mkdir()
            if name == HUNG:
                made[name] = FakeDriverProcess(endpoint, str(data), name=name, mounts="bind")
            else:
                made[name] = FakeDriver(endpoint, name=name, mounts="bind", data_dir=str(data))
            stack.enter_context(made[name])
        yield made


@pytest.fixture
def node(manager, drivers):
    made = manager(register=False, driver_object=False)
    for name, driver in drivers.items():
        made.drivers.register(name, driver.endpoint)
        spec = {"attachRequired": False, "volumeLifecycleModes": ["Persistent", "Ephemeral"], "podInfoOnMount": True}
        made.api.create(
            {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}
        )
    return made


@pytest.fixture
def stop(drivers):
    """Stops the tenth driver; it goes on at the end."""
    pid = drivers[HUNG].pid
    yield lambda: os.kill(pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGCONT)


def _volume(status, name):
    (found,) = [volume for each in status if each.name == name for volume in each.volumes]
    return found


def test_br52_a_stopped_driver_among_ten_holds_up_only_itself(node, drivers, stop, pod, root, until, nothing_left):
    def of(driver, name):
        return pod(name, claims=(), volumes=[{"name": "data", "csi": {"driver": driver}}])

    for name in NAMES:  # what each driver can do is asked once
        node.mount_pod(of(name, f"first-{name.partition('.')[0]}"), timeout=60)
    stop()
    hung = [f"hung-{number}" for number in range(HUNG_PODS)]
    for name in hung:
        with pytest.raises(WaitTimeoutError):
            node.mount_pod(of(HUNG, name), timeout=0)
    for name in NAMES[:-1]:
        label = name.partition(".")[0]
        node.mount_pod(of(name, f"second-{label}"), timeout=60)
        node.unmount_pod(f"first-{label}", timeout=60)
    until(lambda: all(_volume(node.status(), name).where for name in hung))
    told = [_volume(node.status(), name) for name in hung]
    assert {volume.state for volume in told} == {"mounting"}
    assert any(f"in NodePublishVolume of the CSI driver {HUNG}, called by " in volume.where for volume in told)
    assert all("NodePublishVolume" in volume.where or f"of {HUNG} hang" in volume.where for volume in told)
    until(lambda: "NodePublishVolume" in _volume(read_status(root).pods, hung[0]).where)
    assert node.parts.pool.threads <= 32 + HUNG_PODS
    os.kill(drivers[HUNG].pid, signal.SIGCONT)
    until(lambda: all(_volume(node.status(), name).ready for name in hung))
    node.unmount_all(timeout=60)
    nothing_left()


EXIT = """
import json, sys
from volumehost import VolumeManager
from volumehost.errors import VolumeHostError
from volumehost.loader.events import NoProber
from volumehost_csi.plugin import CSIPlugin
root, manifests = sys.argv[1:]
with VolumeManager(root, plugins=[CSIPlugin()], prober=NoProber(), node_name="here", exit_grace=0.5) as manager:
    for pod in json.loads(manifests):
        try:
            manager.mount_pod(pod, timeout=0.2)
        except VolumeHostError as error:
            print(type(error).__name__, flush=True)
"""


def test_br54_a_process_ends_though_calls_of_a_stopped_driver_are_under_way(node, stop, pod, root, tmp_path):
    """Its threads wait in gRPC; none of them keeps the interpreter."""
    pods = [pod(f"hung-{each}", claims=(), volumes=[{"name": "d", "csi": {"driver": HUNG}}]) for each in range(3)]
    node.__exit__(None, None, None)
    stop()
    command = [sys.executable, "-c", EXIT, root, json.dumps(pods)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, ["WaitTimeoutError"] * 3), done.stderr
