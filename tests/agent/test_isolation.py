"""A hung filesystem under one pod of an agent, ten other pods that come and go, a scrape, the end (BR-52)."""

import re
import urllib.request

import pytest
from agent_world import DISK, is_mounted, pod, pod_directories, volume_path

from volumehost.agent.client import AgentManager
from volumehost.api.objects import Pod
from volumehost.testing.hung import hung_filesystem

pytestmark = pytest.mark.root

#: More threads than this an agent has not got, with one hung mount and ten pods: workers, controllers, watches, HTTP.
THREADS = 64


@pytest.fixture
def scrape(until):
    def get(agent):
        until(lambda: re.search(r"health and metrics at (\S+)", agent.log))
        url = re.findall(r"health and metrics at (\S+)", agent.log)[-1]
        with urllib.request.urlopen(f"{url}/metrics", timeout=60) as response:
            return response.read().decode()

    return get


@pytest.fixture
def status(root, store):
    """What the agent says of its pods, by name."""

    def ask():
        with AgentManager(root, lambda: store) as agent:
            return {each.name: each for each in agent.status()}

    return ask


def threads(agent):
    with open(f"/proc/{agent.pid}/status") as file:
        return int(re.search(r"^Threads:\s+(\d+)", file.read(), re.MULTILINE)[1])


def end(store, name):
    """The word that the pod's workload has ended, and its deletion."""
    store.patch(Pod, name, {"metadata": {"annotations": {"volumehost.io/workload-ended": "true"}}}, "default")
    store.delete(Pod, name, "default")


def test_br52_ten_pods_come_and_go_beside_one_whose_filesystem_hangs(running_agent, root, store, until, scrape, status):
    agent = running_agent("--http", "127.0.0.1:0", "--grace", "500ms")
    stuck = volume_path(root, store.create(pod("stuck", DISK)).metadata.uid, "scratch")
    until(lambda: "stuck" in status() and status()["stuck"].ready)
    with hung_filesystem(stuck):
        end(store, "stuck")
        until(lambda: "of the kernel" in status()["stuck"].volumes[0].where)
        (volume,) = status()["stuck"].volumes
        assert (volume.operation, volume.step) == ("volume_unmount", "tear-down")
        assert volume.age >= 1
        paths = []
        for number in range(10):
            made = store.create(pod(f"other-{number}"))
            paths.append(volume_path(root, made.metadata.uid))
        until(lambda: all(map(is_mounted, paths)))
        for number in range(0, 10, 2):
            end(store, f"other-{number}")
        until(lambda: not any(map(is_mounted, paths[::2])))
        assert 'operation_name="volume_mount"' in scrape(agent)
        assert threads(agent) <= THREADS
        assert agent.stop(timeout=30) in (0, 1)
        assert all(map(is_mounted, paths[1::2])), "mounts outlive the agent"
    agent = running_agent("--http", "127.0.0.1:0")
    until(lambda: "stuck" not in [each.metadata.name for each in store.list(Pod).items])
    for number in range(1, 10, 2):
        end(store, f"other-{number}")
    until(lambda: pod_directories(root) == [])
    assert agent.stop() == 0
