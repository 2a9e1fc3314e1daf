"""The whole manager with the published plugins, found by their entry points, on a root directory of its own."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from volumehost import VolumeManager
from volumehost.mount.mountinfo import read_mount_table

DRIVER = Path(__file__).with_name("driver.py")
FUSE_DAEMON = Path(__file__).parents[2] / "host" / "tests" / "mount" / "fuse_daemon.py"


@pytest.fixture
def mounts(tmp_path):
    """The paths that are mounted below the root's filesystem, it aside; a path is there once for each mount."""

    def below():
        found = [mount.path for mount in read_mount_table()]
        return sorted(path for path in found if path.startswith(f"{tmp_path}/host/"))

    return below


@pytest.fixture
def nothing_left(root, mounts):
    """Assert that neither mounts nor directories of pods are left."""

    def check():
        assert mounts() == []
        assert os.listdir(f"{root}/pods") == []

    return check


@pytest.fixture
def manager(root):
    """Makes managers, with the installed plugins unless others are given; each is left at the end."""
    with contextlib.ExitStack() as stack:

        def make(*, enter=True, **options):
            made = VolumeManager(options.pop("root", root), **options)
            return stack.enter_context(made) if enter else made

        yield make


@pytest.fixture
def host_dir(tmp_path):
    """A directory of the host with a file in it."""
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "file").write_text("content")
    return str(directory)


@pytest.fixture
def make_pod(host_dir):
    """The pod of the quick start: emptyDir on disk and in memory, two hostPath volumes; or other volumes."""

    def make(*volumes, name="web", spec=None):
        if not volumes:
            volumes = (
                {"name": "scratch", "emptyDir": {}},
                {"name": "cache", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}},
                {"name": "data", "hostPath": {"path": host_dir, "type": "Directory"}},
                {"name": "logs", "hostPath": {"path": f"{host_dir}/logs", "type": "DirectoryOrCreate"}},
            )
        mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
        container = {"name": "c", "image": "i", "volumeMounts": mounts}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [container], "volumes": list(volumes), **(spec or {})},
        }

    return make


@pytest.fixture
def start(root, tmp_path):
    """Starts the driver; every process is killed at the end."""
    started = []

    def run(action, pod, *kill):
        manifest = tmp_path / "pod.json"
        manifest.write_text(json.dumps(pod))
        command = [sys.executable, str(DRIVER), root, action, str(manifest), *map(str, kill)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)  # fmt: skip
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def drive(start):
    """Runs the driver to its end, or to the step at which it kills itself; returns the exit code."""

    def run(action, pod, *kill):
        process = start(action, pod, *kill)
        _, errors = process.communicate(timeout=90)
        assert process.returncode in (0, -9), errors
        return process.returncode

    return run


@pytest.fixture
def holder(start):
    """Starts the driver so that it mounts a pod and goes on holding the root directory."""

    def run(pod):
        process = start("hold", pod)
        assert process.stdout.readline() == "done\n"
        return process

    return run


@pytest.fixture
def fuse():
    """Mounts an empty FUSE filesystem at a path; its daemon is killed at the end."""
    started = []

    def mount(path):
        process = subprocess.Popen([sys.executable, str(FUSE_DAEMON), path], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield mount
    for process in started:
        process.kill()
        process.communicate()
