"""Controller and agents as real processes on one API server: a volume's whole way, and each of them killed on it.

Both run with the permissions of ``volumehost rbac`` and no other. BR-47, BR-48, BR-49.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for cluster_world: tests are imported without a package

from cluster_world import AGENT, CONTROLLER, DRIVER, NAMESPACE, World

from volumehost.agent.permissions import NODE_PERMISSIONS
from volumehost.api.kubernetes import connect
from volumehost.api.objects import PersistentVolumeClaim, VolumeSnapshot
from volumehost.controller.permissions import CONTROLLER_PERMISSIONS, SIDECAR_PERMISSIONS
from volumehost.testing.api_server import ApiServer

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]

OBJECTS = (
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": DRIVER},
        "spec": {"tokenRequests": [{"audience": "example.com"}]},
    },
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"user": "acme"}},
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": DRIVER,
        "allowVolumeExpansion": True,
        "parameters": {
            "csi.storage.k8s.io/provisioner-secret-name": "key",
            "csi.storage.k8s.io/provisioner-secret-namespace": "default",
        },
    },
)
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "pv-1"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "capacity": {"storage": "1Gi"},
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": {
            "driver": DRIVER,
            "volumeHandle": "v1",
            "nodePublishSecretRef": {"name": "key", "namespace": "default"},
        },
    },
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default", "finalizers": ["kubernetes.io/pvc-protection"]},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


#: What is permitted for cases that do not come about here, and which ones.
RARE = {
    ("get", "pods"): "one that this node's agent does not watch, when it is asked about",
    ("list", "volumeattachments"): "an attachment that is not done when the node already says so",
    ("watch", "volumeattachments"): "likewise",
    ("patch", "events"): "what happens again",
    ("get", "nodes"): "a write of its status that came too late",
    ("update", "leases"): "a leader that has led for a while",
    ("update", "nodes"): "plugins that attach without VolumeAttachments",
    ("delete", "persistentvolumeclaims"): "claims of pods that are gone, where nobody collects garbage",
    ("get", "persistentvolumeclaims"): "a write of what the watch does not show any more",
    ("get", "persistentvolumes"): "likewise",
    ("get", "volumeattachments"): "likewise",
    ("get", "csinodes"): "likewise",
    ("get", "volumesnapshots"): "likewise",
    ("get", "volumesnapshotcontents"): "likewise",
    ("update", "pods/finalizers"): "no request: the admission plugin OwnerReferencesPermissionEnforcement asks for it",
    ("get", "serviceaccounts"): "pod certificates",
    ("create", "podcertificaterequests"): "likewise",
    ("get", "podcertificaterequests"): "likewise",
    ("delete", "csinodes"): "a Node of the same name that is another one",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with (
        ApiServer(rbac=True, garbage_collector=True, service_accounts=True) as server,
        World(server, tmp_path_factory.mktemp("world")) as world,
    ):
        for each in OBJECTS:
            server.objects.put(each)
        world.start()
        yield world


def test_a_volume_goes_its_whole_way_though_both_are_killed_on_it(world):
    """With the permissions that ``volumehost rbac`` prints: none is missing, none is superfluous."""
    whole_way(world)
    what_else(world)
    identity(world)
    for user, permissions in ((AGENT, NODE_PERMISSIONS), (CONTROLLER, CONTROLLER_PERMISSIONS)):
        compare(world.server.requests.all(user=user), permissions)


def whole_way(world):
    """Attach, mount, move to another node, grow, unmount, detach."""
    objects = world.server.objects
    # Bound; the controller is killed before it can attach.
    objects.put(VOLUME)
    objects.put(CLAIM)
    volume = VOLUME["metadata"]["name"]
    world.until(lambda: objects.get("persistentvolumeclaims", "data")["status"]["phase"] == "Bound", "the binding")
    world.controller.kill()
    first = world.run_pod("node-1")
    world.controller.start("--no-leader-elect")  # nobody else leads: the dead one's lease need not run out

    # Attached and mounted on the first node, whose agent is killed: what is mounted stays, and is known again.
    path = world.wait_for_mount("node-1", first, volume)
    (path / "kept").write_text("what the pod wrote")
    assert world.attachments() == {"node-1": True}
    world.until(lambda: world.nodes["node-1"].in_use, "volumesInUse")
    world.nodes["node-1"].agent.kill()

    # Moved: the pod is wanted on the second node, and the first one still uses the volume, so it waits (BR-49).
    world.end_pod()
    second = world.run_pod("node-2")
    world.until(
        lambda: any(each["reason"] == "FailedAttachVolume" for each in objects.list("events")), "the multi-attach error"
    )
    assert world.attachments() == {"node-1": True}
    world.nodes["node-1"].agent.start()
    path = world.wait_for_mount("node-2", second, volume)
    assert (path / "kept").read_text() == "what the pod wrote"
    assert world.attachments() == {"node-2": True}
    assert world.nodes["node-1"].in_use == []

    # Expanded while it is used; the agent of that node is killed before it can do its part.
    world.nodes["node-2"].agent.kill()
    objects.patch("persistentvolumeclaims", "data", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    world.until(lambda: objects.get("persistentvolumes", volume)["spec"]["capacity"]["storage"] == "2Gi", "the size")
    world.nodes["node-2"].agent.start()
    world.until(
        lambda: objects.get("persistentvolumeclaims", "data")["status"]["capacity"]["storage"] == "2Gi",
        "the filesystem's size",
    )
    assert world.nodes["node-2"].driver.calls("NodeExpandVolume")

    # Unmounted and detached; the volume is released when its claim goes.
    world.end_pod()
    world.until(lambda: not world.attachments(), "the detachment (BR-48)")
    assert world.nodes["node-2"].in_use == []
    assert not world.nodes["node-2"].volume(second, volume).exists()
    with connect(world.kubeconfig()) as api:
        api.delete(PersistentVolumeClaim, "data")
    world.until(lambda: objects.get("persistentvolumes", volume)["status"]["phase"] == "Released", "the release")


def what_else(world):
    """A repair; recycled and deleted volumes, claims of ephemeral volumes."""
    objects = world.server.objects
    # The CSINode is removed by somebody, and is put right.
    objects.delete("csinodes", "node-1")
    world.until(lambda: objects.find("csinodes", "node-1"), "the repair")
    # A volume is made and deleted by a plugin.
    local = {"metadata": {"name": "local"}, "provisioner": "kubernetes.io/host-path"}
    objects.put({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **local})
    spec = {**CLAIM["spec"], "storageClassName": "local"}
    objects.put({**CLAIM, "metadata": {"name": "made", "namespace": "default"}, "spec": spec})

    def made():
        return [each for each in objects.list("persistentvolumes") if each["spec"]["storageClassName"] == "local"]

    world.until(lambda: objects.get("persistentvolumeclaims", "made")["status"]["phase"] == "Bound", "a volume")
    objects.delete("persistentvolumeclaims", "made")
    world.until(lambda: not made(), "the volume's deletion")
    # A volume is recycled: this is the pod that does it, and the test is who runs it.
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "persistentVolumeReclaimPolicy": "Recycle",
        "hostPath": {"path": str(world.storage / "old")},
        "claimRef": {"name": "no", "namespace": "default", "uid": "gone"},
    }
    metadata, status = {"name": "old"}, {"phase": "Bound"}
    objects.put({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec, "status": status})
    recycler = "recycler-for-old"
    world.until(lambda: objects.find("pods", recycler), "a recycler pod")
    objects.patch("pods", recycler, {"status": {"phase": "Succeeded"}})
    world.until(lambda: objects.get("persistentvolumes", "old")["status"]["phase"] == "Available", "a recycled volume")
    template = {"spec": {**CLAIM["spec"], "storageClassName": "none"}}
    world.run_pod("node-1", "own", volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}])
    world.until(lambda: objects.find("persistentvolumeclaims", "own-v"), "a claim of an ephemeral volume")


def identity(world):
    """What a real API server puts into every pod: a token of its account and the cluster's certificate; and more."""
    bundle = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    metadata, spec = {"name": "e.com:ca:a"}, {"signerName": "e.com/ca", "trustBundle": bundle}
    version = "certificates.k8s.io/v1beta1"
    world.server.objects.put({"apiVersion": version, "kind": "ClusterTrustBundle", "metadata": metadata, "spec": spec})
    selected = {"signerName": "e.com/ca", "labelSelector": {}, "path": "by-signer"}
    sources = [
        {"clusterTrustBundle": {"name": "e.com:ca:a", "path": "by-name"}},
        {"clusterTrustBundle": selected},
        {"secret": {"name": "key"}},
    ]
    mount = {"name": "more", "mountPath": "/more"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "known", "namespace": "default"},
        "spec": {
            "nodeName": "node-1",
            "securityContext": {"runAsUser": 1000, "fsGroup": 2000},
            "containers": [{"name": "c", "image": "i", "volumeMounts": [mount]}],
            "volumes": [{"name": "more", "projected": {"sources": sources}}],
        },
    }
    with connect(world.kubeconfig()) as api:
        made = api.create(pod)
    (access,) = (each.name for each in made.spec.volumes if each.name.startswith("kube-api-access-"))
    volumes = Path(f"{world.nodes['node-1'].root}/pods/{made.metadata.uid}/volumes/kubernetes.io~projected")
    world.until(lambda: all((volumes / name / "..data").exists() for name in (access, "more")), "the pod's identity")
    files = {name: (volumes / access / name).read_text() for name in ("token", "ca.crt", "namespace")}
    assert files["namespace"] == "default"
    roots = world.server.objects.get("configmaps", "kube-root-ca.crt")["data"]
    assert files["ca.crt"] == roots["ca.crt"] != ""
    assert world.server._users.holder(files["token"]) is not None
    status = (volumes / access / "token").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1000, 2000, 0o640)
    assert (volumes / "more" / "by-name").read_text() == bundle == (volumes / "more" / "by-signer").read_text()
    assert (volumes / "more" / "user").read_text() == "acme"
    world.end_pod("known")
    world.until(lambda: not volumes.exists(), "the end of the pod")


