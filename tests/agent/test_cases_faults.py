"""Reported faults of comparable systems, played through the agent's process (BR-15, -46, -53, -57, -61, -66)."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from acme_plugin import acme
from agent_world import MEMORY, claim, claimed, is_mounted, mounted_below, pod, pod_directories, volume_path

from volumehost.api.objects import Event, Pod, VolumeAttachment
from volumehost.mount import syscalls
from volumehost.node.populating.pods import ENDED_ANNOTATION

pytestmark = pytest.mark.root

PLUGIN = "example.com~acme"


def end(store, name):
    """The word that the pod's workload has ended, and its deletion."""
    store.patch(Pod, name, {"metadata": {"annotations": {ENDED_ANNOTATION: "true"}}}, "default")
    store.delete(Pod, name, "default")


def names(store):
    return [each.metadata.name for each in store.list(Pod).items]


@pytest.mark.parametrize("trouble", ["import", "fail-import"])
def test_br15_a_plugin_that_is_late_or_fails_at_the_start_costs_no_volume(
    running_agent, site, root, store, until, live, trouble
):
    agent = running_agent(environment=site.environment)
    paths = [
        volume_path(root, store.create(pod(f"pod-{number}", acme(), MEMORY)).metadata.uid, "acme", PLUGIN)
        for number in range(10)
    ]
    until(lambda: len(mounted_below(root)) == 20)
    before = mounted_below(root)
    for path in paths:
        Path(path, "kept").write_text("by its mount")
    agent.kill()
    site.close(trouble)
    agent = running_agent(environment=site.environment, ready=trouble == "fail-import")
    if trouble == "fail-import":
        store.create(pod("other"))
        until(lambda: live()["other"].ready)
        assert {volume.state for volume in live()["pod-0"].volumes if volume.volume == "acme"} == {"waiting"}
        store.delete(Pod, "pod-1", "default")  # no word, and no plugin
    assert set(before) <= set(mounted_below(root))
    site.open(trouble)
    agent.wait_ready()
    until(lambda: len(live()) >= 10 and all(each.ready for each in live().values()), seconds=40)
    assert all(Path(path, "kept").read_text() == "by its mount" for path in paths)
    assert set(before) <= set(mounted_below(root))


HOLD = "import os, sys; os.chdir(sys.argv[1]); print('here', flush=True); sys.stdin.read()"


def test_br46_nothing_is_detached_while_a_process_sits_in_the_volume(running_agent, root, store, until, live):
    running_agent()
    store.create(claim())
    store.create(pod("web", claimed()))
    until(lambda: len(mounted_below(root)) == 2 and live()["web"].ready)
    (path,) = [volume.path for volume in live()["web"].volumes]
    command = [sys.executable, "-c", HOLD, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "here\n"
            end(store, "web")
            until(lambda: live()["web"].volumes[0].attempts >= 2, what="it is tried again and again")
            assert len(mounted_below(root)) == 2
            assert [each.metadata.deletion_timestamp for each in store.list(VolumeAttachment).items] == [None]
        finally:
            process.communicate("")
    until(lambda: (mounted_below(root), names(store), store.list(VolumeAttachment).items) == ([], [], []))


def test_br53_a_permanent_failure_is_told_once_and_a_new_pod_starts_afresh(
    running_agent, site, root, store, until, live
):
    agent = running_agent(environment=site.environment)
    site.close("fail-set-up")
    store.create(pod("web", acme()))
    until(lambda: live()["web"].volumes and live()["web"].volumes[0].attempts >= 3)
    assert agent.log.count("operation volume_mount failed") <= 2

    def events():
        return [each for each in store.list(Event).items if each.reason == "FailedMount"]

    until(lambda: sum(each.count for each in events()) >= 2)
    assert len(events()) == 1, "it is counted, not repeated"
    end(store, "web")
    until(lambda: names(store) == [])
    site.open("fail-set-up")
    uid = store.create(pod("web", acme())).metadata.uid
    until(lambda: is_mounted(volume_path(root, uid, "acme", PLUGIN)))


def test_br57_a_large_mount_table_that_changes_confuses_no_start(running_agent, root, store, until, tmp_path):
    agent = running_agent()
    paths = [volume_path(root, store.create(pod(f"pod-{number}")).metadata.uid) for number in range(5)]
    until(lambda: all(map(is_mounted, paths)))
    agent.kill()
    churn = tmp_path / "churn"
    places = [churn / str(number) for number in range(1000)]
    for place in places:
        place.mkdir(parents=True)
        syscalls.mount(str(churn), str(place), "", syscalls.MS_BIND, "")
    stop, failures = threading.Event(), []

    def change():
        number = 0
        while not stop.is_set() and not failures:
            place = str(places[number % len(places)])
            try:
                syscalls.umount2(place, 0)
                syscalls.mount(str(churn), place, "", syscalls.MS_BIND, "")
            except OSError as error:
                failures.append(error)
            number += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        agent = running_agent()
        new = volume_path(root, store.create(pod("new")).metadata.uid)
        until(lambda: is_mounted(new))
        agent.kill()
    finally:
        stop.set()
        thread.join()
        for place in reversed(places):
            syscalls.umount2(str(place), syscalls.MNT_DETACH)
    assert failures == []
    assert len([path for path in mounted_below(root) if path in paths]) == 5


def test_br61_a_mark_that_outlived_its_mount_is_not_believed(running_agent, root, store, until):
    agent = running_agent()
    uid = store.create(pod()).metadata.uid
    path = volume_path(root, uid)
    until(lambda: is_mounted(path))
    marks = Path(root, "pods", uid, "plugins", "kubernetes.io~empty-dir", "cache")
    until(lambda: os.listdir(marks))
    agent.kill()
    syscalls.umount2(path, 0)
    assert os.listdir(marks), "the plugin's own mark says that it is set up"
    running_agent()
    until(lambda: is_mounted(path))


def test_br66_each_type_of_host_path_is_checked_at_every_set_up(running_agent, root, store, until, live, tmp_path):
    """One precise message for each; what becomes right is mounted; what becomes wrong is told at the next set-up."""
    file, missing = tmp_path / "file", tmp_path / "missing"
    file.write_text("")
    places = {
        "Directory": file, "File": tmp_path, "Socket": missing, "CharDevice": file, "BlockDevice": Path("/dev/null"),
        "DirectoryOrCreate": file, "FileOrCreate": tmp_path,
    }  # fmt: skip
    agent = running_agent()
    for kind, place in places.items():
        store.create(pod(kind.lower(), {"name": "v", "hostPath": {"path": str(place), "type": kind}}))
    store.create(pod("any", {"name": "v", "hostPath": {"path": str(missing), "type": ""}}))
    until(lambda: len([each for each in live().values() if each.volumes and each.volumes[0].error]) == len(places))
    told = {name: each.volumes[0].error for name, each in live().items()}
    for kind, place in places.items():
        assert str(place) in told[kind.lower()]
    assert len(set(told.values())) == len(places) + 1
    assert live()["any"].ready
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(places["Socket"]))
    until(lambda: live()["socket"].ready)
    os.unlink(places["Socket"])
    agent.kill()
    running_agent()
    until(lambda: str(places["Socket"]) in live()["socket"].volumes[0].error)
    assert pod_directories(root) == []
