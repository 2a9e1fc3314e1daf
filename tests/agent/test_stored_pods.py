"""Pods of the store: mounted when they come, ended by a positive word alone, whatever happened while no agent ran."""

import json
import subprocess
import sys

import pytest
from agent_world import DISK, MEMORY, claim, is_mounted, mounted_below, pod, pod_directories, volume_path

from volumehost import VolumeManager
from volumehost.api.objects import PersistentVolumeClaim, Pod
from volumehost.errors import ObjectNotFoundError
from volumehost.node.populating.pod_objects import FINALIZER
from volumehost.node.populating.pods import ENDED_ANNOTATION

pytestmark = pytest.mark.root


@pytest.fixture
def status(root):
    """The status of a pod, as the command tells it."""

    def ask(name="web"):
        command = [sys.executable, "-m", "volumehost", "status", name, "--root-dir", root, "-o", "json"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(done.stdout)["pods"][0]

    return ask


def is_gone(store, name="web"):
    try:
        store.get(Pod, name, "default")
    except ObjectNotFoundError:
        return True
    return False


def test_the_finalizer_is_there_before_the_first_mount(running_agent, root, store, until):
    stored = store.create(pod("web", {"name": "claim", "persistentVolumeClaim": {"claimName": "none"}}))
    running_agent()
    until(lambda: FINALIZER in store.get(Pod, "web", "default").metadata.finalizers)
    assert mounted_below(root) == []
    store.delete(Pod, "web", "default", uid=stored.metadata.uid)  # nothing was mounted for it: it need not wait
    until(lambda: is_gone(store))


@pytest.mark.parametrize("word", ["annotation", "phase"])
def test_br51_a_deleted_pod_stays_mounted_until_the_word(running_agent, root, store, status, until, word):
    """Also through a restart of the agent; status tells what it waits for."""
    agent = running_agent()
    uid = store.create(pod("web", MEMORY, DISK)).metadata.uid
    path = volume_path(root, uid)
    until(lambda: is_mounted(path))
    store.delete(Pod, "web", "default")
    agent.kill()
    agent = running_agent()
    other = store.create(pod("other")).metadata.uid
    until(lambda: is_mounted(volume_path(root, other)))
    assert is_mounted(path)
    assert "until the word that its workload has ended" in status()["note"]
    if word == "annotation":
        store.patch(Pod, "web", {"metadata": {"annotations": {ENDED_ANNOTATION: "true"}}}, "default")
    else:
        store.replace_status({**pod("web", MEMORY, DISK), "status": {"phase": "Failed"}})
    until(lambda: is_gone(store))
    assert pod_directories(root) == [other]
    assert agent.stop() == 0


def test_a_pod_that_has_ended_goes_and_its_object_stays(running_agent, root, store, until):
    """It was not deleted; its claims stay too. A restart does not bring its volumes back."""
    agent = running_agent()
    ephemeral = {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": claim()["spec"]}}}
    web = pod("web", MEMORY, ephemeral)
    uid = store.create(web).metadata.uid
    until(lambda: is_mounted(volume_path(root, uid)) and len(mounted_below(root)) > 2)
    store.replace_status({**web, "status": {"phase": "Succeeded"}})
    until(lambda: pod_directories(root) == [])
    until(lambda: FINALIZER not in store.get(Pod, "web", "default").metadata.finalizers)
    kept = store.get(PersistentVolumeClaim, "web-own", "default")
    assert kept.metadata.deletion_timestamp is None
    agent.kill()
    running_agent()
    other = store.create(pod("other")).metadata.uid
    until(lambda: is_mounted(volume_path(root, other)))
    assert pod_directories(root) == [other]


def test_the_word_while_no_agent_runs(running_agent, root, store, until):
    agent = running_agent()
    uids = {name: store.create(pod(name)).metadata.uid for name in ("a", "b", "c")}
    until(lambda: len(mounted_below(root)) == 3)
    agent.kill()
    store.replace_status({**pod("a"), "status": {"phase": "Succeeded"}})
    store.patch(Pod, "b", {"metadata": {"annotations": {ENDED_ANNOTATION: "true"}}}, "default")
    store.delete(Pod, "b", "default")
    running_agent()
    until(lambda: is_gone(store, "b") and pod_directories(root) == [uids["c"]])


def test_a_pod_that_was_made_anew_while_no_agent_ran(running_agent, root, store, until):
    """Two pods of one name: the old one's object is gone by force, so it has ended; the new one is mounted."""
    agent = running_agent()
    former = store.create(pod()).metadata.uid
    until(lambda: is_mounted(volume_path(root, former)))
    agent.kill()
    store.patch(Pod, "web", {"metadata": {"finalizers": None}}, "default")
    store.delete(Pod, "web", "default")
    uid = store.create(pod()).metadata.uid
    running_agent()
    until(lambda: mounted_below(root) == [volume_path(root, uid)] and pod_directories(root) == [uid])
    assert FINALIZER in store.get(Pod, "web", "default").metadata.finalizers


def test_pods_of_other_nodes_are_none_of_its_business(running_agent, root, store, until):
    running_agent("--node-name", "here")
    elsewhere, here = pod("elsewhere"), pod("here")
    elsewhere["spec"]["nodeName"], here["spec"]["nodeName"] = "there", "here"
    store.create(elsewhere)
    uid = store.create(here).metadata.uid
    until(lambda: mounted_below(root) == [volume_path(root, uid)])


def test_br51_what_is_mounted_for_a_pod_of_another_node_stays(running_agent, root, store, status, until):
    """A manager was told to mount it here all the same; that it is for another node is no word that it has ended."""
    document = pod("web")
    document["spec"]["nodeName"] = "there"
    with VolumeManager(root, node_name="here") as manager:
        uid = manager.mount_pod(document).uid
    path = volume_path(root, uid)
    agent = running_agent("--node-name", "here")
    other = store.create(pod("other")).metadata.uid
    until(lambda: is_mounted(volume_path(root, other)))
    assert is_mounted(path)
    assert status()["note"].startswith("it is for node there")
    store.patch(Pod, "web", {"metadata": {"annotations": {ENDED_ANNOTATION: "true"}}}, "default")
    until(lambda: pod_directories(root) == [other])
    assert agent.stop() == 0
