"""Volumes of files under an agent: configMap, secret and projected (PAYLOAD rules, PLUG-05, BR-53, BR-74)."""

import os
from pathlib import Path

import pytest
from agent_world import is_mounted, mounted_below, pod, pod_directories, volume_path

from volumehost.api.objects import ConfigMap, Event, ObjectMeta, Pod, Secret

pytestmark = pytest.mark.root

MARKER = "MARKER-of-a-secret-27182818"
SETTINGS = {"name": "settings", "configMap": {"name": "app"}}
LOGIN = {"name": "login", "secret": {"secretName": "db"}}
IDENTITY = {
    "name": "identity",
    "projected": {
        "sources": [
            {"serviceAccountToken": {"path": "token"}},
            {"configMap": {"name": "app"}},
            {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        ]
    },
}


def put(store, kind, name, **fields):
    return store.create(kind(metadata=ObjectMeta(name=name, namespace="default"), **fields))


def place(root, uid, plugin, volume):
    return volume_path(root, uid, volume, f"kubernetes.io~{plugin}")


def files(root, uid, plugin, volume):
    """What who opens the volume once reads; nothing while there is nothing, or what was opened is replaced."""
    generation = os.path.realpath(f"{place(root, uid, plugin, volume)}/..data")
    try:
        return {name: Path(generation, name).read_bytes() for name in os.listdir(generation)}
    except FileNotFoundError:
        return {}


def test_a_static_pod_waits_for_its_objects_and_follows_them(running_agent, manifests, root, store, until):
    """In the store of the host: what is put there is in the pod at once, whatever the backoff says."""
    agent = running_agent("--static-pods", manifests.path, "--node-name", "node-1")
    manifests("web.yaml", pod("web", SETTINGS, LOGIN))
    until(lambda: any('configmap "app" not found' in event.message for event in store.list(Event).items))
    (uid,) = {each.metadata.uid for each in store.list(Pod).items}
    assert files(root, uid, "configmap", "settings") == {}
    put(store, ConfigMap, "app", data={"color": "blue"})
    put(store, Secret, "db", data={"password": MARKER.encode()})
    until(lambda: files(root, uid, "configmap", "settings") == {"color": b"blue"})
    until(lambda: files(root, uid, "secret", "login") == {"password": MARKER.encode()})
    store.patch(ConfigMap, "app", {"data": {"color": "red"}}, "default")
    until(lambda: files(root, uid, "configmap", "settings") == {"color": b"red"})
    store.patch(ConfigMap, "app", {"data": {"color": None, "size": "L"}}, "default")
    until(lambda: files(root, uid, "configmap", "settings") == {"size": b"L"})
    os.unlink(f"{manifests.path}/web.yaml")
    until(lambda: mounted_below(root) == [] and pod_directories(root) == [])
    assert agent.stop() == 0


def test_killed_in_the_middle_of_updates_it_goes_on(running_agent, root, store, until):
    """Readers see one version whenever they look; what the next agent finds it brings up to date."""
    put(store, ConfigMap, "app", data={"a": "0", "b": "0"})
    uid = store.create(pod("web", SETTINGS, LOGIN)).metadata.uid
    put(store, Secret, "db", data={"a": b"0", "b": b"0"})
    kinds = (("configmap", "settings"), ("secret", "login"))

    for round_number in range(1, 3):
        agent = running_agent(log_file=None)
        until(lambda: all(files(root, uid, *kind) for kind in kinds))
        for each in range(4):
            text = f"{round_number}.{each}"
            store.patch(ConfigMap, "app", {"data": {"a": text, "b": text}}, "default")
        store.patch(Secret, "db", {"stringData": {"a": text, "b": text}}, "default")
        if round_number < 2:
            agent.kill()
            assert all(len(set(files(root, uid, *kind).values())) == 1 for kind in kinds)
    until(lambda: all(files(root, uid, *kind) == dict.fromkeys("ab", text.encode()) for kind in kinds))
    for path in (place(root, uid, *kind) for kind in kinds):
        until(lambda path=path: sorted(os.listdir(path)) == sorted(["..data", os.readlink(f"{path}/..data"), "a", "b"]))
    assert len(mounted_below(root)) == 1


def test_br74_nothing_secret_is_in_logs_events_records_or_left_on_the_disk(
    running_agent, root, store, until, tmp_path, volumehost
):
    """The log is that of debugging, a wrong key and a wrong path among the failures; the store has secrets to give."""
    put(store, Secret, "db", data={"password": MARKER.encode()})
    put(store, ConfigMap, "app", data={"color": "blue"})
    wrong = {"name": "wrong", "secret": {"secretName": "db", "items": [{"key": "nope", "path": "x"}]}}
    agent = running_agent("-vv", log_file=tmp_path / "agent.log")
    uid = store.create(pod("web", LOGIN, IDENTITY, wrong, labels={"app": "web"})).metadata.uid
    until(lambda: len(mounted_below(root)) == 2)
    until(lambda: files(root, uid, "projected", "identity").keys() == {"token", "color", "labels"})
    until(lambda: any("references non-existent secret key: nope" in event.message for event in store.list(Event).items))
    token = files(root, uid, "projected", "identity")["token"].decode()
    told = [volumehost(*words) for words in (["status"], ["explain", "web"], ["describe", "secret", "db"])]
    told += [volumehost("get", "events", "-o", "yaml")]
    texts = [each.stdout + each.stderr for each in told] + [(tmp_path / "agent.log").read_text()]
    store.patch(Pod, "web", {"metadata": {"annotations": {"volumehost.io/workload-ended": "true"}}}, "default")
    store.delete(Pod, "web", "default", uid=uid)
    until(lambda: mounted_below(root) == [] and pod_directories(root) == [])
    assert agent.stop() == 0
    assert len(texts[-1]) > 1000
    for directory, _, names in os.walk(root):
        texts += [
            Path(directory, name).read_bytes().decode(errors="replace")
            for name in names
            if not name.startswith("store") and "/reserve" not in directory
        ]
    assert [text[:500] for text in texts if MARKER in text or token in text] == []


def test_a_restarted_agent_leaves_what_is_right_as_it_is(running_agent, root, store, until):
    put(store, ConfigMap, "app", data={"color": "blue"})
    agent = running_agent()
    uid = store.create(pod("web", SETTINGS, IDENTITY, labels={"app": "web"})).metadata.uid
    paths = [place(root, uid, "configmap", "settings"), place(root, uid, "projected", "identity")]
    until(lambda: is_mounted(paths[1]) and all(os.path.lexists(f"{path}/..data") for path in paths))
    before = [os.readlink(f"{path}/..data") for path in paths]
    agent.kill()
    store.patch(Pod, "web", {"metadata": {"labels": {"app": "other"}}}, "default")
    running_agent()
    labels = Path(paths[1], "labels")
    until(lambda: labels.read_bytes() == b'app="other"')
    assert os.readlink(f"{paths[0]}/..data") == before[0]
    assert len(mounted_below(root)) == 1
