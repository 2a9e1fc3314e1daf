"""Node and CSINode in a real store (CSI-NIM, CSI-EDGE-33 to -36, CSI-SOLO-05)."""

from __future__ import annotations

import json
import threading

import pytest

from volumehost.api.objects import CSINode, CSINodeDriver, CSINodeSpec, Node, ObjectMeta, OwnerReference
from volumehost.api.store import EmbeddedStore
from volumehost.errors import (
    ConflictError,
    InvalidObjectError,
    ObjectNotFoundError,
    StorageDriverError,
    StoreError,
    error_chain,
)
from volumehost.hosts.node_host import NodeHost
from volumehost_csi.client import NodeInfo
from volumehost_csi.registration import api_writes
from volumehost_csi.registration.csi_node_object import LARGEST_LIMIT, MIGRATED_ANNOTATION
from volumehost_csi.registration.node_info import NodeInfoManager
from volumehost_csi.registration.node_object import NODE_ID_ANNOTATION, TopologyCollisionError

A, B = "a.example.com", "b.example.com"


@pytest.fixture
def manager(host) -> NodeInfoManager:
    return NodeInfoManager(host, register_node=True)


@pytest.fixture
def csi_node(api):
    return lambda: api.get(CSINode, "node-a")


@pytest.fixture
def the_node(api):
    return lambda: api.get(Node, "node-a")


def entries(csi_node: CSINode) -> list[tuple[str, str, list[str], int | None]]:
    return [
        (each.name, each.node_id, each.topology_keys, each.allocatable.count if each.allocatable else None)
        for each in csi_node.spec.drivers
    ]


def ids(node: Node) -> dict[str, str]:
    return json.loads(node.metadata.annotations.get(NODE_ID_ANNOTATION, "{}"))


def test_install_on_an_empty_store_makes_both_objects(manager, csi_node, the_node) -> None:
    """CSI-NIM-06, -09, -15, -20: and the Node, as a kubelet registers itself, with the host's labels."""
    manager.install(A, NodeInfo("n1", 10, {"t/zone": "z1", "t/rack": "r"}))
    assert entries(csi_node()) == [(A, "n1", ["t/rack", "t/zone"], 10)]
    node = the_node()
    assert ids(node) == {A: "n1"}
    assert node.metadata.labels["t/zone"] == "z1"
    assert node.metadata.labels["kubernetes.io/hostname"] == "node-a"
    owner = csi_node().metadata.owner_references
    assert [(each.api_version, each.kind, each.name, each.uid) for each in owner] == [
        ("v1", "Node", "node-a", node.metadata.uid)
    ]


def test_in_a_cluster_no_node_is_invented(api, short_dir) -> None:
    """The kubelet makes the Node; a host with a wrong name must not."""
    with pytest.raises(ObjectNotFoundError, match="node-a"):
        NodeInfoManager(NodeHost(short_dir, node_name="node-a", api=api)).install(A, NodeInfo("n1"))


def test_nothing_is_written_when_nothing_changes(manager, csi_node, the_node) -> None:
    """CSI-NIM-13 improved, -17, CSI-EDGE-33."""
    info = NodeInfo("n1", 0, {"t/zone": "z1"})
    manager.install(A, info)
    before = (csi_node().metadata.resource_version, the_node().metadata.resource_version)
    manager.install(A, info)
    manager.update(A, info)
    manager.initialize()
    assert (csi_node().metadata.resource_version, the_node().metadata.resource_version) == before


@pytest.mark.parametrize(
    ("limit", "stored"),
    [
        (10, 10),
        (0, None),
        (-3, None),
        (LARGEST_LIMIT, LARGEST_LIMIT),
        (LARGEST_LIMIT + 1, LARGEST_LIMIT),
        (2**62, LARGEST_LIMIT),
    ],
)
def test_limits_are_put_in_range_before_they_are_compared(manager, csi_node, limit, stored) -> None:
    """CSI-NIM-16, -18 improved, CSI-EDGE-33."""
    manager.install(A, NodeInfo("n1", limit))
    assert entries(csi_node())[0][3] == stored
    before = csi_node().metadata.resource_version
    manager.update(A, NodeInfo("n1", limit))
    assert csi_node().metadata.resource_version == before


