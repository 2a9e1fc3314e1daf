"""Faults that cost users their data elsewhere, played through the agent's process (BR-62, -64, -70, -71, -72, -84)."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from acme_plugin import acme
from agent_world import DISK, MEMORY, is_mounted, mounted_below, pod, pod_directories, volume_path

from volumehost.agent.client import AgentManager
from volumehost.api.objects import Pod
from volumehost.errors import VolumeHostError
from volumehost.mount import syscalls
from volumehost.node.populating.pods import ENDED_ANNOTATION
from volumehost.testing.hung import hung_filesystem

pytestmark = pytest.mark.root

EXCHANGER = Path(__file__).parents[2] / "host" / "tests" / "mount" / "exchanger.py"


def end(store, name):
    """The word that the pod's workload has ended, and its deletion."""
    store.patch(Pod, name, {"metadata": {"annotations": {ENDED_ANNOTATION: "true"}}}, "default")
    store.delete(Pod, name, "default")


def names(store):
    return [each.metadata.name for each in store.list(Pod).items]


@pytest.fixture
def precious(tmp_path):
    """A directory of the host; the file in it is there at the end, as it was."""
    directory = tmp_path / "precious"
    directory.mkdir()
    (directory / "file").write_text("mine")
    yield directory
    assert (directory / "file").read_text() == "mine"
    assert os.listdir(directory) == ["file"]


def test_br62_br84_a_live_mount_in_a_pods_directory_keeps_it(
    running_agent, root, store, until, live, precious, volumehost
):
    """Neither the end of the pod, nor a repair goes through it; each says what keeps the directory."""
    running_agent()
    uid = store.create(pod()).metadata.uid
    until(lambda: is_mounted(volume_path(root, uid)))
    foreign = Path(root, "pods", uid, "x")
    foreign.mkdir()
    syscalls.mount(str(precious), str(foreign), "", syscalls.MS_BIND, "")
    end(store, "web")
    until(lambda: not is_mounted(volume_path(root, uid)))
    until(lambda: str(foreign) in live()["web"].note, what="it is told what keeps the pod")
    with open(foreign / "file"):  # somebody uses it
        told = volumehost("repair")
        assert str(foreign) in told.stdout + told.stderr
        volumehost("repair", "--apply")
        assert is_mounted(str(foreign))
    assert pod_directories(root) == [uid]
    syscalls.umount2(str(foreign), 0)
    until(lambda: (pod_directories(root), names(store)) == ([], []), seconds=90)


def test_br64_a_dead_filesystem_is_taken_away_and_set_up_again(running_agent, root, store, until, live):
    running_agent()
    uid = store.create(pod("web", DISK)).metadata.uid
    until(lambda: live()["web"].ready)
    path = volume_path(root, uid, "scratch")
    with hung_filesystem(path) as filesystem:
        filesystem.die()
        assert is_mounted(path)
        end(store, "web")
        until(lambda: (mounted_below(root), names(store), pod_directories(root)) == ([], [], []))
        uid = store.create(pod("web", DISK)).metadata.uid
        until(lambda: live()["web"].ready)
        assert os.listdir(volume_path(root, uid, "scratch")) == []


def test_br70_what_is_written_below_the_mount_is_kept_and_told(running_agent, root, store, until, live, tmp_path):
    """As by a process that keeps the path and writes between the unmount and the removal of the directory."""
    running_agent()
    uid = store.create(pod()).metadata.uid
    path = volume_path(root, uid)
    until(lambda: is_mounted(path))
    beneath = tmp_path / "beneath"
    beneath.mkdir()
    syscalls.mount(os.path.dirname(path), str(beneath), "", syscalls.MS_BIND, "")  # without what is mounted in it
    (beneath / "cache" / "late").write_text("written late")
    syscalls.umount2(str(beneath), 0)
    end(store, "web")
    until(lambda: any("late" in volume.error for volume in live()["web"].volumes) or "late" in live()["web"].note)
    assert Path(path, "late").read_text() == "written late"
    os.unlink(f"{path}/late")
    until(lambda: (pod_directories(root), names(store)) == ([], []), seconds=90)


@contextlib.contextmanager
def exchanging(one, other):
    """Exchange two names in a tight loop, by a process of its own."""
    with subprocess.Popen([sys.executable, str(EXCHANGER), one, other], stdout=subprocess.PIPE) as attacker:
        try:
            assert attacker.stdout.readline() == b"ready\n"
            yield
        finally:
            attacker.kill()


def test_br71_containers_get_the_volumes_own_directory_or_nothing(running_agent, root, store, until, live, precious):
    running_agent()
    web = pod("web", MEMORY)
    web["spec"]["containers"][0]["volumeMounts"][0]["subPath"] = "part/sub"
    made = store.create(web)
    until(lambda: live()["web"].ready)
    path = volume_path(root, made.metadata.uid)
    os.makedirs(f"{path}/part/sub")
    os.symlink(precious, f"{path}/evil")
    given, refused, told = 0, 0, set()
    with AgentManager(root, lambda: store) as agent, exchanging(f"{path}/part", f"{path}/evil"):
        for _ in range(2000):
            try:
                (container,) = agent.container_mounts(store.get(Pod, "web", "default"))
            except VolumeHostError as error:
                told.add(str(error))
                refused += 1
            else:
                assert os.listdir(container.mounts[0].host_path) == []
                given += 1
            if given >= 5 and refused >= 5:
                break
    assert not [text for text in told if str(precious) in text]
    end(store, "web")
    until(lambda: (mounted_below(root), pod_directories(root)) == ([], []))


def test_br72_content_that_the_workload_turned_into_links_deletes_nothing_of_the_host(
    running_agent, site, root, store, until, live, precious
):
    agent = running_agent(environment=site.environment)
    uid = store.create(pod("web", acme(kind="content"))).metadata.uid
    path = volume_path(root, uid, "acme", "example.com~acme")
    until(lambda: live()["web"].ready)
    assert Path(path, "key").read_text() == "content of acme"
    os.unlink(f"{path}/..data")
    os.symlink(precious, f"{path}/..data")
    os.symlink(precious, f"{path}/..2020_01_01_00_00_00.1")
    agent.kill()
    agent = running_agent(environment=site.environment)  # which sets it up again
    until(lambda: live()["web"].ready)
    end(store, "web")
    until(lambda: (pod_directories(root), names(store)) == ([], []))
    assert agent.stop() == 0
