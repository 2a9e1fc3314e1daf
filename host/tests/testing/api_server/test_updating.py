"""Replacing: versions and uids as conditions, the status apart, and what may not change."""

from __future__ import annotations

import copy

import pytest

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
STORAGE = "/apis/storage.k8s.io/v1"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


@pytest.fixture
def made(http, config_map) -> dict:
    return http.post(MAPS, config_map).body


class TestConditions:
    def test_stale_version(self, http, made) -> None:
        http.patch(f"{MAPS}/settings", {"data": {"a": "2"}})
        reply = http.put(f"{MAPS}/settings", made | {"data": {"a": "3"}})
        assert (reply.code, reply.body["reason"]) == (409, "Conflict")
        assert reply.body["message"] == f'Operation cannot be fulfilled on configmaps "settings": {MODIFIED}'
        assert http.get(f"{MAPS}/settings").body["data"] == {"a": "2"}

    def test_other_uid(self, server, http, made) -> None:
        server.recreate("configmaps", "settings")
        del made["metadata"]["resourceVersion"]
        reply = http.put(f"{MAPS}/settings", made | {"data": {}})
        assert reply.code == 409
        assert "Precondition failed: UID in precondition: " in reply.body["message"]

    def test_no_version_is_no_condition(self, http, made) -> None:
        http.patch(f"{MAPS}/settings", {"data": {"a": "2"}})
        del made["metadata"]["resourceVersion"]
        assert http.put(f"{MAPS}/settings", made | {"data": {"a": "3"}}).body["data"] == {"a": "3"}

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"spec": {"holderIdentity": "a"}}),
            (f"{STORAGE}/csinodes", {"spec": {"drivers": []}}),
            (f"{STORAGE}/csidrivers", {"spec": {}}),
        ],
    )
    def test_kinds_that_want_a_version(self, http, path, body) -> None:
        http.post(path, {"metadata": {"name": "a.example.com"}} | body)
        reply = http.put(f"{path}/a.example.com", {"metadata": {"name": "a.example.com"}} | body)
        assert (reply.code, reply.body["details"]["causes"][0]["field"]) == (422, "metadata.resourceVersion")
        patched = http.patch(f"{path}/a.example.com", {"metadata": {"labels": {"a": "b"}}})
        assert patched.code == 200, "a patch is made for the version that is there"

    def test_missing_object(self, http, config_map) -> None:
        assert http.put(f"{MAPS}/settings", config_map).code == 404

    def test_a_lease_is_made_by_its_replacement(self, http) -> None:
        reply = http.put("/apis/coordination.k8s.io/v1/namespaces/default/leases/l", {"metadata": {"name": "l"}})
        assert reply.code == 201

    def test_other_name_than_the_path_says(self, http, made) -> None:
        made["metadata"]["name"] = "other"
        reply = http.put(f"{MAPS}/settings", made)
        assert reply.code == 400
        assert reply.body["message"] == "the name of the object (other) does not match the name on the URL (settings)"


def test_nothing_changed_is_no_new_version(http, made) -> None:
    assert http.put(f"{MAPS}/settings", made).body == made


def test_what_is_the_servers_stays(http, made) -> None:
    changed = copy.deepcopy(made)
    changed["metadata"] |= {
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "generateName": "x",
        "labels": {"a": "b"},
    }
    after = http.put(f"{MAPS}/settings", changed).metadata
    assert after["labels"] == {"a": "b"}
    assert after["creationTimestamp"] == made["metadata"]["creationTimestamp"]
    assert not {"deletionTimestamp", "generateName"} & after.keys()


def test_dry_run_changes_nothing(http, made) -> None:
    assert http.put(f"{MAPS}/settings", made | {"data": {"a": "2"}}, dryRun="All").body["data"] == {"a": "2"}
    assert http.get(f"{MAPS}/settings").body == made


class TestStatus:
    def test_is_left_alone_by_a_replacement(self, http, claim) -> None:
        made = http.post(CLAIMS, claim).body
        made["status"] = {"phase": "Bound"}
        made["metadata"]["labels"] = {"a": "b"}
        after = http.put(f"{CLAIMS}/data", made).body
        assert (after["status"], after["metadata"]["labels"]) == ({"phase": "Pending"}, {"a": "b"})

    def test_leaves_the_spec_alone(self, http, claim) -> None:
        made = http.post(CLAIMS, claim).body
        changed = copy.deepcopy(made)
        changed["status"] = {"phase": "Bound", "capacity": {"storage": "2Gi"}}
        changed["spec"] = {"volumeName": "pv"}
        after = http.put(f"{CLAIMS}/data/status", changed).body
        assert after["status"] == {"phase": "Bound", "capacity": {"storage": "2Gi"}}
        assert after["spec"] == made["spec"]

    def test_has_the_same_conditions(self, http, claim) -> None:
        made = http.post(CLAIMS, claim).body
        http.patch(f"{CLAIMS}/data", {"metadata": {"labels": {"a": "b"}}})
        assert http.put(f"{CLAIMS}/data/status", made | {"status": {"phase": "Bound"}}).code == 409

    def test_of_an_attachment_leaves_the_metadata_alone(self, server, http) -> None:
        path = f"{STORAGE}/volumeattachments"
        spec = {"attacher": "x.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "pv"}}
        made = http.post(path, {"metadata": {"name": "va"}, "spec": spec, "status": {"attached": True}}).body
        assert not made.get("status", {}).get("attached")
        patch = {"metadata": {"annotations": {"a": "b"}, "finalizers": ["x.y/z"]}, "status": {"attached": True}}
        after = http.patch(f"{path}/va/status", patch).body
        assert after["status"]["attached"] is True
        assert not {"annotations", "finalizers"} & after["metadata"].keys()

    def test_of_a_node_takes_annotations_along(self, http) -> None:
        """As a real server does for most kinds that it has built in."""
        http.post("/api/v1/nodes", {"metadata": {"name": "n1"}})
        patch = {"metadata": {"annotations": {"a": "b"}}, "status": {"volumesInUse": ["x"]}}
        after = http.patch("/api/v1/nodes/n1/status", patch).body
        assert (after["metadata"]["annotations"], after["status"]["volumesInUse"]) == ({"a": "b"}, ["x"])

    def test_of_a_volume_notes_when_the_phase_changed(self, server, http) -> None:
        server.objects.put(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "pv"},
                "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}},
            }
        )
        after = http.patch("/api/v1/persistentvolumes/pv/status", {"status": {"phase": "Bound"}}).body
        assert after["status"].keys() == {"phase", "lastPhaseTransitionTime"}

    def test_kinds_that_have_none(self, http, made) -> None:
        assert http.put(f"{MAPS}/settings/status", made).code == 404


