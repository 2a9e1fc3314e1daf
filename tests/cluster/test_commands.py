"""The commands on objects, and on the volumes of pods, work on a cluster as they do without one."""

from __future__ import annotations

import threading

import pytest
import yaml

CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "csi.example.com",
    "allowVolumeExpansion": True,
}
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "pv-1"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "claimRef": {"name": "data", "namespace": "default"},
        "csi": {"driver": "csi.example.com", "volumeHandle": "v1"},
    },
    "status": {"phase": "Bound"},
}
ATTACHMENT = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "VolumeAttachment",
    "metadata": {"name": "csi-1"},
    "spec": {"attacher": "csi.example.com", "nodeName": "worker-1", "source": {"persistentVolumeName": "pv-1"}},
    "status": {"attached": False},
}
KEPT = {"metadata": {"finalizers": ["kubernetes.io/pvc-protection"]}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "nodeName": "worker-1",
        "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    },
}


@pytest.fixture
def bound(server):
    """A pod on a node, its claim, volume and attachment, which is not done yet."""
    claim = {**CLAIM, "spec": {**CLAIM["spec"], "volumeName": "pv-1"}}
    for each in (CLASS, VOLUME, {**claim, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}, ATTACHMENT):
        server.objects.put(each)
    server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-1"}})
    return server.objects.put(POD)


@pytest.fixture
def manifest(tmp_path):
    path = tmp_path / "manifest.yaml"

    def write(*documents):
        path.write_text(yaml.safe_dump_all(documents))
        return path

    return write


def test_objects_are_listed_and_shown_as_they_are(volumehost, bound):
    assert "worker-1" in volumehost("get", "pod", "web", "-o", "yaml").out
    assert volumehost("get", "pvc,pv", "-o", "name").out == "persistentvolumeclaim/data\npersistentvolume/pv-1\n"
    assert volumehost("get", "pod", "none").code == 3


def test_a_description_has_volumes_and_events(volumehost, server, bound):
    metadata = bound["metadata"]
    server.objects.put(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "web.1", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default", "uid": metadata["uid"]},
            "type": "Warning",
            "reason": "FailedAttachVolume",
            "message": "no such disk",
        }
    )
    out = volumehost("describe", "pod", "web").out
    assert "Volumes in the cluster (mounting)" in out
    assert "FailedAttachVolume" in out


def test_applying_creates_changes_and_leaves_alone(volumehost, server, manifest, root_dir):
    assert volumehost("apply", "-f", manifest(CLAIM, CLASS)).out == (
        "persistentvolumeclaim/data created\nstorageclass/fast created\n"
    )
    assert volumehost("apply", "-f", manifest(CLAIM)).out == "persistentvolumeclaim/data unchanged\n"
    labelled = {**CLAIM, "metadata": {**CLAIM["metadata"], "labels": {"app": "web"}}}
    assert volumehost("apply", "-f", manifest(labelled)).out == "persistentvolumeclaim/data configured\n"
    assert server.objects.get("persistentvolumeclaims", "data")["metadata"]["labels"] == {"app": "web"}
    assert not root_dir.exists()


def test_what_must_not_change_is_named_with_its_line(volumehost, server, manifest, bound):
    changed = {**CLAIM, "spec": {**CLAIM["spec"], "storageClassName": "slow"}}
    done = volumehost("apply", "-f", manifest(changed))
    assert done.code == 1
    assert "spec" in done.err
    assert server.objects.get("persistentvolumeclaims", "data")["spec"]["storageClassName"] == "fast"


def test_a_pod_that_is_deleted_is_its_nodes_to_end(volumehost, server, bound):
    """The object stays through its grace period; whoever runs its containers deletes it."""
    done = volumehost("delete", "pod", "web", "--no-wait")
    assert done.code == 0
    assert server.objects.get("pods", "web")["metadata"]["deletionTimestamp"]
    late = volumehost("delete", "pod", "web", "--timeout", "200ms")
    assert late.code == 4
    assert "waiting for pod default/web to be deleted" in late.err


