"""Deletion: grace, finalizers, preconditions, propagation, and what is answered."""

from __future__ import annotations

import pytest

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
HOLD = "example.com/hold"


@pytest.fixture
def on_node(server, pod) -> dict:
    pod["spec"]["nodeName"] = "n1"
    return server.objects.put(pod)


class TestAnswers:
    def test_status_for_most_kinds(self, http, config_map) -> None:
        uid = http.post(MAPS, config_map).metadata["uid"]
        reply = http.delete(f"{MAPS}/settings")
        assert reply.code == 200
        assert reply.body["status"] == "Success"
        assert reply.body["details"] == {"name": "settings", "kind": "configmaps", "uid": uid}
        assert http.delete(f"{MAPS}/settings").code == 404

    def test_the_object_for_some(self, http, pod) -> None:
        http.post(PODS, pod)
        assert http.delete(f"{PODS}/web").body["kind"] == "Pod"

    def test_the_object_while_it_is_held(self, http, config_map) -> None:
        config_map["metadata"]["finalizers"] = [HOLD]
        http.post(MAPS, config_map)
        assert http.delete(f"{MAPS}/settings").metadata["deletionTimestamp"]


class TestPods:
    def test_without_a_node_goes_at_once(self, http, pod) -> None:
        http.post(PODS, pod)
        http.delete(f"{PODS}/web")
        assert http.get(f"{PODS}/web").code == 404

    def test_on_a_node_is_marked_until_the_node_lets_go(self, server, http, on_node) -> None:
        marked = http.delete(f"{PODS}/web").metadata
        assert marked["deletionGracePeriodSeconds"] == 30
        assert marked["deletionTimestamp"] > marked["creationTimestamp"]
        assert marked["generation"] == on_node["metadata"]["generation"] + 1
        http.patch(f"{PODS}/web", {"metadata": {"labels": {"a": "b"}}})
        assert http.get(f"{PODS}/web").code == 200
        http.delete(f"{PODS}/web", {"gracePeriodSeconds": 0})
        assert http.get(f"{PODS}/web").code == 404

    def test_grace_can_be_shortened_only(self, http, on_node) -> None:
        def grace(seconds: int) -> int:
            return http.delete(f"{PODS}/web", gracePeriodSeconds=seconds).metadata["deletionGracePeriodSeconds"]

        assert [grace(20), grace(50), grace(5)] == [20, 20, 5]

    def test_finished_one_goes_at_once(self, server, http, on_node) -> None:
        server.objects.patch("pods", "web", {"status": {"phase": "Succeeded"}})
        http.delete(f"{PODS}/web")
        assert server.objects.find("pods", "web") is None

    def test_held_one_stays_marked_without_grace(self, server, http, on_node) -> None:
        server.objects.patch("pods", "web", {"metadata": {"finalizers": [HOLD]}})
        http.delete(f"{PODS}/web")
        marked = http.delete(f"{PODS}/web", {"gracePeriodSeconds": 0}).metadata
        assert marked["deletionGracePeriodSeconds"] == 0
        http.patch(f"{PODS}/web", {"metadata": {"finalizers": None}})
        assert server.objects.find("pods", "web") is None

    def test_eviction(self, server, http, on_node) -> None:
        reply = http.post(f"{PODS}/web/eviction", {"deleteOptions": {"gracePeriodSeconds": 7}})
        assert reply.code == 201
        assert server.objects.get("pods", "web")["metadata"]["deletionGracePeriodSeconds"] == 7


class TestFinalizers:
    def test_last_one_taken_lets_go(self, server, http, claim) -> None:
        http.post(CLAIMS, claim)
        first = http.delete(f"{CLAIMS}/data").metadata
        again = http.delete(f"{CLAIMS}/data").metadata
        assert again["deletionTimestamp"] == first["deletionTimestamp"]
        after = http.patch(f"{CLAIMS}/data", {"metadata": {"finalizers": []}})
        assert (after.code, "finalizers" in after.metadata) == (200, False)
        assert after.metadata["resourceVersion"] == again["resourceVersion"], "that of the end is not told"
        assert server.objects.find("persistentvolumeclaims", "data") is None

    def test_none_can_be_added_after_the_mark(self, http, claim) -> None:
        http.post(CLAIMS, claim)
        http.delete(f"{CLAIMS}/data")
        reply = http.patch(f"{CLAIMS}/data", {"metadata": {"finalizers": ["kubernetes.io/pvc-protection", HOLD]}})
        assert (reply.code, reply.body["details"]["causes"][0]["field"]) == (422, "metadata.finalizers")

    def test_end_is_told_to_watches_with_the_last_change(self, http, config_map) -> None:
        config_map["metadata"]["finalizers"] = [HOLD]
        start = http.post(MAPS, config_map).metadata["resourceVersion"]
        http.delete(f"{MAPS}/settings")
        http.patch(f"{MAPS}/settings", {"metadata": {"finalizers": None}})
        with http.watch(MAPS, resourceVersion=start) as events:
            assert [next(events)["type"] for _ in range(2)] == ["MODIFIED", "DELETED"]


class TestOptions:
    @pytest.mark.parametrize("field", ["uid", "resourceVersion"])
    def test_preconditions(self, http, config_map, field) -> None:
        made = http.post(MAPS, config_map).metadata
        reply = http.delete(f"{MAPS}/settings", {"preconditions": {field: "1"}})
        assert (reply.code, reply.body["reason"]) == (409, "Conflict")
        assert "in the precondition (1) does not match" in reply.body["message"]
        assert http.delete(f"{MAPS}/settings", {"preconditions": {field: made[field]}}).code == 200

    @pytest.mark.parametrize(
        ("policy", "finalizers"), [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"]), ("Background", None)]
    )
    def test_propagation(self, server, http, config_map, policy, finalizers) -> None:
        http.post(MAPS, config_map)
        http.delete(f"{MAPS}/settings", propagationPolicy=policy)
        left = server.objects.find("configmaps", "settings")
        assert (left["metadata"]["finalizers"] if left else None) == finalizers

    def test_dry_run(self, http, config_map) -> None:
        http.post(MAPS, config_map)
        assert http.delete(f"{MAPS}/settings", dryRun="All").code == 200
        assert http.get(f"{MAPS}/settings").code == 200

    @pytest.mark.parametrize(("body", "code"), [(b"{", 400), ({"kind": "Pod"}, 400), ({"propagationPolicy": "x"}, 422)])
    def test_options_that_are_none(self, http, config_map, body, code) -> None:
        http.post(MAPS, config_map)
        assert http.delete(f"{MAPS}/settings", body).code == code


def test_collection(server, http, config_map) -> None:
    for name, tier in (("a", "x"), ("b", "x"), ("c", "y")):
        http.post(MAPS, config_map | {"metadata": {"name": name, "labels": {"tier": tier}}})
    reply = http.delete(MAPS, labelSelector="tier=x")
    assert reply.body["kind"] == "ConfigMapList"
    assert [found["metadata"]["name"] for found in server.objects.list("configmaps")] == ["c"]
