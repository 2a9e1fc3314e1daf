"""What a cluster's objects tell of its pods' volumes, to whoever is not on the node."""

from __future__ import annotations

import pytest

from volumehost.api.store import EmbeddedStore
from volumehost.errors import ObjectNotFoundError
from volumehost.node.explaining.in_cluster import cluster_status, explain_in_cluster

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "nodeName": "worker-1",
        "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "rest", "emptyDir": {}}],
    },
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pv-1"},
}
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "pv-1"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "csi.example.com", "volumeHandle": "v1"},
    },
}
ATTACHMENT = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "VolumeAttachment",
    "metadata": {"name": "csi-1"},
    "spec": {"attacher": "csi.example.com", "nodeName": "worker-1", "source": {"persistentVolumeName": "pv-1"}},
}
DRIVER = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSIDriver",
    "metadata": {"name": "csi.example.com"},
    "spec": {"attachRequired": True},
}


@pytest.fixture
def api(tmp_path):
    with EmbeddedStore(tmp_path / "store.sqlite3") as store:
        yield store


@pytest.fixture
def bound(api):
    """A claim with its volume, and a driver that attaches."""
    for each in (VOLUME, CLAIM, DRIVER):
        api.create(each)
    set_status(api, CLAIM, {"phase": "Bound", "capacity": {"storage": "1Gi"}})
    return api


def set_status(api, obj, status):
    metadata = obj["metadata"]
    from volumehost.api.convert import to_wire
    from volumehost.api.kinds import find_kind

    known = api.get(find_kind(obj["kind"]).struct, metadata["name"], metadata.get("namespace", ""))
    api.replace_status({**to_wire(known), "status": status})


def event(api, about, reason, message, kind="Warning"):
    found = about.metadata
    api.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": reason.lower(), "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": found.name, "namespace": found.namespace, "uid": found.uid},
            "type": kind,
            "reason": reason,
            "message": message,
        }
    )


def state_of(api, volume="data"):
    (pod,) = cluster_status(api)
    return next(each for each in pod.volumes if each.volume == volume)


def test_a_volume_without_its_claim_is_pending(api):
    api.create(POD)
    assert (state_of(api).state, state_of(api).error) == ("pending", "its claim default/data is not there")
    assert state_of(api, "rest").state == "unused"


def test_a_claim_that_is_not_bound_is_told(api):
    api.create(POD)
    api.create({**CLAIM, "spec": {**CLAIM["spec"], "volumeName": ""}})
    assert "is Pending" in state_of(api).error


def test_a_volume_that_is_being_attached(bound):
    bound.create(POD)
    bound.create(ATTACHMENT)
    assert (state_of(bound).state, state_of(bound).operation) == ("mounting", "volume_attach")
    set_status(bound, ATTACHMENT, {"attached": False, "attachError": {"message": "no such disk"}})
    assert (state_of(bound).state, state_of(bound).error) == ("failed", "no such disk")


def test_a_pod_whose_containers_run_has_its_volumes(bound):
    bound.create(POD)
    set_status(bound, POD, {"phase": "Running"})
    (pod,) = cluster_status(bound)
    assert (pod.state, pod.ready, state_of(bound).plugin) == ("mounted", True, "kubernetes.io/csi")


def test_an_ended_pod_has_nothing_mounted(bound):
    bound.create(POD)
    set_status(bound, POD, {"phase": "Succeeded"})
    (pod,) = cluster_status(bound)
    assert pod.state == "not-mounted"


def test_pods_are_found_by_name_and_uid(bound):
    made = bound.create(POD)
    assert [each.name for each in cluster_status(bound, "default", "web")] == ["web"]
    assert [each.name for each in cluster_status(bound, "default", made.metadata.uid)] == ["web"]
    assert cluster_status(bound, "other", "web") == []


def test_explaining_names_the_attachment_and_who_serves_it(bound):
    """CSI-ATT: the node waits for a VolumeAttachment that somebody else fulfils."""
    bound.create(POD)
    bound.create(ATTACHMENT)
    told = explain_in_cluster(bound, "default", "web")
    (volume,) = [each for each in told.volumes if each.volume == "data"]
    assert [point.name for point in volume.sequence if point.state == "here"] == ["attach"]
    assert "VolumeAttachment csi-1, which csi.example.com serves" in volume.waits_for
    assert not told.live
    assert "on node worker-1 'volumehost explain web' asks its agent" in told.notes[-1]


def test_explaining_tells_the_events_of_the_node(bound):
    pod = bound.create(POD)
    event(bound, pod, "FailedMount", 'MountVolume.SetUp failed for volume "data" : exit status 32')
    told = explain_in_cluster(bound, "default", "web")
    (volume,) = [each for each in told.volumes if each.volume == "data"]
    assert volume.error == ('FailedMount: MountVolume.SetUp failed for volume "data" : exit status 32',)


def test_an_event_of_another_volume_is_not_this_ones(bound):
    pod = bound.create(POD)
    event(bound, pod, "FailedMount", 'MountVolume.SetUp failed for volume "rest" : exit status 32')
    told = explain_in_cluster(bound, "default", "web")
    assert all(not each.error for each in told.volumes)


def test_a_pod_without_a_node_waits_for_the_scheduler(bound):
    pod = bound.create({**POD, "spec": {key: value for key, value in POD["spec"].items() if key != "nodeName"}})
    event(bound, pod, "FailedScheduling", "0/3 nodes are available")
    told = explain_in_cluster(bound, "default", "web")
    assert told.waits_for == ("the scheduler, which has not given it a node: 0/3 nodes are available",)


def test_a_pod_that_runs_needs_no_explanation(bound):
    bound.create(POD)
    set_status(bound, POD, {"phase": "Running"})
    told = explain_in_cluster(bound, "default", "web")
    assert (told.ready, told.summary) == (True, "all volumes are mounted")


def test_a_pod_that_is_not_there(api):
    with pytest.raises(ObjectNotFoundError, match="there is no pod default/web"):
        explain_in_cluster(api, "default", "web")
