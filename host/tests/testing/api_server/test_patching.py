"""Patches of each kind: what they merge, what they refuse, and that they are conditional where they say so."""

from __future__ import annotations

import pytest

from volumehost.testing.api_server import ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
NODE = "/api/v1/nodes/n1"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


@pytest.fixture
def made(http, config_map) -> dict:
    return http.post(MAPS, config_map).body


class TestMergePatch:
    def test_null_removes(self, http, made) -> None:
        assert http.patch(f"{MAPS}/settings", {"data": {"a": None, "b": "2"}}).body["data"] == {"b": "2"}

    def test_lists_are_replaced(self, http, pod) -> None:
        http.post(PODS, pod)
        reply = http.patch(f"{PODS}/web", {"spec": {"containers": [{"name": "main", "image": "y:1"}]}})
        assert reply.body["spec"]["containers"][0]["image"] == "y:1"

    def test_stale_version_conflicts(self, http, made) -> None:
        http.patch(f"{MAPS}/settings", {"data": {"a": "2"}})
        patch = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": "3"}}
        assert http.patch(f"{MAPS}/settings", patch).code == 409

    def test_other_uid_conflicts(self, http, made) -> None:
        assert http.patch(f"{MAPS}/settings", {"metadata": {"uid": "other"}, "data": {}}).code == 409

    def test_no_change_is_no_new_version(self, http, made) -> None:
        assert http.patch(f"{MAPS}/settings", {"data": {"a": "1"}}).body == made

    def test_wrong_types_are_told(self, http, made) -> None:
        assert http.patch(f"{MAPS}/settings", {"data": "x"}).code == 400
        assert http.patch(f"{MAPS}/settings", []).code == 400

    def test_unknown_fields_survive(self, server, http, made) -> None:
        server.objects.patch("configmaps", "settings", {"newer": {"a": 1}})
        assert http.patch(f"{MAPS}/settings", {"data": {"a": "2"}}).body["newer"] == {"a": 1}

    def test_missing_object(self, http) -> None:
        assert http.patch(f"{MAPS}/none", {}).code == 404


class TestStrategicMergePatch:
    def test_lists_with_a_key_are_merged(self, http) -> None:
        """As a node's status is patched: addresses and conditions one by one, volumes in use as a whole."""
        http.post(
            "/api/v1/nodes",
            {
                "metadata": {"name": "n1"},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}, {"type": "Full", "status": "False"}],
                    "volumesInUse": ["a", "b"],
                },
            },
        )
        patch = {"status": {"conditions": [{"type": "Ready", "status": "False"}], "volumesInUse": ["c"]}}
        status = http.patch(f"{NODE}/status", patch, STRATEGIC).body["status"]
        assert [(item["type"], item["status"]) for item in status["conditions"]] == [
            ("Ready", "False"),
            ("Full", "False"),
        ]
        assert status["volumesInUse"] == ["c"]

    def test_directives(self, http, pod) -> None:
        pod["spec"]["containers"][0]["env"] = [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]
        pod["metadata"] |= {"finalizers": ["x.y/a", "x.y/b"], "labels": {"a": "1", "b": "2"}}
        http.post(PODS, pod)
        patch = {
            "metadata": {
                "labels": {"$patch": "replace", "c": "3"},
                "$deleteFromPrimitiveList/finalizers": ["x.y/a"],
                "finalizers": ["x.y/c"],
            }
        }
        after = http.patch(f"{PODS}/web", patch, STRATEGIC).metadata
        assert after["labels"] == {"c": "3"}
        assert after["finalizers"] == ["x.y/b", "x.y/c"]

    @pytest.mark.parametrize(
        ("patch", "drivers"),
        [
            ([{"name": "b.x", "nodeID": "2"}], ["a.x", "b.x"]),
            ([{"$patch": "delete", "name": "a.x"}], []),
            ([{"$patch": "replace"}, {"name": "c.x", "nodeID": "3"}], ["c.x"]),
        ],
    )
    def test_items_come_and_go(self, http, patch, drivers) -> None:
        path = "/apis/storage.k8s.io/v1/csinodes"
        http.post(path, {"metadata": {"name": "n1"}, "spec": {"drivers": [{"name": "a.x", "nodeID": "1"}]}})
        after = http.patch(f"{path}/n1", {"spec": {"drivers": patch}}, STRATEGIC).body
        assert [driver["name"] for driver in after["spec"]["drivers"] or ()] == drivers

    def test_item_without_its_key(self, http, pod) -> None:
        http.post(PODS, pod)
        assert http.patch(f"{PODS}/web", {"spec": {"containers": [{"image": "y"}]}}, STRATEGIC).code == 400

    def test_custom_kinds_take_none(self, http) -> None:
        path = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses/a"
        reply = http.patch(path, {}, STRATEGIC)
        assert (reply.code, reply.body["reason"]) == (415, "UnsupportedMediaType")


