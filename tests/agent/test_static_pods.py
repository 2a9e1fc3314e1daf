"""Static pods: mounted for as long as their manifest is there, whatever happens to file, directory, store and agent."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from agent_world import MEMORY, claim, claimed, is_mounted, mounted_below, pod, pod_directories, volume_path

from volumehost.api.objects import Event, Pod
from volumehost.errors import ObjectNotFoundError
from volumehost.testing.agents import AgentProcess

pytestmark = pytest.mark.root

NODE = "node-1"
TOLD = "a static pod's manifest cannot be read"


@pytest.fixture
def agent(running_agent, manifests):
    """Starts an agent with the directory of static pods."""

    def start(**more):
        return running_agent("--static-pods", manifests.path, "--node-name", NODE, **more)

    return start


@pytest.fixture
def mirror(store):
    """The object that shows a static pod, by the name in its manifest; None without one."""

    def find(name="web"):
        try:
            return store.get(Pod, f"{name}-{NODE}", "default")
        except ObjectNotFoundError:
            return None

    return find


def test_a_static_pod_lives_and_ends_with_its_file(agent, manifests, root, mirror, until):
    """The pod has the node's name in its own and the hash of its manifest as uid (IDENT-01)."""
    running = agent()
    manifests("web.yaml", pod())
    until(lambda: mounted_below(root))
    until(mirror)
    shown = mirror()
    uid = shown.metadata.uid
    assert mounted_below(root) == [volume_path(root, uid)]
    assert shown.metadata.annotations["kubernetes.io/config.hash"] == uid
    assert shown.metadata.annotations["kubernetes.io/config.source"] == "file"
    assert shown.spec.node_name == NODE
    os.unlink(f"{manifests.path}/web.yaml")
    until(lambda: mounted_below(root) == [] and pod_directories(root) == [])
    until(lambda: mirror() is None)
    assert running.stop() == 0


def test_a_changed_file_ends_the_old_pod_and_brings_the_new_one(agent, manifests, root, mirror, until):
    agent()
    manifests("web.yaml", pod())
    until(mirror)
    former = mirror().metadata.uid
    manifests("web.yaml", pod("web", {**MEMORY, "name": "other"}))
    until(lambda: [Path(path).name for path in mounted_below(root)] == ["other"])
    until(lambda: (found := mirror()) is not None and found.metadata.uid != former)
    until(lambda: pod_directories(root) == [mirror().metadata.uid])


def test_a_command_does_not_end_a_static_pod(agent, manifests, root, store, mirror, until, volumehost):
    """Its manifest does. Without the agent a command may, and an agent that looks at no manifests leaves it alone."""
    running = agent()
    manifests("web.yaml", pod())
    uid = store.create(pod("stored")).metadata.uid
    until(lambda: len(mounted_below(root)) == 2 and mirror() is not None)
    name = mirror().metadata.name
    refused = volumehost("unmount", name)
    assert refused.returncode == 1
    assert f"it is a static pod, which ends when {manifests.path}/web.yaml is removed" in refused.stderr
    assert volumehost("delete", "pod", name).returncode == 1
    # Its object is made anew.
    until(lambda: (found := mirror()) is not None and found.metadata.deletion_timestamp is None)
    assert "only the manifest ends it" in volumehost("plan", "--unmount", name).stdout
    partly = volumehost("unmount", "--all")
    assert partly.returncode == 1
    assert "which ends when" in partly.stderr
    until(lambda: (found := mirror()) and mounted_below(root) == [volume_path(root, found.metadata.uid)])
    assert uid not in pod_directories(root)
    running.kill()
    running = AgentProcess(root, "--node-name", NODE, log_file=running.log_file)
    with running:
        until(lambda: "looks at no manifests" in volumehost("status").stdout)
        assert len(mounted_below(root)) == 1
        assert volumehost("unmount", name).returncode == 0
    assert mounted_below(root) == []
    assert mirror() is None


@pytest.fixture
def volumehost(root):
    """Runs a command."""

    def run(*arguments):
        command = [sys.executable, "-m", "volumehost", *arguments, "--root-dir", root]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)

    return run


BROKEN = ['{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "we', ""]


def test_br51_what_cannot_be_read_ends_nothing_and_is_told(agent, manifests, root, mirror, store, until):
    """A broken file, an unreadable directory, a directory that is gone: the pod stays mounted; then it goes on."""
    running = agent()
    manifests("web.yaml", pod())
    until(mirror)
    path = volume_path(root, mirror().metadata.uid)
    until(lambda: is_mounted(path))
    Path(path, "file").write_text("kept")
    for count, text in enumerate(BROKEN, 1):
        manifests("web.yaml", text, in_place=True)
        until(lambda count=count: running.log.count(TOLD) == count)
    os.rename(manifests.path, f"{manifests.path}.away")
    until(lambda: "static pods cannot be looked at" in running.log)
    os.rename(f"{manifests.path}.away", manifests.path)
    until(
        lambda: len([event for event in store.list(Event).items if event.reason == "FailedValidation"]) == len(BROKEN)
    )
    assert running.log.count(TOLD) == len(BROKEN)
    assert Path(path, "file").read_text() == "kept"
    manifests("web.yaml", pod(), in_place=True)
    manifests("more.yaml", pod("more"))
    until(lambda: len(mounted_below(root)) == 2)
    assert Path(path, "file").read_text() == "kept"