def test_deleting_waits_until_the_object_is_gone(volumehost, server, bound):
    finish = threading.Timer(0.3, lambda: server.objects.delete("pods", "web"))
    finish.start()
    done = volumehost("delete", "pod", "web")
    finish.join()
    assert (done.code, done.out) == (0, "pod/web deleted\n")


def test_what_keeps_an_object_is_told(volumehost, server, bound):
    server.objects.patch(
        "persistentvolumeclaims", "data", {"metadata": {"finalizers": ["kubernetes.io/pvc-protection"]}}
    )
    done = volumehost("delete", "pvc", "data", "--timeout", "200ms")
    assert done.code == 4
    assert "kept by kubernetes.io/pvc-protection" in done.err


def test_status_shows_every_pod_of_the_cluster(volumehost, server, bound):
    done = volumehost("status")
    assert "default/web" in done.out
    assert "volume_attach" in done.out
    server.objects.patch("pods", "web", {"status": {"phase": "Running"}})
    server.objects.patch("volumeattachments", "csi-1", {"status": {"attached": True}})
    (pod,) = volumehost("status", "-o", "json").json()["pods"]
    assert (pod["state"], pod["ready"]) == ("mounted", True)
    assert volumehost("status", "none").code == 3


def test_whoever_may_not_see_volumes_is_told_the_rest(volumehost, server, bound):
    server.deny(verb="list", resource="persistentvolumes")
    server.objects.patch("pods", "web", {"status": {"phase": "Running"}})
    assert volumehost("status", "web", "-o", "json").json()["pods"][0]["state"] == "mounted"


def test_an_explanation_names_who_is_to_attach(volumehost, bound):
    done = volumehost("explain", "web")
    assert done.code == 0
    assert "VolumeAttachment csi-1, which csi.example.com serves" in done.out
    assert "told from the cluster's objects" in done.err
    told = volumehost("explain", "web", "-o", "json").json()
    assert (told["live"], told["ready"]) == (False, False)


def test_a_plan_changes_nothing(volumehost, server, bound, manifest):
    before = server.objects.get("pods", "web")
    server.requests.clear()
    done = volumehost("plan", "web", "-o", "json")
    assert {each.verb for each in server.requests.all()} <= {"get", "list"}
    (plan,) = done.json()["plans"]
    assert plan["name"] == "web"
    assert server.objects.get("pods", "web") == before
    other = {**POD, "metadata": {"name": "other", "namespace": "default"}}
    (plan,) = volumehost("plan", "-f", manifest(other), "-o", "json").json()["plans"]
    assert plan["name"] == "other"
    assert server.objects.find("pods", "other") is None


def test_expanding_waits_for_controller_and_node(volumehost, server, bound):
    def grow():
        def is_asked_for(claim):
            return claim["spec"]["resources"]["requests"]["storage"] == "2Gi"

        server.objects.wait("persistentvolumeclaims", "data", until=is_asked_for)
        server.objects.patch("persistentvolumeclaims", "data", {"status": {"capacity": {"storage": "2Gi"}}})

    grower = threading.Thread(target=grow)
    grower.start()
    done = volumehost("expand", "data", "2Gi", "--timeout", "20s")
    grower.join()
    assert (done.code, done.out) == (0, "persistentvolumeclaim/data has 2Gi\n")


def test_an_expansion_that_nobody_does_is_told(volumehost, bound):
    done = volumehost("expand", "data", "2Gi", "--timeout", "200ms")
    assert done.code == 4
    assert "waiting for claim default/data to have 2Gi" in done.err
    assert volumehost("expand", "data", "500Mi").code == 1


def test_a_snapshot_is_asked_for(volumehost, server, bound):
    done = volumehost("snapshot", "create", "monday", "--from", "data", "--no-wait")
    assert (done.code, done.out) == (0, "volumesnapshot/monday asked for\n")
    assert server.objects.get("volumesnapshots", "monday")["spec"]["source"] == {"persistentVolumeClaimName": "data"}
    assert "monday" in volumehost("snapshot", "list").out
