"""Get and list as a real server answers them: order, pages, versions, selectors."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from volumehost.testing.api_server import ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"


def fill(server: ApiServer, count: int) -> None:
    for index in range(count):
        server.objects.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{index:02}"}})


def names(body: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


class TestOneObject:
    def test_missing_object_is_told_as_a_status(self, http) -> None:
        reply = http.get(f"{MAPS}/none")
        assert reply.code == 404
        assert reply.body == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'configmaps "none" not found',
            "reason": "NotFound",
            "details": {"name": "none", "kind": "configmaps"},
            "code": 404,
        }

    def test_group_is_part_of_messages(self, http) -> None:
        reply = http.get("/apis/storage.k8s.io/v1/csinodes/n1")
        assert reply.body["message"] == 'csinodes.storage.k8s.io "n1" not found'
        assert reply.body["details"] == {"name": "n1", "group": "storage.k8s.io", "kind": "csinodes"}

    @pytest.mark.parametrize(
        "path",
        [
            "/api/v1/unknowns",
            "/apis/storage.k8s.io/v9/csinodes",
            "/api/v1/configmaps/a",
            f"{MAPS}/a/status",
            "/nowhere",
        ],
    )
    def test_unknown_path(self, http, path) -> None:
        reply = http.get(path)
        assert reply.code == 404
        assert reply.body["message"] == "the server could not find the requested resource"

    def test_method_that_a_path_does_not_take(self, http) -> None:
        assert http.post(f"{MAPS}/a", {}).code == 405
        assert http.put(MAPS, {}).code == 405

    def test_version_that_does_not_come_is_a_timeout(self, connect) -> None:
        with ApiServer(patience=0.05) as server:
            fill(server, 1)
            reply = connect(server).get(f"{MAPS}/m00", resourceVersion="999999")
        assert (reply.code, reply.body["reason"]) == (504, "Timeout")
        assert reply.body["message"].startswith("Timeout: Too large resource version: 999999, current: ")
        assert reply.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
        assert reply.headers["Retry-After"] == "1"

    def test_version_that_is_about_to_come_is_waited_for(self, server, http) -> None:
        fill(server, 1)
        wanted = int(http.get(f"{MAPS}/m00").metadata["resourceVersion"]) + 1
        threading.Timer(0.05, fill, (server, 1)).start()
        assert http.get(f"{MAPS}/m00", resourceVersion=wanted).metadata["resourceVersion"] == str(wanted)


class TestLists:
    def test_items_of_built_in_kinds_do_not_say_what_they_are(self, server, http) -> None:
        fill(server, 1)
        body = http.get(MAPS).body
        assert (body["kind"], body["apiVersion"]) == ("ConfigMapList", "v1")
        assert "kind" not in body["items"][0]
        assert "apiVersion" not in body["items"][0]

    def test_items_of_custom_kinds_say_what_they_are(self, server, http) -> None:
        server.objects.put(
            {
                "apiVersion": "snapshot.storage.k8s.io/v1",
                "kind": "VolumeSnapshotClass",
                "metadata": {"name": "c"},
                "driver": "example.com",
                "deletionPolicy": "Delete",
            }
        )
        body = http.get("/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses").body
        assert body["items"][0]["kind"] == "VolumeSnapshotClass"

    def test_order_is_any(self, server, http) -> None:
        """BR-75: the last item does not have the list's version."""
        fill(server, 20)
        first, second = http.get(MAPS).body, http.get(MAPS).body
        assert names(first) != names(second)
        assert sorted(names(first)) == sorted(names(second)) == [f"m{index:02}" for index in range(20)]
        versions = [int(item["metadata"]["resourceVersion"]) for item in first["items"]]
        assert int(first["metadata"]["resourceVersion"]) >= max(versions)

    def test_order_follows_the_seed(self, connect) -> None:
        orders = []
        for _ in range(2):
            with ApiServer(seed=7) as server:
                fill(server, 20)
                orders.append(names(connect(server).get(MAPS).body))
        assert orders[0] == orders[1]

    def test_namespaces_are_apart_and_together(self, server, http) -> None:
        fill(server, 1)
        server.objects.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "other"}})
        assert names(http.get(MAPS).body) == ["m00"]
        assert sorted(names(http.get("/api/v1/configmaps").body)) == ["m00", "x"]


class TestFieldsThatAreAlwaysWritten:
    """Empty lists and times are null, as Go writes them."""

    def test_of_a_csi_node(self, http) -> None:
        made = http.post("/apis/storage.k8s.io/v1/csinodes", {"metadata": {"name": "n1"}, "spec": {"drivers": []}})
        assert made.body["spec"] == {"drivers": None}
        assert http.put("/apis/storage.k8s.io/v1/csinodes/n1", made.body).code == 200, "it is taken back"

    def test_of_an_attachment(self, http) -> None:
        path = "/apis/storage.k8s.io/v1/volumeattachments"
        spec = {"attacher": "x.y", "nodeName": "n1", "source": {"persistentVolumeName": "pv"}}
        assert http.post(path, {"metadata": {"name": "a"}, "spec": spec}).body["status"] == {"attached": False}
        failed = http.patch(f"{path}/a/status", {"status": {"attachError": {"message": "no"}}}).body
        assert failed["status"] == {"attached": False, "attachError": {"time": None, "message": "no"}}

    def test_of_an_event(self, http) -> None:
        event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "w", "namespace": "default"}}
        made = http.post("/api/v1/namespaces/default/events", event).body
        assert (made["eventTime"], made["firstTimestamp"], made["source"]) == (None, None, {})

    def test_of_conditions(self, server, http, pod) -> None:
        condition = {"type": "Ready", "status": "True"}
        server.objects.put(pod | {"status": {"conditions": [condition]}})
        listed = http.get("/api/v1/pods").body["items"][0]
        assert listed["status"]["conditions"] == [condition | {"lastProbeTime": None, "lastTransitionTime": None}]


