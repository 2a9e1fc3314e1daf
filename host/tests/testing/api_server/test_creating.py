"""Creation: what the server adds, what it refuses, and that it loses nothing."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from volumehost.testing.api_server import ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def test_identity_is_the_servers(http, config_map) -> None:
    config_map["metadata"] |= {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 9}
    reply = http.post(MAPS, config_map)
    assert reply.code == 201
    made = reply.metadata
    assert made["uid"] != "mine"
    assert made["creationTimestamp"] > "2020"
    assert made["resourceVersion"]
    assert made["namespace"] == "default"
    assert "generation" not in made, "a real server does not count changes of that kind"
    assert http.get(f"{MAPS}/settings").body == reply.body


def test_second_of_that_name(http, config_map) -> None:
    http.post(MAPS, config_map)
    reply = http.post(MAPS, config_map)
    assert (reply.code, reply.body["reason"]) == (409, "AlreadyExists")
    assert reply.body["message"] == 'configmaps "settings" already exists'


def test_resource_version_is_refused(http, config_map) -> None:
    config_map["metadata"]["resourceVersion"] = "5"
    reply = http.post(MAPS, config_map)
    assert reply.code == 500
    assert reply.body["message"] == "resourceVersion should not be set on objects to be created"


def test_generated_name(http) -> None:
    made = [http.post(MAPS, {"metadata": {"generateName": "x-"}}).metadata for _ in range(2)]
    assert made[0]["name"] != made[1]["name"]
    assert all(found["name"].startswith("x-") and found["generateName"] == "x-" for found in made)


def test_no_name_at_all(http) -> None:
    reply = http.post(MAPS, {"metadata": {}})
    assert (reply.code, reply.body["details"]["causes"][0]["reason"]) == (422, "FieldValueRequired")


def test_every_problem_is_a_cause(http) -> None:
    reply = http.post(MAPS, {"metadata": {"name": "Not A Name", "labels": {"a": "b c"}}})
    assert (reply.code, reply.body["reason"]) == (422, "Invalid")
    assert reply.body["message"].startswith('ConfigMap "Not A Name" is invalid: [metadata.name: Invalid value: ')
    assert [cause["field"] for cause in reply.body["details"]["causes"]] == ["metadata.name", "metadata.labels[a]"]
    assert reply.body["details"]["kind"] == "ConfigMap"


def test_missing_namespace(http, config_map) -> None:
    reply = http.post("/api/v1/namespaces/none/configmaps", config_map)
    assert (reply.code, reply.body["message"]) == (404, 'namespaces "none" not found')


def test_namespace_that_goes(server, http, config_map) -> None:
    server.objects.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "old"}})
    assert http.delete("/api/v1/namespaces/old").body["status"]["phase"] == "Terminating"
    reply = http.post("/api/v1/namespaces/old/configmaps", config_map)
    assert reply.code == 403
    assert reply.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"


def test_other_namespace_than_the_path_says(http, config_map) -> None:
    config_map["metadata"]["namespace"] = "other"
    assert http.post(MAPS, config_map).code == 400


@pytest.mark.parametrize(
    ("body", "content_type", "code"),
    [
        (b"{", "", 400),
        (b"[]", "", 400),
        (b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}', "", 400),
        (b'{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"a"}}', "", 400),
        (b'{"metadata":{"name":"a"},"data":{"a":1}}', "", 400),
        (b"x", "application/vnd.kubernetes.protobuf", 415),
        (b'{"metadata":{"name":"a"},"data":{"a":"' + b"x" * 3 * 1024 * 1024 + b'"}}', "", 413),
    ],
)
def test_body_that_is_no_object_of_the_kind(http, body, content_type, code) -> None:
    assert http.post(MAPS, body, content_type=content_type).code == code


def test_yaml_is_taken(http) -> None:
    reply = http("POST", MAPS, b"metadata: {name: a}\ndata: {x: 'y'}\n", content_type="application/yaml")
    assert reply.body["data"] == {"x": "y"}


def test_kind_of_a_custom_object_must_be_given(http) -> None:
    reply = http.post("/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses", {"metadata": {"name": "a"}})
    assert reply.code == 400


def test_dry_run_keeps_nothing(server, http, config_map) -> None:
    reply = http.post(MAPS, config_map, dryRun="All")
    assert reply.code == 201
    assert reply.metadata["uid"]
    assert "resourceVersion" not in reply.metadata
    assert server.objects.find("configmaps", "settings") is None
    assert http.post(MAPS, config_map, dryRun="Some").code == 422


def test_unknown_fields_are_kept(http, pod) -> None:
    """Objects of a newer API come through whole."""
    pod["spec"]["newer"] = {"deep": [1, {"a": None}]}
    pod["spec"]["volumes"][0]["emptyDir"]["newer"] = "x"
    pod["newest"] = True
    made = http.post(PODS, pod).body
    assert made["spec"]["newer"]["deep"][0] == 1
    assert made["spec"]["volumes"][0]["emptyDir"] == {"newer": "x"}
    assert made["newest"] is True


def test_unknown_fields_are_refused_where_that_is_asked_for(http, pod) -> None:
    pod["spec"]["containers"][0]["newer"] = 1
    reply = http.post(PODS, pod, fieldValidation="Strict")
    assert reply.code == 400
    assert 'strict decoding error: unknown field "spec.containers[0].newer"' in reply.body["message"]
    assert http.post(PODS, pod, fieldValidation="Warn").code == 201


def test_container_without_an_image(http, pod) -> None:
    del pod["spec"]["containers"][0]["image"]
    reply = http.post(PODS, pod)
    assert (reply.code, reply.body["details"]["causes"][0]["field"]) == (422, "spec.containers[0].image")


class TestDefaults:
    def test_of_a_pod(self, http, pod) -> None:
        made = http.post(PODS, pod | {"status": {"phase": "Running", "podIP": "10.0.0.1"}}).body
        spec = made["spec"]
        assert spec["restartPolicy"] == "Always"
        assert spec["terminationGracePeriodSeconds"] == 30
        assert spec["dnsPolicy"] == "ClusterFirst"
        assert spec["schedulerName"] == "default-scheduler"
        assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
        assert spec["containers"][0]["terminationMessagePath"] == "/dev/termination-log"
        assert [item["tolerationSeconds"] for item in spec["tolerations"]] == [300, 300]
        assert spec["volumes"] == [{"name": "scratch", "emptyDir": {}}]
        assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}, "the status is not the caller's"
        assert made["metadata"]["generation"] == 1

    def test_of_a_claim(self, http, claim) -> None:
        made = http.post(CLAIMS, claim).body
        assert made["spec"]["volumeMode"] == "Filesystem"
        assert made["spec"]["resources"]["requests"]["storage"] == "1Gi", "quantities get their usual form"
        assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
        assert made["status"] == {"phase": "Pending"}
        assert "storageClassName" not in made["spec"]

    def test_newest_default_class_is_the_class_of_a_claim_that_names_none(self, server, http, claim) -> None:
        mark = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
        for name, made in (("new", "2026-02-02T00:00:00Z"), ("old", "2026-01-01T00:00:00Z")):
            metadata = {"name": name, "creationTimestamp": made, **mark}
            server.objects.put(
                {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, "provisioner": "x.y"}
            )
        assert http.post(CLAIMS, claim).body["spec"]["storageClassName"] == "new"
        claim["metadata"]["name"], claim["spec"]["storageClassName"] = "none", ""
        assert not http.post(CLAIMS, claim).body["spec"].get("storageClassName")

    def test_of_a_volume(self, http) -> None:
        volume = {
            "metadata": {"name": "pv"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}},
        }
        made = http.post("/api/v1/persistentvolumes", volume).body
        assert made["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
        assert made["spec"]["hostPath"] == {"path": "/x", "type": ""}
        assert made["status"]["phase"] == "Pending"
        assert made["status"]["lastPhaseTransitionTime"]

    def test_of_a_driver(self, http) -> None:
        made = http.post("/apis/storage.k8s.io/v1/csidrivers", {"metadata": {"name": "x.example.com"}, "spec": {}}).body
        assert made["spec"]["attachRequired"] is True
        assert made["spec"]["volumeLifecycleModes"] == ["Persistent"]

    def test_node_keeps_the_status_that_it_registers_with(self, http) -> None:
        node = {"metadata": {"name": "n1"}, "status": {"volumesInUse": ["a"]}}
        made = http.post("/api/v1/nodes", node).body
        assert made["status"]["volumesInUse"] == ["a"]
        assert [taint["key"] for taint in made["spec"]["taints"]] == ["node.kubernetes.io/not-ready"]

    def test_text_of_a_secret_becomes_data(self, http) -> None:
        made = http.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "stringData": {"a": "b"}})
        assert made.body["data"] == {"a": "Yg=="}
        assert made.body["type"] == "Opaque"
        assert "stringData" not in made.body

    def test_of_a_namespace(self, http) -> None:
        made = http.post("/api/v1/namespaces", {"metadata": {"name": "team"}}).body
        assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
        assert made["status"] == {"phase": "Active"}


class TestTimes:
    @pytest.mark.parametrize("renewed", ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", "yesterday", 5])
    def test_a_lease_wants_six_digits(self, http, renewed) -> None:
        lease: dict[str, Any] = {"metadata": {"name": "l"}, "spec": {"renewTime": renewed}}
        assert http.post("/apis/coordination.k8s.io/v1/namespaces/default/leases", lease).code == 400

    def test_a_lease_with_six_digits(self, http) -> None:
        lease = {"metadata": {"name": "l"}, "spec": {"renewTime": "2026-01-01T01:00:00.250000+01:00"}}
        made = http.post("/apis/coordination.k8s.io/v1/namespaces/default/leases", lease)
        assert made.body["spec"]["renewTime"] == "2026-01-01T00:00:00.250000Z"

    def test_other_times_have_whole_seconds(self, http) -> None:
        event = {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"},
            "firstTimestamp": "2026-01-01T00:00:00.123456Z",
        }
        made = http.post("/api/v1/namespaces/default/events", event)
        assert made.body["firstTimestamp"] == "2026-01-01T00:00:00Z"


class TestEvents:
    EVENT: ClassVar[dict[str, Any]] = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"},
        "reason": "FailedMount",
        "message": "why",
        "type": "Warning",
        "source": {"component": "kubelet", "host": "n1"},
    }

    def test_both_kinds_are_one(self, http) -> None:
        http.post("/api/v1/namespaces/default/events", self.EVENT)
        shown = http.get("/apis/events.k8s.io/v1/namespaces/default/events/e").body
        assert (shown["apiVersion"], shown["note"], shown["regarding"]["name"]) == ("events.k8s.io/v1", "why", "web")
        assert shown["deprecatedSource"]["host"] == "n1"
        patched = http.patch("/apis/events.k8s.io/v1/namespaces/default/events/e", {"note": "because"})
        assert patched.body["note"] == "because"
        assert http.get("/api/v1/namespaces/default/events/e").body["message"] == "because"

    def test_new_kind_is_read_as_the_old(self, http) -> None:
        event = {
            "metadata": {"name": "n"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "regarding": {"kind": "Pod", "name": "web", "namespace": "default"},
            "reason": "Pulled",
            "action": "Pull",
            "type": "Normal",
            "reportingController": "example.com/host",
            "reportingInstance": "n1",
        }
        assert http.post("/apis/events.k8s.io/v1/namespaces/default/events", event).body["kind"] == "Event"
        found = http.get("/api/v1/events", fieldSelector="involvedObject.name=web").body["items"]
        assert [item["reportingComponent"] for item in found] == ["example.com/host"]

    def test_an_event_lies_where_its_object_does(self, server, http) -> None:
        server.objects.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        reply = http.post("/api/v1/namespaces/other/events", self.EVENT)
        assert (reply.code, reply.body["details"]["causes"][0]["field"]) == (422, "involvedObject.namespace")


class TestServiceAccounts:
    @pytest.fixture
    def cluster(self):
        with ApiServer(service_accounts=True) as made:
            yield made

    def test_pod_gets_a_volume_with_a_token(self, cluster, connect, pod) -> None:
        spec = connect(cluster).post(PODS, pod).body["spec"]
        assert spec["serviceAccountName"] == "default"
        volume = spec["volumes"][1]
        assert volume["name"].startswith("kube-api-access-")
        assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
            "serviceAccountToken",
            "configMap",
            "downwardAPI",
        ]
        mount = spec["containers"][0]["volumeMounts"][0]
        assert (mount["name"], mount["readOnly"]) == (volume["name"], True)
        assert cluster.objects.get("configmaps", "kube-root-ca.crt")["data"]["ca.crt"]

    def test_pod_that_wants_none(self, cluster, connect, pod) -> None:
        pod["spec"]["automountServiceAccountToken"] = False
        assert len(connect(cluster).post(PODS, pod).body["spec"]["volumes"]) == 1

    def test_account_that_is_not_there(self, cluster, connect, pod) -> None:
        pod["spec"]["serviceAccountName"] = "robot"
        reply = connect(cluster).post(PODS, pod)
        assert reply.code == 403
        assert 'serviceaccount "robot" not found' in reply.body["message"]
