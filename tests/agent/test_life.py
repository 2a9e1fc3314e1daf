"""The agent's life as seen from outside: it mounts, ends with mounts left alone, and goes on after kill -9."""

import os
import signal
from pathlib import Path

import pytest

from volumehost.api.store import EmbeddedStore
from volumehost.mount.mountinfo import read_mount_table

pytestmark = pytest.mark.root


@pytest.fixture
def store(root):
    """The store, made as a command would make it."""
    with EmbeddedStore(f"{root}/store.sqlite3") as opened:
        yield opened


def pod(name="web", **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "cache", "mountPath": "/cache"}]}],
            "volumes": [{"name": "cache", "emptyDir": {"medium": "Memory"}}],
            **spec,
        },
    }


def volume(root, stored):
    return f"{root}/pods/{stored.metadata.uid}/volumes/kubernetes.io~empty-dir/cache"


def is_mounted(path):
    return any(mount.path == path for mount in read_mount_table())


@pytest.mark.parametrize("end", ["term", "kill"])
def test_br66_memory_outlives_the_agent(running_agent, root, store, until, end):
    agent = running_agent()
    stored = store.create(pod())
    path = volume(root, stored)
    until(lambda: is_mounted(path))
    with open(f"{path}/file", "w") as file:
        file.write("kept")
    if end == "term":
        assert agent.stop() == 0
    else:
        agent.kill()
    assert is_mounted(path)
    agent = running_agent()
    assert Path(path, "file").read_text() == "kept"
    assert agent.stop() == 0
    assert os.path.exists(f"{path}/file")


def test_sigint_ends_it_too(running_agent):
    agent = running_agent()
    agent.signal(signal.SIGINT)
    assert agent.wait() == 0