class TestJsonPatch:
    @pytest.mark.parametrize(
        ("operations", "data"),
        [
            ([{"op": "add", "path": "/data/b", "value": "2"}], {"a": "1", "b": "2"}),
            ([{"op": "replace", "path": "/data/a", "value": "2"}], {"a": "2"}),
            ([{"op": "remove", "path": "/data/a"}, {"op": "add", "path": "/data/b", "value": "3"}], {"b": "3"}),
            ([{"op": "move", "from": "/data/a", "path": "/data/b"}], {"b": "1"}),
            ([{"op": "copy", "from": "/data/a", "path": "/data/b"}], {"a": "1", "b": "1"}),
            ([{"op": "test", "path": "/data/a", "value": "1"}], {"a": "1"}),
        ],
    )
    def test_operations(self, http, made, operations, data) -> None:
        assert http.patch(f"{MAPS}/settings", operations, JSON_PATCH).body["data"] == data

    @pytest.mark.parametrize(
        ("operations", "code"),
        [
            ([{"op": "test", "path": "/data/a", "value": "2"}], 422),
            ([{"op": "remove", "path": "/data/none"}], 422),
            ([{"op": "replace", "path": "/data/none", "value": "1"}], 422),
            ([{"op": "grow", "path": "/data/a"}], 400),
            ([{"op": "add", "path": "/data/b"}], 400),
            ({"data": {}}, 400),
        ],
    )
    def test_operations_that_do_not_apply(self, http, made, operations, code) -> None:
        assert http.patch(f"{MAPS}/settings", operations, JSON_PATCH).code == code

    def test_keys_with_slashes(self, http, config_map) -> None:
        config_map["metadata"]["annotations"] = {"x.y/a": "1"}
        http.post(MAPS, config_map)
        operations = [{"op": "add", "path": "/metadata/annotations/x.y~1b", "value": "2"}]
        after = http.patch(f"{MAPS}/settings", operations, JSON_PATCH).metadata
        assert after["annotations"] == {"x.y/a": "1", "x.y/b": "2"}

    def test_lists(self, http, config_map) -> None:
        config_map["metadata"]["finalizers"] = ["x.y/a", "x.y/b"]
        http.post(MAPS, config_map)
        operations = [
            {"op": "remove", "path": "/metadata/finalizers/0"},
            {"op": "add", "path": "/metadata/finalizers/-", "value": "x.y/c"},
            {"op": "add", "path": "/metadata/finalizers/0", "value": "x.y/d"},
        ]
        after = http.patch(f"{MAPS}/settings", operations, JSON_PATCH).metadata
        assert after["finalizers"] == ["x.y/d", "x.y/b", "x.y/c"]


