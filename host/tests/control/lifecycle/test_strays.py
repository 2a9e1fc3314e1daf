"""What is published although nothing asks for it is taken back: BR-46, BR-47, and no volume that never releases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from volumehost.api.objects import VolumeAttachment
from volumehost.control.attaching.attach_controller import RELEASING_SECONDS, AttachController
from volumehost.control.attaching.stray_publications import MAX_SUSPECTS, PublishTurns, release_strays
from volumehost.control.attaching.unanswered import UnansweredPublishes
from volumehost.errors import StorageDriverPreconditionError, StorageDriverUncertainError
from volumehost.testing.storage_driver import EVERYTHING, driver_error, without

IN_USE = "kubernetes.io/csi/driver.example.com^vol-1"


@pytest.fixture
def attacher(world: Any) -> AttachController:
    world.csi_node()
    return AttachController(world.context)


def other_node(world: Any, name: str = "node-2", *in_use: str) -> None:
    world.create("Node", name, status={"volumesInUse": list(in_use)})
    drivers = [{"name": "driver.example.com", "nodeID": f"{name}-id"}]
    world.create("CSINode", name, version="storage.k8s.io/v1", spec={"drivers": drivers})


def stray(world: Any, node_id: str = "node-2-id") -> Any:
    """A volume that is published to that node; nobody knows why."""
    volume = world.volume()
    world.driver.add_publication("vol-1", node_id)
    return volume


def is_gone(world: Any) -> bool:
    return not world.api.list(VolumeAttachment).items


# --- a publish that nobody waits for any more -----------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_br_47_a_publish_that_takes_effect_after_its_unpublish_is_undone_again(
    world: Any, attacher: AttachController, run: Callable[..., Any]
) -> None:
    clock = Clock()
    attacher._unanswered = UnansweredPublishes(clock)
    world.volume()
    va = world.attachment()

    def give_up(when: str, method: str) -> None:
        if (when, method) == ("after", "publish_volume"):
            clock.now += 15

    world.driver._observer = give_up
    world.driver.fail("publish_volume", "DEADLINE_EXCEEDED", after_effect=True)
    assert isinstance(run(attacher, va), StorageDriverUncertainError)
    world.api.delete(VolumeAttachment, "va")
    assert run(attacher, va) == 15
    assert not is_gone(world), "the publish may yet take effect"
    assert world.driver.nodes_of("vol-1") == []
    world.driver.add_publication("vol-1", "node-id")
    clock.now += 15
    assert run(attacher, va) is None
    assert is_gone(world)
    assert world.driver.nodes_of("vol-1") == []


@pytest.mark.parametrize("code", ["INTERNAL", "ABORTED", "FAILED_PRECONDITION", "UNKNOWN"])
def test_a_publish_that_was_answered_holds_no_detach(
    world: Any, attacher: AttachController, run: Callable[..., Any], code: str
) -> None:
    world.volume()
    va = world.attachment()
    world.driver.fail("publish_volume", code, after_effect=True)
    run(attacher, va)
    world.api.delete(VolumeAttachment, "va")
    assert run(attacher, va) is None
    assert is_gone(world)


def test_an_answer_ends_the_doubt() -> None:
    clock = Clock()
    calls = UnansweredPublishes(clock)

    def publish(error: Exception | None = None) -> None:
        with calls.watched("a"):
            clock.now += 2
            if error is not None:
                raise error

    with pytest.raises(StorageDriverUncertainError):
        publish(driver_error("d", "ControllerPublishVolume", "UNAVAILABLE"))
    assert calls.seconds_left("a") == 2
    clock.now += 0.5
    assert calls.seconds_left("a") == 1.5
    assert calls.seconds_left("b") == 0
    calls._until["a"] = clock.now + 100
    publish()
    assert calls.seconds_left("a") == 0


# --- it is published elsewhere --------------------------------------------------------------------------------------


@pytest.mark.parametrize("capabilities", [EVERYTHING, without(EVERYTHING, "LIST_VOLUMES_PUBLISHED_NODES")])
def test_a_volume_that_is_published_to_a_node_without_an_attachment_goes_where_it_is_wanted(
    world: Any, attacher: AttachController, run: Callable[..., Any], capabilities: Any
) -> None:
    world.driver.declared = capabilities
    other_node(world)
    stray(world)
    assert run(attacher, world.attachment()) is not None
    assert world.va().status.attached
    assert world.driver.nodes_of("vol-1") == ["node-id"]


def test_it_is_not_taken_from_a_node_that_has_an_attachment(
    world: Any, attacher: AttachController, run: Callable[..., Any]
) -> None:
    other_node(world)
    stray(world)
    world.attachment("of-the-other", nodeName="node-2")
    assert isinstance(run(attacher, world.attachment()), StorageDriverPreconditionError)
    assert world.driver.nodes_of("vol-1") == ["node-2-id"]
    assert "published to node-2-id" in world.va().status.attach_error.message


def test_nor_from_one_that_has_it_by_another_name(world: Any, attacher: AttachController, run: Any) -> None:
    other_node(world)
    stray(world)
    world.volume("the-same")
    world.attachment("of-the-other", nodeName="node-2", source={"persistentVolumeName": "the-same"})
    assert isinstance(run(attacher, world.attachment()), StorageDriverPreconditionError)
    assert world.driver.nodes_of("vol-1") == ["node-2-id"]


def test_nor_where_an_attachment_is_of_a_volume_that_nobody_knows(
    world: Any, attacher: AttachController, run: Any
) -> None:
    other_node(world)
    stray(world)
    world.attachment("of-the-other", nodeName="node-2", source={"persistentVolumeName": "gone"})
    assert isinstance(run(attacher, world.attachment()), StorageDriverPreconditionError)
    assert world.driver.nodes_of("vol-1") == ["node-2-id"]


def test_br_46_nor_from_one_that_uses_it(world: Any, attacher: AttachController, run: Any) -> None:
    other_node(world, "node-2", IN_USE)
    stray(world)
    assert isinstance(run(attacher, world.attachment()), StorageDriverPreconditionError)
    assert world.driver.nodes_of("vol-1") == ["node-2-id"]


def test_nor_from_a_node_of_somebody_else(world: Any, attacher: AttachController, run: Any) -> None:
    stray(world, "of-another-cluster")
    assert isinstance(run(attacher, world.attachment()), StorageDriverPreconditionError)
    assert world.driver.nodes_of("vol-1") == ["of-another-cluster"]
    assert world.driver.count("unpublish_volume") == 0


def test_a_volume_of_another_driver_holds_nothing(world: Any, attacher: AttachController, run: Any) -> None:
    other_node(world)
    stray(world)
    world.attachment("of-another-driver", nodeName="node-2", attacher="other.example.com")
    run(attacher, world.attachment())
    assert world.driver.nodes_of("vol-1") == ["node-id"]


def test_a_driver_that_lists_nothing_is_not_asked_of_every_node_of_a_large_cluster(world: Any) -> None:
    world.driver.declared = without(EVERYTHING, "LIST_VOLUMES")
    for number in range(MAX_SUSPECTS + 1):
        other_node(world, f"node-{number}")
    assert release_strays(world.context, world.driver, stray(world)) == []
    assert world.driver.count("unpublish_volume") == 0


def test_a_driver_that_attaches_nothing_is_not_asked(world: Any) -> None:
    world.driver.declared = without(EVERYTHING, "PUBLISH_UNPUBLISH_VOLUME")
    other_node(world)
    assert release_strays(world.context, world.driver, stray(world)) == []


def test_the_driver_gets_the_secret(world: Any) -> None:
    other_node(world)
    world.secret()
    world.volume(controllerPublishSecretRef={"name": "keys", "namespace": "vault"})
    world.driver.add_publication("vol-1", "node-2-id")
    assert release_strays(world.context, world.driver, world.pv()) == ["node-2"]
    assert set(world.driver.last("unpublish_volume")["secrets"]) == {"password"}


def test_the_node_that_this_process_knows_is_asked_itself(world: Any) -> None:
    world.csi_node()
    volume = stray(world, "node-id")
    context = replace(world.context, volume_in_use=lambda node, name: (node, name) == ("node-1", IN_USE))
    assert release_strays(context, world.driver, volume) == []
    assert world.driver.nodes_of("vol-1") == ["node-id"]


# --- two at once ----------------------------------------------------------------------------------------------------


def test_what_is_being_published_is_no_stray(world: Any, attacher: AttachController, run: Callable[..., Any]) -> None:
    """One attach is in the middle of its call while another is refused: the first one's node is not cleared."""
    other_node(world)
    world.volume()
    first, second = world.attachment(), world.attachment("second", nodeName="node-2")
    in_call, go_on = threading.Event(), threading.Event()

    def pause(when: str, method: str) -> None:
        if (when, method) == ("after", "publish_volume") and not in_call.is_set():
            in_call.set()
            assert go_on.wait(30)

    world.driver._observer = pause
    thread = threading.Thread(target=run, args=(attacher, first))
    thread.start()
    assert in_call.wait(30)
    assert isinstance(run(attacher, second), StorageDriverPreconditionError)
    assert world.driver.count("unpublish_volume") == 0
    go_on.set()
    thread.join(30)
    assert world.driver.nodes_of("vol-1") == ["node-id"]


def test_nothing_is_published_while_strays_are_looked_for(world: Any, attacher: AttachController, run: Any) -> None:
    world.volume()
    va = world.attachment()
    with attacher._turns.releasing("driver.example.com", "vol-1") as is_free:
        assert is_free
        assert run(attacher, va) == RELEASING_SECONDS
    assert world.driver.count("publish_volume") == 0
    assert world.va().status.attach_error is None
    run(attacher, va)
    assert world.va().status.attached


def test_turns() -> None:
    turns = PublishTurns()
    with turns.publishing("d", "v") as first, turns.publishing("d", "v") as second, turns.releasing("d", "v") as third:
        assert (first, second, third) == (True, True, False)
        with turns.releasing("d", "w") as fourth, turns.releasing("d", "w") as fifth:
            assert (fourth, fifth) == (True, False)
    with turns.releasing("d", "v") as sixth, turns.publishing("d", "v") as seventh:
        assert (sixth, seventh) == (True, False)
    with turns.releasing("d", "v") as eighth:
        assert eighth