def test_a_limit_may_change_in_place(manager, csi_node) -> None:
    """CSI-EDGE-33: 10 to 20, to none, and back."""
    for limit, stored in ((10, 10), (20, 20), (0, None), (5, 5)):
        manager.update(A, NodeInfo("n1", limit))
        assert entries(csi_node()) == [(A, "n1", [], stored)]


def test_an_update_leaves_the_node_alone(manager, csi_node, the_node) -> None:
    """CSI-NIM-22: neither its annotation nor its labels follow."""
    manager.install(A, NodeInfo("n1", 3, {"t/zone": "z1"}))
    before = the_node().metadata
    manager.update(A, NodeInfo("n2", 4, {"t/region": "r1"}))
    assert entries(csi_node()) == [(A, "n2", ["t/region"], 4)]
    assert the_node().metadata.resource_version == before.resource_version


def test_other_drivers_keep_their_order(manager, csi_node, the_node) -> None:
    """CSI-NIM-10, -19, CSI-EDGE-33."""
    for driver in (A, B, "c.example.com"):
        manager.install(driver, NodeInfo("n1"))
    manager.install(A, NodeInfo("n1", 5))
    assert [each.name for each in csi_node().spec.drivers] == [B, "c.example.com", A]
    assert ids(the_node()) == {A: "n1", B: "n1", "c.example.com": "n1"}


def test_a_node_id_that_changes_is_removed_first_and_added_then(manager, api, csi_node, the_node) -> None:
    """CSI-NIM-21 improved, CSI-REG-10: the API refuses to change it in place, so it goes in between."""
    manager.install(A, NodeInfo("n1", 5))
    manager.install(B, NodeInfo("n1"))
    start = csi_node().metadata.resource_version
    manager.install(A, NodeInfo("n2", 5))
    assert entries(csi_node()) == [(B, "n1", [], None), (A, "n2", [], 5)]
    assert ids(the_node()) == {A: "n2", B: "n1"}
    steps = [
        [driver.name for driver in event.object.spec.drivers]
        for event in api.watch(CSINode, resource_version=start, timeout=0)
        if event.type == "MODIFIED"
    ]
    assert steps == [[B], [B, A]]


def test_topology_keys_that_change_leave_their_label_behind_and_that_is_told(
    manager, csi_node, the_node, caplog
) -> None:
    """CSI-NIM-12 improved, CSI-EDGE-33."""
    manager.install(A, NodeInfo("n1", 0, {"t/zone": "z1"}))
    manager.install(B, NodeInfo("n1", 0, {"t/rack": "r1"}))
    manager.install(A, NodeInfo("n1", 0, {"t/region": "x"}))
    assert entries(csi_node())[-1] == (A, "n1", ["t/region"], None)
    labels = the_node().metadata.labels
    assert (labels["t/zone"], labels["t/region"]) == ("z1", "x")
    assert manager.stale_labels == {A: ("t/zone",)}
    assert "t/zone" in caplog.text
    manager.uninstall(A)
    assert manager.stale_labels == {}


def test_a_label_that_another_driver_has_too_is_not_stale(manager) -> None:
    """CSI-NIM-12."""
    manager.install(A, NodeInfo("n1", 0, {"t/zone": "z1"}))
    manager.install(B, NodeInfo("n1", 0, {"t/zone": "z1"}))
    manager.install(A, NodeInfo("n1", 0, {}))
    assert manager.stale_labels == {}


def test_a_topology_value_that_changes_collides(manager, csi_node, the_node) -> None:
    """CSI-NIM-11, CSI-EDGE-33: nothing is written, and the error says what to do."""
    manager.install(A, NodeInfo("n1", 0, {"t/zone": "z1"}))
    before = (csi_node(), the_node())
    with pytest.raises(TopologyCollisionError, match="t/zone=z2 where the node has z1") as caught:
        manager.install(A, NodeInfo("n2", 0, {"t/zone": "z2", "t/other": "o"}))
    assert "remove the old label (t/zone) from the Node" in str(caught.value)
    assert (csi_node(), the_node()) == before