def test_br15_nothing_is_unmounted_while_a_manifest_cannot_be_read(agent, manifests, root, store, until):
    """After a restart nobody knows which pods an unreadable file holds: until it can be read, none is unwanted."""
    running = agent()
    manifests("web.yaml", pod())
    manifests("gone.yaml", pod("gone"))
    until(lambda: len(mounted_below(root)) == 2)
    running.kill()
    manifests("web.yaml", BROKEN[0])
    os.unlink(f"{manifests.path}/gone.yaml")
    running = agent()
    until(lambda: "manifest cannot be read" in running.log)
    store.create(pod("new"))
    until(lambda: len(mounted_below(root)) == 3)
    manifests("web.yaml", pod())
    until(lambda: len(mounted_below(root)) == 2)  # "gone" went, which the directory had told


def test_br51_a_directory_in_the_place_of_a_manifest_ends_nothing(agent, manifests, root, until):
    """Neither while the agent runs nor when it starts."""
    running = agent()
    manifests("web.yaml", pod())
    until(lambda: mounted_below(root))
    kept = mounted_below(root)
    os.unlink(f"{manifests.path}/web.yaml")
    os.mkdir(f"{manifests.path}/web.yaml")
    until(lambda: running.log.count("web.yaml: is a directory") == 1)
    running.kill()
    running = agent()
    until(lambda: running.log.count("web.yaml: is a directory") == 2)
    assert mounted_below(root) == kept
    os.rmdir(f"{manifests.path}/web.yaml")
    until(lambda: mounted_below(root) == [])


def test_br15_a_directory_that_is_not_there_at_the_start_ends_nothing(agent, manifests, root, until):
    running = agent()
    manifests("web.yaml", pod())
    until(lambda: mounted_below(root))
    running.kill()
    os.rename(manifests.path, f"{manifests.path}.away")
    running = agent()
    until(lambda: "static pods cannot be looked at" in running.log)
    assert len(mounted_below(root)) == 1
    os.mkdir(manifests.path)  # it can be listed now, and holds nothing
    until(lambda: mounted_below(root) == [] and pod_directories(root) == [])


def test_what_was_removed_while_no_agent_ran_ends_with_the_next(agent, manifests, root, mirror, until):
    running = agent()
    manifests("web.yaml", pod())
    manifests("stays.yaml", pod("stays"))
    until(lambda: len(mounted_below(root)) == 2 and mirror("stays") is not None)
    assert running.stop() == 0
    os.unlink(f"{manifests.path}/web.yaml")
    agent()
    until(lambda: pod_directories(root) == [mirror("stays").metadata.uid])
    until(lambda: mirror() is None)


def test_a_file_that_comes_back_while_its_pod_ends_is_mounted_again(agent, manifests, root, mirror, until, tmp_path):
    running = agent()
    manifests("web.yaml", pod())
    until(mirror)
    path = volume_path(root, mirror().metadata.uid)
    until(lambda: is_mounted(path))
    with open(f"{path}/held", "w"):  # it cannot be unmounted as long as this is open
        os.unlink(f"{manifests.path}/web.yaml")
        until(lambda: "is gone: pod" in running.log)
        manifests("web.yaml", pod())
    until(lambda: not os.path.exists(f"{path}/held") and is_mounted(path))
    assert mirror().metadata.uid in path


def test_a_static_pod_gets_a_claim(agent, manifests, root, store, until):
    agent()
    store.create(claim())
    manifests("web.yaml", pod("web", claimed()))
    until(lambda: any("/pods/" in path for path in mounted_below(root)))
    os.unlink(f"{manifests.path}/web.yaml")
    until(lambda: mounted_below(root) == [] and pod_directories(root) == [])


def test_two_manifests_with_one_pod_name(agent, manifests, root, mirror, store, until, volumehost):
    """One is mounted and shown in the store, once and for all; the other is told of until the first one goes."""
    manifests("b.yaml", pod())
    agent()
    until(mirror)
    uid = mirror().metadata.uid
    manifests("a.yaml", pod("web", {**MEMORY, "name": "other"}))
    until(lambda: "has one of that name" in volumehost("status").stderr)
    manifests("more.yaml", pod("more"))
    until(lambda: mirror("more") is not None)
    assert mirror().metadata.uid == uid
    version = store.list(Pod).resource_version
    os.unlink(f"{manifests.path}/b.yaml")
    until(lambda: [Path(path).name for path in mounted_below(root)].count("other") == 1)
    until(lambda: (shown := mirror()) and shown.metadata.uid != uid and uid not in pod_directories(root))
    assert int(store.list(Pod).resource_version) - int(version) < 10, "the store is not written again and again"


@pytest.mark.parametrize("trouble", ["garbage", "directory"])
def test_br54_static_pods_are_mounted_without_the_store(agent, manifests, root, until, trouble):
    """The store cannot be read: static pods are mounted, ended, mounted again by the next agent all the same."""
    os.makedirs(root)
    spoilt = Path(root, "store.sqlite3")
    if trouble == "garbage":
        spoilt.write_bytes(b"no database at all" * 1000)
    else:
        spoilt.mkdir()
    manifests("web.yaml", pod())
    running = agent()
    until(lambda: mounted_below(root))
    assert "store" in running.log
    running.kill()
    running = agent()
    assert len(mounted_below(root)) == 1
    os.unlink(f"{manifests.path}/web.yaml")
    until(lambda: "are not known yet" in running.log or mounted_below(root) == [] or "cannot be read" in running.log)
    manifests("web.yaml", pod("other"))
    until(lambda: len(mounted_below(root)) >= 1)
    assert running.stop() == 0