class TestPages:
    def test_pages_belong_together(self, server, http) -> None:
        fill(server, 5)
        first = http.get(MAPS, limit=2).body
        assert names(first) == ["m00", "m01"]
        assert first["metadata"]["remainingItemCount"] == 3
        server.objects.delete("configmaps", "m02")
        fill(server, 7)
        rest = http.get(MAPS, limit=9, **{"continue": first["metadata"]["continue"]}).body
        assert names(rest) == ["m02", "m03", "m04"], "not as it was at the first page"
        assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        assert "continue" not in rest["metadata"]

    def test_selected_pages_do_not_say_how_much_remains(self, server, http) -> None:
        fill(server, 3)
        assert "remainingItemCount" not in http.get(MAPS, limit=1, labelSelector="!x").metadata

    def test_expired_token_comes_with_another(self, server, http) -> None:
        """BR-75: 410 as a status; the token in it goes on with what there is now."""
        fill(server, 4)
        token = http.get(MAPS, limit=2).metadata["continue"]
        server.objects.delete("configmaps", "m02")
        server.compact()
        reply = http.get(MAPS, limit=2, **{"continue": token})
        assert (reply.code, reply.body["reason"]) == (410, "Expired")
        assert names(http.get(MAPS, limit=2, **{"continue": reply.metadata["continue"]}).body) == ["m03"]

    def test_token_that_is_none(self, http) -> None:
        assert http.get(MAPS, **{"continue": "!"}).code == 400

    def test_cached_lists_know_no_pages(self, server, http) -> None:
        fill(server, 3)
        assert len(http.get(MAPS, limit=1, resourceVersion="0").body["items"]) == 3


class TestVersions:
    def test_exact_version(self, server, http) -> None:
        fill(server, 1)
        version = http.get(MAPS).metadata["resourceVersion"]
        fill(server, 3)
        old = http.get(MAPS, resourceVersion=version, resourceVersionMatch="Exact")
        assert names(old.body) == ["m00"]
        assert old.metadata["resourceVersion"] == version
        assert len(http.get(MAPS, resourceVersion=version).body["items"]) == 3, "that means not older than"

    def test_exact_version_that_is_forgotten(self, server, http) -> None:
        fill(server, 1)
        version = http.get(MAPS).metadata["resourceVersion"]
        fill(server, 2)
        server.compact()
        assert http.get(MAPS, resourceVersion=version, resourceVersionMatch="Exact").code == 410

    @pytest.mark.parametrize(
        ("query", "code"),
        [
            ({"resourceVersionMatch": "Exact"}, 422),
            ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, 422),
            ({"resourceVersionMatch": "Newest", "resourceVersion": "1"}, 422),
            ({"continue": "x", "resourceVersion": "5"}, 400),
            ({"resourceVersion": "abc"}, 400),
            ({"limit": "many"}, 400),
        ],
    )
    def test_parameters_that_mean_nothing(self, http, query, code) -> None:
        assert http.get(MAPS, **query).code == code


class TestSelectors:
    @pytest.fixture(autouse=True)
    def objects(self, server, pod) -> None:
        for name, node, labels in (("a", "n1", {"app": "x"}), ("b", "n2", {"app": "y"}), ("c", "", {})):
            found = pod | {"metadata": {"name": name, "labels": labels}}
            server.objects.put(found | {"spec": pod["spec"] | ({"nodeName": node} if node else {})})

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ({"labelSelector": "app=x"}, ["a"]),
            ({"labelSelector": "app in (x,y)"}, ["a", "b"]),
            ({"labelSelector": "!app"}, ["c"]),
            ({"fieldSelector": "spec.nodeName=n1"}, ["a"]),
            ({"fieldSelector": "spec.nodeName="}, ["c"]),
            ({"fieldSelector": "spec.nodeName!=n1,metadata.name!=c"}, ["b"]),
            ({"fieldSelector": "metadata.name=b"}, ["b"]),
            ({"fieldSelector": "status.phase==Pending"}, ["a", "b", "c"]),
        ],
    )
    def test_what_is_selected(self, http, query, found) -> None:
        assert sorted(names(http.get("/api/v1/pods", **query).body)) == found

    @pytest.mark.parametrize(
        ("path", "selector"),
        [("/api/v1/pods", "spec.hostname=x"), ("/api/v1/persistentvolumes", "spec.nodeName=x"), (MAPS, "nonsense")],
    )
    def test_fields_that_cannot_be_asked_for(self, http, path, selector) -> None:
        assert http.get(path, fieldSelector=selector).code == 400

    def test_label_selector_that_is_none(self, http) -> None:
        assert http.get("/api/v1/pods", labelSelector="a in").code == 400


def test_discovery_names_what_is_served(http) -> None:
    assert http.get("/version").body["gitVersion"] == "v1.36.0"
    assert http.get("/readyz").body == b"ok"
    groups = {group["name"] for group in http.get("/apis").body["groups"]}
    assert {"storage.k8s.io", "coordination.k8s.io", "rbac.authorization.k8s.io"} <= groups
    served = {entry["name"]: entry for entry in http.get("/api/v1").body["resources"]}
    assert served["pods"]["namespaced"]
    assert served["pods"]["shortNames"] == ["po"]
    assert {"pods/status", "pods/binding", "pods/eviction", "serviceaccounts/token"} <= served.keys()
    assert http.get("/apis/storage.k8s.io").body["preferredVersion"]["version"] == "v1"
    assert http.get("/apis/storage.k8s.io/v9").code == 404
