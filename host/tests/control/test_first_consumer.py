"""WaitForFirstConsumer: this node is the only one, and a pod that is known is the first consumer."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.api.convert import to_object
from volumehost.api.objects import CSIDriver, CSINode, CSIStorageCapacity, Node, PersistentVolumeClaim, Pod

DRIVER = "driver.example.com"
SELECTED = "volume.kubernetes.io/selected-node"
ZONE = "topology.example.com/zone"


@pytest.fixture
def delayed(world: Any, make: Any) -> Any:
    """A world whose class waits for the first consumer, on a node in zone a."""
    world.api.create(make.storage_class(delayed=True))
    world.api.create(to_object(Node, {"metadata": {"name": "node-1", "labels": {ZONE: "a", "rack": "7"}}}))
    return world


def register(world: Any, keys: list[str], node: str = "node-1") -> None:
    drivers = [{"name": DRIVER, "nodeID": node, "topologyKeys": keys}]
    world.api.create(to_object(CSINode, {"metadata": {"name": node}, "spec": {"drivers": drivers}}))


def waits_with(world: Any, text: str, name: str = "data") -> None:
    world.wait(lambda: any(text in line for line in world.planes[-1].explain(world.claim(name))), text)


def test_pvc_10_without_a_consumer_it_waits(delayed: Any, make: Any) -> None:
    delayed.api.create(make.claim())
    delayed.run_all()
    delayed.wait(lambda: bool(delayed.events("WaitForFirstConsumer")))
    waits_with(delayed, "waiting for first consumer")
    delayed.settle()
    assert delayed.driver.count("create_volume") == 0
    register(delayed, [])
    delayed.api.create(make.pod(claims=["data"]))
    delayed.wait(delayed.bound)
    assert delayed.claim().metadata.annotations[SELECTED] == "node-1"


def test_a_pod_of_this_node_counts_and_one_of_another_does_not(delayed: Any, make: Any) -> None:
    register(delayed, [])
    delayed.api.create(make.claim())
    delayed.api.create(make.claim("mine"))
    delayed.api.create(make.pod("there", claims=["data"], node="node-2"))
    delayed.api.create(make.pod("here", claims=["mine"], node="node-1"))
    delayed.run_all()
    delayed.wait(lambda: delayed.bound("mine"))
    delayed.wait(lambda: bool(delayed.events("WaitForPodScheduled")))
    assert delayed.events("WaitForPodScheduled")[0].message == "waiting for pod there to be scheduled"
    delayed.settle()
    assert SELECTED not in delayed.claim().metadata.annotations


@pytest.mark.parametrize("end", ["finished", "deleted"])
def test_a_pod_at_its_end_is_no_consumer(delayed: Any, make: Any, end: str) -> None:
    register(delayed, [])
    pod = make.pod(claims=["data"])
    pod.metadata.finalizers = ["example.com/stays"]
    pod = delayed.api.create(pod)
    if end == "deleted":
        delayed.api.delete(Pod, "web", "default")
    else:
        pod.status.phase = "Succeeded"
        delayed.api.replace_status(pod)
    delayed.api.create(make.claim())
    delayed.run_all()
    delayed.wait(lambda: bool(delayed.events("WaitForFirstConsumer")))
    delayed.settle()
    assert delayed.driver.count("create_volume") == 0


def test_the_topology_of_the_node_goes_to_the_driver_first(delayed: Any, make: Any) -> None:
    register(delayed, [ZONE])
    delayed.api.create(to_object(Node, {"metadata": {"name": "another", "labels": {ZONE: "0"}}}))
    register(delayed, [ZONE], "another")
    delayed.driver.topology = [{ZONE: "a"}]
    delayed.api.create(make.claim())
    delayed.api.create(make.pod(claims=["data"]))
    delayed.run_all()
    delayed.wait(delayed.bound)
    request = delayed.driver.last("create_volume")["request"]
    assert {each[ZONE] for each in request.requisite} == {"a", "0"}
    assert request.preferred[0] == {ZONE: "a"}
    affinity = delayed.volume(delayed.claim().spec.volume_name).spec.node_affinity
    (term,) = affinity.required.node_selector_terms
    assert [(each.key, each.operator, each.values) for each in term.match_expressions] == [(ZONE, "In", ["a"])]


def test_a_driver_without_topology_is_asked_for_none(delayed: Any, make: Any) -> None:
    register(delayed, [])
    delayed.api.create(make.claim())
    delayed.api.create(make.pod(claims=["data"]))
    delayed.run_all()
    delayed.wait(delayed.bound)
    request = delayed.driver.last("create_volume")["request"]
    assert (list(request.requisite), list(request.preferred)) == ([], [])
    assert delayed.volume(delayed.claim().spec.volume_name).spec.node_affinity is None


def test_a_driver_that_has_not_registered_on_the_node_is_waited_for(delayed: Any, make: Any) -> None:
    """BR-27: provisioning goes on as soon as it has."""
    delayed.api.create(make.claim())
    delayed.api.create(make.pod(claims=["data"]))
    delayed.run_all(first_delay=1000.0)
    waits_with(delayed, f"driver {DRIVER} has not registered on node node-1 yet")
    register(delayed, [])
    delayed.wait(delayed.bound)


def test_br_27_a_driver_that_is_only_now_started_labels_the_node_in_time(world: Any, make: Any) -> None:
    """Looking the driver up starts it, and its registration tells where the node is."""
    hall = "topology.example.com/hall"
    find = world.find_driver

    def starting(name: str) -> Any:
        if not world.api.list(CSINode).items:
            world.api.create(to_object(Node, {"metadata": {"name": "node-1", "labels": {hall: "7"}}}))
            register(world, [hall])
        return find(name)

    world.find_driver = starting
    term = {"matchLabelExpressions": [{"key": hall, "values": ["7"]}]}
    world.api.create(make.storage_class(delayed=True, allowedTopologies=[term]))
    world.api.create(make.claim())
    world.api.create(make.pod(claims=["data"]))
    world.run_all(first_delay=1000.0)
    world.wait(world.bound)
    assert not world.events("ProvisioningFailed")
    assert world.driver.last("create_volume")["request"].preferred[0] == {hall: "7"}


def test_labels_that_the_registration_should_have_set_are_missed(delayed: Any, make: Any) -> None:
    register(delayed, ["topology.example.com/hall"])
    delayed.api.create(make.claim())
    delayed.api.create(make.pod(claims=["data"]))
    delayed.run_all(first_delay=1000.0)
    waits_with(delayed, "lacks the topology labels topology.example.com/hall")
    delayed.api.patch(Node, "node-1", {"metadata": {"labels": {"topology.example.com/hall": "1"}}})
    delayed.wait(delayed.bound)


def test_allowed_topologies_hold_for_the_node(world: Any, make: Any) -> None:
    term = {"matchLabelExpressions": [{"key": ZONE, "values": ["b", "c"]}]}
    world.api.create(make.storage_class(delayed=True, allowedTopologies=[term]))
    world.api.create(to_object(Node, {"metadata": {"name": "node-1", "labels": {ZONE: "a"}}}))
    register(world, [ZONE])
    world.api.create(make.claim())
    world.api.create(make.pod(claims=["data"]))
    world.run_all(first_delay=1000.0)
    waits_with(world, "in none of the topologies that storage class fast allows")
    assert world.events("ProvisioningFailed")[0].event_type == "Warning"
    world.api.patch(Node, "node-1", {"metadata": {"labels": {ZONE: "c"}}})
    world.wait(world.bound)
    request = world.driver.last("create_volume")["request"]
    assert list(request.requisite) == [{ZONE: "b"}, {ZONE: "c"}]
    assert request.preferred[0] == {ZONE: "c"}


def test_immediate_claims_get_the_topologies_of_all_nodes_or_those_allowed(world: Any, make: Any) -> None:
    rack = {"key": "rack", "values": ["7"]}
    term = {"matchLabelExpressions": [{"key": ZONE, "values": ["b", "c"]}, rack]}
    world.api.create(make.storage_class("some", allowedTopologies=[term]))
    world.api.create(make.storage_class("all"))
    world.api.create(to_object(Node, {"metadata": {"name": "node-1", "labels": {ZONE: "a"}}}))
    register(world, [ZONE])
    for name in ("some", "all"):
        world.api.create(make.claim(name, storage_class=name))
    world.run_all()
    world.wait(lambda: world.bound("some") and world.bound("all"))
    requests = {
        call.arguments["request"].name: list(call.arguments["request"].requisite)
        for call in world.driver.calls
        if call.method == "create_volume"
    }
    assert requests[world.claim("all").spec.volume_name] == [{ZONE: "a"}]
    assert requests[world.claim("some").spec.volume_name] == [{ZONE: "b", "rack": "7"}, {ZONE: "c", "rack": "7"}]


@pytest.mark.parametrize(
    ("capacity", "maximum", "fits"), [("5Gi", None, True), ("5Gi", "1Mi", False), ("1Mi", None, False)]
)
def test_told_capacity_decides_before_the_driver_is_asked(
    delayed: Any, make: Any, capacity: str, maximum: str | None, fits: bool
) -> None:
    register(delayed, [])
    delayed.api.create(to_object(CSIDriver, {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": True}}))
    told = {
        "metadata": {"name": "c", "namespace": "default"},
        "storageClassName": "fast",
        "capacity": capacity,
        "nodeTopology": {"matchLabels": {ZONE: "a"}},
        **({"maximumVolumeSize": maximum} if maximum else {}),
    }
    delayed.api.create(to_object(CSIStorageCapacity, told))
    delayed.api.create(make.claim())
    delayed.api.create(make.pod(claims=["data"]))
    delayed.run_all(first_delay=1000.0)
    if fits:
        delayed.wait(delayed.bound)
        return
    waits_with(delayed, "not enough capacity")
    delayed.settle()
    assert delayed.driver.count("create_volume") == 0


def test_capacity_of_another_topology_does_not_count(delayed: Any, make: Any) -> None:
    delayed.api.create(to_object(CSIDriver, {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": True}}))
    told = {
        "metadata": {"name": "c", "namespace": "default"},
        "storageClassName": "fast",
        "capacity": "5Gi",
        "nodeTopology": {"matchLabels": {ZONE: "b"}},
    }
    delayed.api.create(to_object(CSIStorageCapacity, told))
    delayed.api.create(make.claim())
    delayed.api.create(make.pod(claims=["data"]))
    delayed.run_all(first_delay=1000.0)
    waits_with(delayed, "the driver tells of none")


@pytest.mark.parametrize("external", [False, True])
def test_capacity_that_nobody_tells_of_is_missed_only_where_somebody_should(
    delayed: Any, make: Any, external: bool
) -> None:
    delayed.external_drivers = external
    register(delayed, [])
    delayed.api.create(to_object(CSIDriver, {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": True}}))
    delayed.api.create(make.claim(annotations={SELECTED: "node-1"}))
    delayed.api.create(make.pod(claims=["data"]))
    delayed.run_all(first_delay=1000.0)
    if external:
        delayed.wait(lambda: bool(delayed.events("ProvisioningFailed")))
        assert "the driver tells of none" in delayed.events("ProvisioningFailed")[0].message
    else:
        delayed.wait(delayed.bound)


def test_a_volume_made_by_hand_is_taken_when_the_node_reaches_it(delayed: Any, make: Any) -> None:
    def affinity(zone: str) -> Any:
        wanted = {"key": ZONE, "operator": "In", "values": [zone]}
        return {"required": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}

    delayed.api.create(make.volume("far", nodeAffinity=affinity("b")))
    delayed.api.create(make.volume("near", size="9Gi", nodeAffinity=affinity("a")))
    delayed.api.create(make.claim())
    delayed.run_all()
    delayed.wait(lambda: bool(delayed.events("WaitForFirstConsumer")))
    assert not delayed.bound()
    delayed.api.create(make.pod(claims=["data"]))
    delayed.wait(delayed.bound)
    assert delayed.claim().spec.volume_name == "near"


def test_where_there_is_a_scheduler_it_chooses(delayed: Any, make: Any) -> None:
    """PVC-51: and chooses again when nothing can be made for the node that it chose."""
    delayed.external_drivers = True
    register(delayed, [])
    delayed.api.create(make.claim())
    delayed.api.create(make.pod(claims=["data"]))
    delayed.run_all(first_delay=1000.0)
    delayed.wait(lambda: bool(delayed.events("WaitForPodScheduled")))
    delayed.driver.fail("create_volume", "RESOURCE_EXHAUSTED")
    delayed.driver.fail("create_volume", "DEADLINE_EXCEEDED")
    chosen = {"metadata": {"annotations": {SELECTED: "node-1"}}}
    delayed.api.patch(PersistentVolumeClaim, "data", chosen, "default")
    delayed.wait(lambda: bool(delayed.events("ProvisioningFailed")))
    delayed.wait(lambda: SELECTED not in delayed.claim().metadata.annotations)
    delayed.settle()
    assert delayed.driver.count("create_volume") == 1
    delayed.api.patch(PersistentVolumeClaim, "data", chosen, "default")
    delayed.wait(lambda: len(delayed.events("ProvisioningFailed")) == 2)
    delayed.settle()
    assert SELECTED in delayed.claim().metadata.annotations, "the volume may exist: it must be asked for just so again"


def test_a_node_that_a_scheduler_selected_is_kept(delayed: Any, make: Any) -> None:
    delayed.api.create(to_object(Node, {"metadata": {"name": "node-2", "labels": {ZONE: "b"}}}))
    register(delayed, [ZONE], "node-2")
    delayed.api.create(make.claim(annotations={SELECTED: "node-2"}))
    delayed.run_all()
    delayed.wait(delayed.bound)
    assert delayed.driver.last("create_volume")["request"].preferred[0] == {ZONE: "b"}