def test_an_empty_node_id_is_refused(manager, api) -> None:
    """CSI-NIM-09, CSI-EDGE-33."""
    with pytest.raises(StorageDriverError, match="node id is empty"):
        manager.install(A, NodeInfo(""))
    assert api.list(CSINode).items == []


def test_an_annotation_that_is_broken_is_not_overwritten(manager, api, the_node) -> None:
    """CSI-NIM-10, -24."""
    for text in ("{", "[]", '{"a": 1}'):
        manager.initialize()
        api.patch(Node, "node-a", {"metadata": {"annotations": {NODE_ID_ANNOTATION: text}}})
        with pytest.raises(InvalidObjectError, match="mend or remove the annotation"):
            manager.install(A, NodeInfo("n1"))
        with pytest.raises(InvalidObjectError, match="mend or remove the annotation"):
            manager.uninstall(A)
        assert the_node().metadata.annotations[NODE_ID_ANNOTATION] == text


def test_uninstall(manager, csi_node, the_node) -> None:
    """CSI-NIM-23, -24, CSI-EDGE-35: the others stay, labels stay, the object stays."""
    manager.install(A, NodeInfo("n1", 0, {"t/zone": "z1"}))
    manager.install(B, NodeInfo("n2"))
    manager.uninstall(A)
    assert entries(csi_node()) == [(B, "n2", [], None)]
    assert ids(the_node()) == {B: "n2"}
    assert the_node().metadata.labels["t/zone"] == "z1"
    manager.uninstall(B)
    assert csi_node().spec.drivers == []
    assert NODE_ID_ANNOTATION not in the_node().metadata.annotations


def test_uninstall_where_nothing_is(manager, api) -> None:
    """CSI-EDGE-35: success, and no object is made for it."""
    manager.uninstall(A)
    assert api.list(CSINode).items == []
    assert api.list(Node).items == []
    manager.install(B, NodeInfo("n1"))
    before = [api.get(kind, "node-a").metadata.resource_version for kind in (CSINode, Node)]
    manager.uninstall(A)
    assert [api.get(kind, "node-a").metadata.resource_version for kind in (CSINode, Node)] == before


def test_the_csi_node_of_an_earlier_node_is_made_anew(host, api, csi_node, the_node) -> None:
    """CSI-NIM-05, -07, CSI-EDGE-34: its drivers are gone; owner and annotation are right."""
    stranger = OwnerReference(api_version="v1", kind="Node", name="node-a", uid="an-earlier-one")
    old = CSINode(
        metadata=ObjectMeta(name="node-a", owner_references=[stranger]),
        spec=CSINodeSpec(drivers=[CSINodeDriver(name=B, node_id="old")]),
    )
    api.create(old)
    manager = NodeInfoManager(host, register_node=True, migrated=["kubernetes.io/cinder"])
    manager.install(A, NodeInfo("n1"))
    assert entries(csi_node()) == [(A, "n1", [], None)]
    assert csi_node().metadata.owner_references[0].uid == the_node().metadata.uid
    assert csi_node().metadata.annotations == {MIGRATED_ANNOTATION: "kubernetes.io/cinder"}


def test_a_csi_node_of_ours_is_kept_whoever_asks_first(manager, host, csi_node) -> None:
    """CSI-NIM-08 improved: a manager that starts knows no UID, and fetches it before it judges."""
    manager.install(A, NodeInfo("n1"))
    uid = csi_node().metadata.uid
    NodeInfoManager(host, register_node=True).install(B, NodeInfo("n1"))
    assert csi_node().metadata.uid == uid
    assert [each.name for each in csi_node().spec.drivers] == [A, B]