class TestApply:
    def wanted(self, **data: str) -> dict:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}

    def test_makes_and_merges(self, http) -> None:
        made = http.patch(f"{MAPS}/settings", self.wanted(a="1"), APPLY, fieldManager="one")
        assert made.code == 201
        http.patch(f"{MAPS}/settings", {"data": {"other": "x"}})
        after = http.patch(f"{MAPS}/settings", self.wanted(b="2"), APPLY, fieldManager="one")
        assert (after.code, after.body["data"]) == (200, {"other": "x", "b": "2"}), "what it applied before is gone"

    def test_what_another_owns_is_taken_by_force_only(self, http) -> None:
        http.patch(f"{MAPS}/settings", self.wanted(a="1"), APPLY, fieldManager="one")
        assert http.patch(f"{MAPS}/settings", self.wanted(a="1"), APPLY, fieldManager="two").code == 200
        reply = http.patch(f"{MAPS}/settings", self.wanted(a="2"), APPLY, fieldManager="two")
        assert (reply.code, reply.body["reason"]) == (409, "Conflict")
        assert reply.body["details"]["causes"] == [
            {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
        ]
        assert reply.body["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.a'
        forced = http.patch(f"{MAPS}/settings", self.wanted(a="2"), APPLY, fieldManager="two", force="true")
        assert forced.body["data"] == {"a": "2"}
        http.patch(f"{MAPS}/settings", self.wanted(), APPLY, fieldManager="one")
        assert http.get(f"{MAPS}/settings").body["data"] == {"a": "2"}, "it is not the first one's any more"

    def test_what_was_written_in_other_ways_is_owned_too(self, http) -> None:
        http.patch(f"{MAPS}/settings", self.wanted(a="1", b="1"), APPLY, fieldManager="one")
        http.patch(f"{MAPS}/settings", {"data": {"a": "2", "b": "2"}}, fieldManager="editor")
        reply = http.patch(f"{MAPS}/settings", self.wanted(a="1", b="1"), APPLY, fieldManager="one")
        assert reply.code == 409
        assert reply.body["message"].startswith('Apply failed with 2 conflicts: conflicts with "editor" using v1 at ')
        assert reply.body["message"].endswith(":\n- .data.a\n- .data.b")
        forced = http.patch(f"{MAPS}/settings", self.wanted(a="1"), APPLY, fieldManager="one", force="true")
        assert forced.body["data"] == {"a": "1", "b": "2"}, "b belongs to the editor"

    def test_dry_runs_own_nothing(self, http) -> None:
        http.patch(f"{MAPS}/settings", self.wanted(a="1"), APPLY, fieldManager="one")
        http.patch(f"{MAPS}/settings", {"data": {"a": "2"}}, fieldManager="editor", dryRun="All")
        assert http.patch(f"{MAPS}/settings", self.wanted(a="3"), APPLY, fieldManager="one").code == 200

    def test_managed_fields_must_not_be_sent(self, http) -> None:
        wanted = self.wanted(a="1")
        wanted["metadata"]["managedFields"] = [{"manager": "x"}]
        reply = http.patch(f"{MAPS}/settings", wanted, APPLY, fieldManager="one")
        assert (reply.code, reply.body["message"]) == (400, "metadata.managedFields must be nil")

    def test_lists_with_a_key_are_shared(self, http, pod) -> None:
        pod["spec"]["containers"].append({"name": "side", "image": "y"})
        http.post(PODS, pod)
        wanted = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "side", "image": "z"}]}}
        assert http.patch(f"{PODS}/web", wanted, APPLY, fieldManager="one").code == 409, "its maker owns the image"
        after = http.patch(f"{PODS}/web", wanted, APPLY, fieldManager="one", force="true").body
        assert [container["image"] for container in after["spec"]["containers"]][1] == "z"

    def test_yaml(self, http) -> None:
        body = b"apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n"
        assert http.patch(f"{MAPS}/settings", body, APPLY, fieldManager="one").body["data"] == {"a": "b"}

    def test_manager_and_kind_must_be_given(self, http) -> None:
        assert http.patch(f"{MAPS}/settings", self.wanted(), APPLY).code == 400
        assert http.patch(f"{MAPS}/settings", {"data": {}}, APPLY, fieldManager="one").code == 400

    def test_old_version_conflicts(self, http, made) -> None:
        http.patch(f"{MAPS}/settings", {"data": {"a": "2"}})
        wanted = self.wanted(b="1")
        wanted["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
        assert http.patch(f"{MAPS}/settings", wanted, APPLY, fieldManager="one").code == 409


def test_owners_are_shown_where_that_is_wanted(connect) -> None:
    with ApiServer(managed_fields=True) as server:
        http = connect(server)
        wanted = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"a": "b"}}}
        http.patch("/api/v1/nodes/n1", wanted, APPLY, fieldManager="one")
        condition = {"type": "Ready", "status": "True"}
        after = http.patch(f"{NODE}/status", {"status": {"conditions": [condition]}}, STRATEGIC, fieldManager="two")
        applied, updated = after.metadata["managedFields"]
        assert (applied["manager"], applied["operation"]) == ("one", "Apply")
        assert applied["fieldsV1"] == {"f:metadata": {"f:labels": {"f:a": {}}}}
        assert (updated["operation"], updated["subresource"], updated["fieldsType"]) == ("Update", "status", "FieldsV1")
        conditions = {'k:{"type":"Ready"}': {".": {}, "f:status": {}, "f:type": {}}}
        assert updated["fieldsV1"]["f:status"]["f:conditions"] == conditions
        again = http.put("/api/v1/nodes/n1", after.body)
        assert again.metadata["resourceVersion"] == after.metadata["resourceVersion"], "nothing changed"


def test_other_content_types(http, made) -> None:
    reply = http.patch(f"{MAPS}/settings", {}, "application/json")
    assert reply.code == 415
    assert "application/merge-patch+json" in reply.body["message"]
