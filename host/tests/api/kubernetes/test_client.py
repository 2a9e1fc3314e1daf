"""What the contract does not ask for: unknown fields, the number of requests, lists in parts, nulls."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from volumehost.api.convert import to_wire
from volumehost.api.kubernetes import KubernetesClient, paging
from volumehost.api.kubernetes.bulk import without_collecting
from volumehost.api.objects import ConfigMap, CSINode, Node, ObjectMeta, Pod, Taint, VolumeAttachment
from volumehost.errors import ConflictError, GoneError
from volumehost.testing.api_server import ApiServer, Rule

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "spec": {
        "futureSpec": {"deep": [1, None]},
        "taints": [{"key": "a", "effect": "NoSchedule", "futureTaint": 1}, {"key": "b", "effect": "NoExecute"}],
    },
    "status": {"futureStatus": "kept", "volumesInUse": ["v1"]},
}


def test_fields_of_a_newer_api_survive_a_write(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.objects.put(NODE)
    node = kubernetes_client.get(Node, "n1")
    node.metadata.labels["x"] = "y"
    node.spec.taints = [Taint(key="c", effect="NoSchedule"), *node.spec.taints[:1]]
    node = kubernetes_client.replace(node)
    node.status.volumes_in_use = ["v2"]
    kubernetes_client.replace_status(node)

    found = server.objects.get("nodes", "n1")
    assert found["metadata"]["labels"] == {"x": "y"}
    assert found["spec"]["futureSpec"] == {"deep": [1, None]}
    assert [taint["key"] for taint in found["spec"]["taints"]] == ["c", "a"]
    assert found["spec"]["taints"][1]["futureTaint"] == 1
    assert found["status"]["futureStatus"] == "kept"
    assert found["status"]["volumesInUse"] == ["v2"]
    # What was just read needs no second read.
    assert server.requests.count(verb="get") == 1


def test_fields_of_a_newer_api_survive_when_the_object_came_from_a_list(
    server: ApiServer, kubernetes_client: KubernetesClient
) -> None:
    server.objects.put(NODE)
    (node,) = kubernetes_client.list(Node).items
    node.metadata.labels["x"] = "y"
    kubernetes_client.replace(node)
    assert server.objects.get("nodes", "n1")["spec"]["futureSpec"] == {"deep": [1, None]}
    assert server.requests.count(verb="get") == 1


def test_a_kind_without_status_is_written_whole(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.objects.put(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": "n1"},
            "spec": {"drivers": [{"name": "csi.example.com", "nodeID": "n1", "futureDriver": True}]},
        }
    )
    csi_node = kubernetes_client.get(CSINode, "n1")
    csi_node.metadata.annotations["a"] = "b"
    kubernetes_client.replace(csi_node)
    found = server.objects.get("csinodes", "n1")
    assert found["spec"]["drivers"][0]["futureDriver"] is True
    assert found["metadata"]["annotations"] == {"a": "b"}


def test_a_mapping_is_written_as_it_is(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.objects.put(NODE)
    document = to_wire(kubernetes_client.get(Node, "n1")) | {"futureTop": 1}
    kubernetes_client.replace(document)
    assert server.objects.get("nodes", "n1")["futureTop"] == 1


def test_an_outdated_object_conflicts_without_a_write(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.objects.put(NODE)
    (node,) = kubernetes_client.list(Node).items
    server.objects.put(NODE | {"spec": {"unschedulable": True}})
    with pytest.raises(ConflictError, match="changed since"):
        kubernetes_client.replace(node)
    server.recreate("nodes", "n1")
    node.metadata.resource_version = ""
    with pytest.raises(ConflictError, match="another object"):
        kubernetes_client.replace(node)
    assert server.requests.count(verb="update") == 0


def test_without_a_version_others_writes_do_not_matter(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.objects.put(NODE)
    node = Node(metadata=ObjectMeta(name="n1", labels={"x": "y"}))
    server.faults.add(Rule(verb="update", code=409, reason="Conflict", times=2))
    kubernetes_client.replace(node)
    assert server.objects.get("nodes", "n1")["metadata"]["labels"] == {"x": "y"}
    assert server.requests.count(verb="update") == 3


def test_generated_names_that_are_taken_are_generated_anew(
    server: ApiServer, kubernetes_client: KubernetesClient
) -> None:
    server.faults.add(Rule(verb="create", code=409, reason="AlreadyExists", times=2))
    made = kubernetes_client.create(ConfigMap(metadata=ObjectMeta(generate_name="c-")))
    assert made.metadata.name.startswith("c-")


def test_nulls_of_the_server_are_absent(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    # Go writes a list that is nil and not left out so: a CSINode without drivers, a container without arguments.
    body = b'{"kind":"CSINode","metadata":{"name":"n1","labels":null},"spec":{"drivers":null}}'
    server.faults.add(Rule(body=body, content_type="application/json"))
    found = kubernetes_client.get(CSINode, "n1")
    assert (found.spec.drivers, found.metadata.labels) == ([], {})
    items = b'[{"metadata":{"name":"n1"},"spec":{"drivers":null}}]'
    listed = b'{"kind":"CSINodeList","metadata":{"resourceVersion":"7"},"items":' + items + b"}"
    server.faults.add(Rule(body=listed, content_type="application/json"))
    assert kubernetes_client.list(CSINode).items[0].spec.drivers == []
    empty = listed.replace(items, b"null")
    server.faults.add(Rule(body=empty, content_type="application/json"))
    assert kubernetes_client.list(CSINode).items == []


@pytest.fixture
def many(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(paging, "PAGE", 3)
    monkeypatch.setattr(paging.pages, "__kwdefaults__", {"size": 3, "patient": True})
    names = [f"c{index}" for index in range(10)]
    for name in names:
        server.objects.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    server.requests.clear()
    return names


def test_long_lists_come_in_parts_and_sorted(
    server: ApiServer, kubernetes_client: KubernetesClient, many: list[str]
) -> None:
    found = kubernetes_client.list(ConfigMap, "default")
    assert [obj.metadata.name for obj in found.items if obj.metadata.name in many] == many
    assert found.resource_version
    requests = server.requests.all(verb="list")
    assert len(requests) >= 4
    assert all(request.query["limit"] == "3" for request in requests)


def test_a_list_that_expires_on_the_way_begins_anew(
    server: ApiServer, kubernetes_client: KubernetesClient, many: list[str]
) -> None:
    server.faults.add(Rule(verb="list", code=410, skip=2))
    found = [obj.metadata.name for obj in kubernetes_client.list(ConfigMap, "default").items]
    assert [name for name in found if name in many] == many


def test_a_list_that_always_expires_is_asked_for_as_a_whole(
    server: ApiServer, kubernetes_client: KubernetesClient, many: list[str]
) -> None:
    server.faults.add(Rule(verb="list", code=410, skip=1), Rule(verb="list", code=410, skip=3))
    found = [obj.metadata.name for obj in kubernetes_client.list(ConfigMap, "default").items]
    assert [name for name in found if name in many] == many
    assert "limit" not in server.requests.all(verb="list")[-1].query


def test_a_list_that_is_gone_at_once_is_gone(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.faults.add(Rule(verb="list", code=410, times=None))
    with pytest.raises(GoneError):
        kubernetes_client.list(Pod)
    assert server.requests.count() == 1


def test_fields_select_on_the_server(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    for name, node in (("a", "n1"), ("b", "n2")):
        container = {"name": "c", "image": "registry.example.com/none"}
        server.objects.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {"nodeName": node, "containers": [container]},
            }
        )
    found = kubernetes_client.list(Pod, fields="spec.nodeName=n2")
    assert [pod.metadata.name for pod in found.items] == ["b"]


def test_a_delete_gives_the_last_state_for_one_request_when_it_is_known(
    server: ApiServer, kubernetes_client: KubernetesClient
) -> None:
    made = kubernetes_client.create(ConfigMap(metadata=ObjectMeta(name="c"), data={"a": "1"}))
    assert kubernetes_client.delete(ConfigMap, "c", uid=made.metadata.uid).data == {"a": "1"}
    assert server.requests.count(verb="get") == 0
    assert server.requests.count(verb="delete") == 1


def test_attachments_keep_their_status_apart(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    attachment = VolumeAttachment(metadata=ObjectMeta(name="a"))
    attachment.spec.attacher, attachment.spec.node_name = "csi.example.com", "n1"
    attachment.spec.source.persistent_volume_name = "pv"
    made = kubernetes_client.create(attachment)
    made.status.attached = True
    assert not kubernetes_client.replace(made).status.attached
    assert kubernetes_client.replace_status(made).status.attached


def test_the_garbage_collector_rests_only_while_lists_are_read(
    server: ApiServer, kubernetes_client: KubernetesClient
) -> None:
    with without_collecting():
        assert not gc.isenabled()
        kubernetes_client.list(ConfigMap)
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with without_collecting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