def compare(requests, permissions):
    """What was asked for with what is permitted."""
    made = [each for each in requests if each.resource]
    refused = {(each.verb, each.permission, each.group) for each in made if each.code == 403}
    assert refused == set(), "missing"
    used = {(each.verb, each.permission, each.group) for each in made}
    given = {(verb, each.resource, each.group) for each in permissions for verb in each.verbs}
    superfluous = {(verb, resource) for verb, resource, _ in given - used} - set(RARE)
    assert superfluous == set()
    assert [each for each in made if each.resource == "leases" and each.namespace != NAMESPACE] == []


def test_the_controller_does_the_sidecars_work_for_a_driver_that_it_is_given(world):
    """Provisioning, attaching, growing, snapshots, deletion: with the permissions for that, and no other."""
    objects = world.server.objects
    world.sidecars.stop()
    world.controller.kill()
    world.grant("controller", (*CONTROLLER_PERMISSIONS, *SIDECAR_PERMISSIONS))
    world.server.requests.clear()
    world.controller.start("--no-leader-elect", "--csi-driver", f"{DRIVER}={world.nodes['node-1'].driver.endpoint}")
    objects.put({**CLAIM, "metadata": {**CLAIM["metadata"], "name": "own"}})
    volume = world.until(lambda: objects.get("persistentvolumeclaims", "own")["spec"].get("volumeName"), "a volume")
    uid = world.run_pod("node-1", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "own"}}])
    world.wait_for_mount("node-1", uid, volume)
    objects.patch("persistentvolumeclaims", "own", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    world.until(
        lambda: objects.get("persistentvolumeclaims", "own")["status"]["capacity"]["storage"] == "2Gi", "the size"
    )
    taken = {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": "nightly"}}
    objects.put({**taken, "driver": DRIVER, "deletionPolicy": "Delete"})
    spec = {"volumeSnapshotClassName": "nightly", "source": {"persistentVolumeClaimName": "own"}}
    objects.put({**taken, "kind": "VolumeSnapshot", "metadata": {"name": "monday"}, "spec": spec})
    world.until(lambda: objects.get("volumesnapshots", "monday").get("status", {}).get("readyToUse"), "a snapshot")
    with connect(world.kubeconfig()) as api:
        api.delete(VolumeSnapshot, "monday")
        world.until(lambda: not objects.list("volumesnapshotcontents"), "the snapshot's deletion")
        world.end_pod()
        world.until(lambda: not world.attachments(), "the detachment")
        api.delete(PersistentVolumeClaim, "own")
    world.until(lambda: objects.find("persistentvolumes", volume) is None, "the volume's deletion")
    made = world.server.requests.all(user=CONTROLLER)
    assert {(each.verb, each.permission) for each in made if each.code == 403} == set()
    given = {(verb, each.resource) for each in SIDECAR_PERMISSIONS for verb in each.verbs}
    assert given - {(each.verb, each.permission) for each in made} - set(RARE) == set()
