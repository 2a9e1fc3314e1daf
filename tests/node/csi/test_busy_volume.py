"""A process sits in the volume of a pod that goes: nothing is taken from under it, then all of it in order (BR-46)."""

import subprocess
import sys

import pytest

from volumehost.api.objects import VolumeAttachment

pytestmark = pytest.mark.root

HOLD = "import os, sys; os.chdir(sys.argv[1]); print('here', flush=True); sys.stdin.read()"


@pytest.fixture
def sitting():
    """Starts a process whose working directory is the one given; it ends when told, at the latest with the test."""
    started = []

    def sit(directory):
        command = [sys.executable, "-c", HOLD, directory]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "here\n"
        return process

    yield sit
    for process in started:
        process.kill()
        process.communicate()


def test_br46_no_detach_before_the_unstage_succeeded(
    manager, driver, claim, pod, node_calls, sitting, until, nothing_left, kept
):
    node = manager()
    claim(node.api)
    (volume,) = node.mount_pod(pod(), timeout=60).volumes
    process = sitting(volume.path)
    caught = kept(node, "web")
    assert "NodeUnpublishVolume" in str(caught.value.details)
    until(lambda: node_calls().count("NodeUnpublishVolume") >= 3, what="it is tried again")
    assert set(node_calls()) & {"NodeUnstageVolume", "ControllerUnpublishVolume"} == set()
    assert len(node.api.list(VolumeAttachment).items) == 1
    assert process.poll() is None
    process.communicate("")
    node.unmount_pod("web", timeout=60)
    until(lambda: not node.api.list(VolumeAttachment).items)
    done = [call for call, code in node_calls(codes=True) if code == "OK"]
    assert done[-3:] == ["NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume"]
    nothing_left()
