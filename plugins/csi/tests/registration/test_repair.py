"""What others do to the Node and the CSINode is put right by itself, without a restart (BR-78)."""

from __future__ import annotations

import pytest

from volumehost.api.objects import CSINode, Node, ObjectMeta
from volumehost.errors import ObjectNotFoundError, StoreError
from volumehost_csi.client import NodeInfo
from volumehost_csi.registration.initialisation import CSINodeInitialisation
from volumehost_csi.registration.node_info import NodeInfoManager
from volumehost_csi.registration.node_object import NODE_ID_ANNOTATION, TopologyCollisionError

A, B = "a.example.com", "b.example.com"


@pytest.fixture
def manager(host, api) -> NodeInfoManager:
    api.create(Node(metadata=ObjectMeta(name="node-a", labels={"kubernetes.io/hostname": "node-a"})))
    made = NodeInfoManager(host)
    made.install(A, NodeInfo("n1", 10, {"t/zone": "z1"}))
    made.install(B, NodeInfo("n2"))
    return made


def drivers(api) -> list[str]:
    return sorted(each.name for each in api.get(CSINode, "node-a").spec.drivers)


def versions(api) -> list[str]:
    return [api.get(kind, "node-a").metadata.resource_version for kind in (Node, CSINode)]


def test_nothing_is_written_when_nothing_was_done(manager, api) -> None:
    before = versions(api)
    manager.repair()
    assert versions(api) == before


def test_a_csi_node_that_somebody_deleted_is_made_again(manager, api) -> None:
    api.delete(CSINode, "node-a")
    manager.repair()
    assert drivers(api) == [A, B]
    assert api.get(CSINode, "node-a").metadata.owner_references[0].uid == api.get(Node, "node-a").metadata.uid


def test_an_entry_and_an_annotation_that_somebody_removed_come_back(manager, api) -> None:
    api.patch(Node, "node-a", {"metadata": {"annotations": {NODE_ID_ANNOTATION: None}, "labels": {"t/zone": None}}})
    csi_node = api.get(CSINode, "node-a")
    csi_node.spec.drivers = []
    api.replace(csi_node)
    manager.repair()
    node = api.get(Node, "node-a").metadata
    assert drivers(api) == [A, B]
    assert (node.annotations[NODE_ID_ANNOTATION], node.labels["t/zone"]) == (f'{{"{A}":"n1","{B}":"n2"}}', "z1")


def test_a_node_made_anew_gets_a_csi_node_of_its_own(manager, api) -> None:
    """A stale owner reference would let the garbage collector delete it later."""
    api.delete(Node, "node-a")
    with pytest.raises(ObjectNotFoundError):
        manager.repair()
    new = api.create(Node(metadata=ObjectMeta(name="node-a")))
    manager.repair()
    csi_node = api.get(CSINode, "node-a")
    assert [owner.uid for owner in csi_node.metadata.owner_references] == [new.metadata.uid]
    assert drivers(api) == [A, B]
    assert api.get(Node, "node-a").metadata.labels == {"t/zone": "z1"}


def test_a_driver_that_has_left_does_not_come_back(manager, api) -> None:
    manager.uninstall(A)
    api.delete(CSINode, "node-a")
    manager.repair()
    assert drivers(api) == [B]


def test_one_driver_that_contradicts_a_label_does_not_keep_the_others(manager, api) -> None:
    api.patch(Node, "node-a", {"metadata": {"labels": {"t/zone": "z2"}}})
    api.delete(CSINode, "node-a")
    with pytest.raises(TopologyCollisionError):
        manager.repair()
    assert drivers(api) == [B]
    assert api.get(Node, "node-a").metadata.labels["t/zone"] == "z2"


def test_br78_neither_while_the_csi_node_is_there(manager, api, caplog) -> None:
    """And what cannot be put right is not tried over and over."""
    api.patch(Node, "node-a", {"metadata": {"labels": {"t/zone": "z2"}, "annotations": {NODE_ID_ANNOTATION: None}}})
    csi_node = api.get(CSINode, "node-a")
    csi_node.spec.drivers = [each for each in csi_node.spec.drivers if each.name == A]
    api.replace(csi_node)
    for _ in range(2):
        with pytest.raises(TopologyCollisionError):
            manager.repair()
    assert drivers(api) == [A, B]
    assert api.get(Node, "node-a").metadata.annotations[NODE_ID_ANNOTATION] == f'{{"{B}":"n2"}}'
    assert [record.args for record in caplog.records if "put right" in record.msg] == [(B,)]


def test_the_loop_repairs_and_the_node_is_not_ready_while_it_cannot(manager, api, host, wait_until, monkeypatch):
    running = CSINodeInitialisation(host, manager, repair_seconds=0.01)
    running.start()
    wait_until(lambda: host.kubelet_error is None, "ready")
    with monkeypatch.context() as broken:

        def refuse(*_: object) -> None:
            raise StoreError("the API refuses it")

        broken.setattr(manager, "_is_right", refuse)
        api.delete(CSINode, "node-a")
        wait_until(lambda: "refuses" in str(host.kubelet_error), "not ready")
    wait_until(lambda: host.kubelet_error is None, "ready again")
    assert drivers(api) == [A, B]
    running.stop()