@pytest.mark.parametrize(
    ("before", "migrated", "after"),
    [
        ({}, None, {}),
        ({MIGRATED_ANNOTATION: "x", "other": "o"}, None, {MIGRATED_ANNOTATION: "x", "other": "o"}),
        ({"other": "o"}, ["b", "a"], {MIGRATED_ANNOTATION: "a,b", "other": "o"}),
        ({MIGRATED_ANNOTATION: "b,a"}, ["b", "a"], {MIGRATED_ANNOTATION: "b,a"}),
        ({MIGRATED_ANNOTATION: "a", "other": "o"}, [], {"other": "o"}),
    ],
)
def test_the_annotation_of_migrated_plugins(host, api, csi_node, before, migrated, after) -> None:
    """CSI-NIM-25, CSI-EDGE-36."""
    NodeInfoManager(host, register_node=True).initialize()
    api.patch(CSINode, "node-a", {"metadata": {"annotations": before}})
    NodeInfoManager(host, register_node=True, migrated=migrated).initialize()
    assert csi_node().metadata.annotations == after


def test_topology_keys_that_the_api_refuses(manager) -> None:
    """CSI-NIM-21: clear, and not repeated."""
    with pytest.raises(InvalidObjectError, match="labels"):
        manager.install(A, NodeInfo("n1", 0, {"not a key": "v"}))


def test_two_writers_both_win(manager, host, csi_node, the_node, api, short_dir) -> None:
    """CSI-NIM-04, -03 improved: conflicts are repeated until each has written."""
    manager.initialize()
    failures: list[Exception] = []
    start = threading.Barrier(4)

    def install(number: int) -> None:
        with EmbeddedStore(f"{short_dir}/api.db") as own:
            mine = NodeInfoManager(type(host)(short_dir, node_name="node-a", api=own), register_node=True)
            start.wait(30)
            try:
                for round_ in range(5):
                    mine.install(f"d{number}.example.com", NodeInfo("n", round_ + 1))
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=install, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(name for name, *_ in entries(csi_node())) == [f"d{number}.example.com" for number in range(4)]
    assert {count for *_, count in entries(csi_node())} == {5}
    assert sorted(ids(the_node())) == [f"d{number}.example.com" for number in range(4)]


def test_without_an_api_it_is_kept_here(bare_host) -> None:
    """CSI-SOLO-05."""
    manager = NodeInfoManager(bare_host)
    manager.initialize()
    manager.install(A, NodeInfo("n1"))
    manager.update(A, NodeInfo("n1", 5))
    assert manager.local == {A: NodeInfo("n1", 5)}
    manager.uninstall(A)
    assert manager.local == {}


def test_conflicts_are_repeated_for_longer_than_failures_and_refusals_not_at_all() -> None:
    """CSI-NIM-03 improved."""
    for error, attempts in (
        (ConflictError("changed"), api_writes.CONFLICT_ATTEMPTS),
        (StoreError("no answer"), api_writes.UNAVAILABLE_ATTEMPTS),
        (InvalidObjectError(subject="x", problems=[("a", "b")]), 1),
        (TopologyCollisionError("collides"), 1),
        (ObjectNotFoundError("none"), 1),
    ):
        tries, pauses = [], []

        def attempt(error=error, tries=tries) -> None:
            tries.append(1)
            raise error

        with pytest.raises(type(error)):
            api_writes.repeated(attempt, pause=pauses.append)
        assert len(tries) == attempts
        assert len(pauses) == attempts - 1
        assert all(seconds <= 0.55 for seconds in pauses)


def test_the_pauses_after_failures_are_those_of_the_kubelet() -> None:
    """CSI-NIM-03: about 10, 50 and 250 milliseconds."""
    pauses: list[float] = []

    def attempt() -> None:
        raise StoreError("no answer")

    with pytest.raises(StoreError) as caught:
        api_writes.repeated(attempt, pause=pauses.append)
    assert [pytest.approx(expected, rel=0.11) for expected in (0.0105, 0.0525, 0.2625)] == pauses
    assert len(list(error_chain(caught.value))) < 3
