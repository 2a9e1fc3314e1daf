"""A clock that tests move, pods, and plugins for the node's tests."""

import threading
import time

import pytest

from volumehost.api.convert import to_object
from volumehost.api.objects import Pod


class Clock:
    """A monotonic clock that stands still until it is moved."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def move(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def until():
    """Wait for a condition, with a deadline."""

    def wait(condition, seconds=20.0, what="the condition"):
        deadline = time.monotonic() + seconds
        pause = threading.Event()
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"{what} did not come true within {seconds} s")
            pause.wait(0.005)

    return wait


@pytest.fixture
def make_pod():
    """A pod from its volumes; each is mounted by the one container unless ``mounts`` says otherwise."""

    def make(*volumes, name="web", uid="uid-1", namespace="default", mounts=None, spec=None, metadata=None):
        names = [volume["name"] for volume in volumes] if mounts is None else mounts
        container = {"name": "c", "image": "i", "volumeMounts": [{"name": n, "mountPath": f"/{n}"} for n in names]}
        return to_object(
            Pod,
            {
                "metadata": {"name": name, "namespace": namespace, "uid": uid, **(metadata or {})},
                "spec": {"containers": [container], "volumes": list(volumes), **(spec or {})},
            },
        )

    return make