class TestGeneration:
    def test_counts_changes_of_what_is_wanted(self, http, pod) -> None:
        http.post(PODS, pod)
        labelled = http.patch(f"{PODS}/web", {"metadata": {"labels": {"a": "b"}}})
        running = http.patch(f"{PODS}/web/status", {"status": {"phase": "Running"}})
        assert labelled.metadata["generation"] == running.metadata["generation"] == 1
        changed = http.patch(f"{PODS}/web", {"spec": {"activeDeadlineSeconds": 5}})
        assert changed.metadata["generation"] == 2


class TestFixedFields:
    def test_pod(self, http, pod) -> None:
        made = http.post(PODS, pod).body
        made["spec"]["volumes"][0] = {"name": "scratch", "hostPath": {"path": "/x"}}
        reply = http.put(f"{PODS}/web", made)
        assert (reply.code, reply.body["details"]["causes"][0]["reason"]) == (422, "FieldValueForbidden")

    @pytest.mark.parametrize(
        "patch",
        [
            {"nodeName": "n1"},
            {"terminationGracePeriodSeconds": 5},
            {"tolerations": []},
            {"schedulingGates": [{"name": "x.y/z"}]},
            {"newer": 1},
        ],
    )
    def test_pod_is_as_it_was_made(self, http, pod, patch) -> None:
        http.post(PODS, pod)
        reply = http.patch(f"{PODS}/web", {"spec": patch})
        assert reply.code == 422
        assert "Forbidden: " in reply.body["message"]

    def test_image_and_tolerations_of_a_pod(self, http, pod) -> None:
        made = http.post(PODS, pod).body
        made["spec"]["containers"][0]["image"] = "registry.example.com/web:2"
        made["spec"]["tolerations"].append({"key": "x", "operator": "Exists"})
        assert http.put(f"{PODS}/web", made).code == 200

    def test_node_of_a_pod_is_given_by_a_binding(self, http, pod) -> None:
        http.post(PODS, pod)
        binding = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n1"}}
        assert http.post(f"{PODS}/web/binding", binding).code == 201
        assert http.get(f"{PODS}/web").body["spec"]["nodeName"] == "n1"
        again = http.post(f"{PODS}/web/binding", binding)
        assert (again.code, again.body["reason"]) == (409, "Conflict")

    @pytest.mark.parametrize(
        ("path", "body", "patch"),
        [
            (f"{STORAGE}/storageclasses", {"provisioner": "x.y"}, {"provisioner": "y.z"}),
            (f"{STORAGE}/storageclasses", {"provisioner": "x.y"}, {"parameters": {"a": "b"}}),
            (f"{STORAGE}/csidrivers", {"spec": {"attachRequired": False}}, {"spec": {"attachRequired": True}}),
            (
                f"{STORAGE}/volumeattachments",
                {"spec": {"attacher": "x.y", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}},
                {"spec": {"nodeName": "m"}},
            ),
            (
                "/api/v1/persistentvolumes",
                {
                    "spec": {
                        "capacity": {"storage": "1Gi"},
                        "accessModes": ["ReadWriteOnce"],
                        "csi": {"driver": "x.example.com", "volumeHandle": "1"},
                    }
                },
                {"spec": {"csi": {"volumeHandle": "2"}}},
            ),
        ],
    )
    def test_others(self, http, path, body, patch) -> None:
        assert http.post(path, {"metadata": {"name": "a.example.com"}} | body).code == 201
        assert http.patch(f"{path}/a.example.com", patch).code == 422

    def test_claim_before_and_after_it_is_bound(self, server, http, claim) -> None:
        claim["spec"]["storageClassName"] = "grows"
        server.objects.put(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "grows"},
                "provisioner": "x.y",
                "allowVolumeExpansion": True,
            }
        )
        http.post(CLAIMS, claim)
        bigger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        assert http.patch(f"{CLAIMS}/data", bigger).code == 422
        http.patch(f"{CLAIMS}/data/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}})
        assert http.patch(f"{CLAIMS}/data", bigger).code == 200
        assert http.patch(f"{CLAIMS}/data", {"spec": {"accessModes": ["ReadWriteMany"]}}).code == 422

    def test_claim_grows_only_where_its_class_allows_that(self, server, http, claim) -> None:
        server.objects.put(claim | {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}})
        reply = http.patch(f"{CLAIMS}/data", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
        assert reply.code == 403
        assert "only dynamically provisioned pvc can be resized" in reply.body["message"]
