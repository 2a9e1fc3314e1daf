"""Detaching: CSI-EXA-12 to -16, BR-46, BR-48."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from volumehost.api.objects import CSINode, Node, PersistentVolume, VolumeAttachment
from volumehost.control.attaching.attach_controller import AttachController
from volumehost.control.attaching.attach_protection import AttachProtection
from volumehost.testing.storage_driver import EVERYTHING, without

FINALIZER = "external-attacher/driver-example-com"
IN_USE = "kubernetes.io/csi/driver.example.com^vol-1"


@pytest.fixture
def attacher(world: Any, run: Any) -> AttachController:
    """An attacher that has attached."""
    controller = AttachController(world.context)
    world.csi_node()
    world.volume()
    run(controller, world.attachment())
    assert world.va().status.attached
    return controller


def is_gone(world: Any) -> bool:
    return not world.api.list(VolumeAttachment).items


def delete(world: Any) -> None:
    world.api.delete(VolumeAttachment, "va")


def test_exa_12_13_detach(world: Any, attacher: AttachController, run: Any) -> None:
    delete(world)
    assert run(attacher, "va") is None
    assert is_gone(world)
    assert world.driver.nodes_of("vol-1") == []
    assert world.driver.last("unpublish_volume")["node_id"] == "node-id"
    assert world.driver.last("unpublish_volume")["timeout"] == 15


def test_exa_12_node_id_of_the_annotation_when_csinode_lost_the_driver(
    world: Any, attacher: AttachController, run: Any
) -> None:
    world.api.delete(CSINode, "node-1")
    delete(world)
    run(attacher, "va")
    assert is_gone(world)
    assert world.driver.last("unpublish_volume")["node_id"] == "node-id"


def test_exa_12_without_the_volume_the_finalizer_stays(world: Any, attacher: AttachController, run: Any) -> None:
    world.api.patch(PersistentVolume, "pv", {"metadata": {"finalizers": None}})
    world.api.delete(PersistentVolume, "pv")
    delete(world)
    assert "there is no PersistentVolume pv" in str(run(attacher, "va"))
    assert world.va().metadata.finalizers == [FINALIZER]
    assert "there is no PersistentVolume pv" in world.va().status.detach_error.message


def test_exa_13_errors(world: Any, attacher: AttachController, run: Any) -> None:
    delete(world)
    world.driver.fail("unpublish_volume", "INTERNAL", message="busy")
    assert "busy" in str(run(attacher, "va"))
    found = world.va().status.detach_error
    assert "busy" in found.message
    assert found.error_code is None
    assert world.va().status.attached
    run(attacher, "va")
    assert is_gone(world)


@pytest.mark.parametrize(
    "code",
    [
        "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
        "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
        "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED", "",
    ],
)  # fmt: skip
def test_br_48_every_error_is_tried_again(world: Any, attacher: AttachController, run: Any, code: str) -> None:
    delete(world)
    world.driver.fail("unpublish_volume", code)
    assert isinstance(run(attacher, "va"), Exception)
    assert FINALIZER in world.va().metadata.finalizers
    run(attacher, "va")
    assert is_gone(world)
    assert world.driver.count("unpublish_volume") == 2


def test_br_48_not_found_of_a_volume_that_the_driver_lists_is_no_success(
    world: Any, attacher: AttachController, run: Any
) -> None:
    delete(world)
    world.driver.fail("unpublish_volume", "INTERNAL")
    run(attacher, "va")
    world.driver.fail("unpublish_volume", "NOT_FOUND")
    run(attacher, "va")
    assert not is_gone(world)


@pytest.mark.parametrize("gone", ["volume", "node"])
def test_br_48_not_found_is_believed_when_the_listing_says_the_same(
    world: Any, attacher: AttachController, run: Any, gone: str
) -> None:
    delete(world)
    world.driver.unpublish_volume("vol-1", "node-id", {})
    if gone == "volume":
        world.driver.delete_volume("vol-1", {})
    world.driver.fail("unpublish_volume", "NOT_FOUND")
    assert run(attacher, "va") is None
    assert is_gone(world)


@pytest.mark.parametrize("missing", [("LIST_VOLUMES",), ("LIST_VOLUMES_PUBLISHED_NODES",)])
def test_br_48_not_found_of_a_driver_that_cannot_tell(
    world: Any, attacher: AttachController, run: Any, missing: tuple[str, ...]
) -> None:
    world.driver.declared = without(EVERYTHING, *missing)
    delete(world)
    world.driver.unpublish_volume("vol-1", "node-id", {})
    world.driver.fail("unpublish_volume", "NOT_FOUND")
    run(attacher, "va")
    assert not is_gone(world)


def test_exa_14_without_the_finalizer_it_counts_as_detached(world: Any, attacher: AttachController, run: Any) -> None:
    world.api.patch(VolumeAttachment, "va", {"metadata": {"finalizers": ["example.com/other"]}})
    delete(world)
    assert run(attacher, "va") is None
    assert world.driver.count("unpublish_volume") == 0


def test_a_driver_that_no_longer_attaches(world: Any, attacher: AttachController, run: Any) -> None:
    world.driver.declared = without(EVERYTHING, "PUBLISH_UNPUBLISH_VOLUME")
    delete(world)
    run(attacher, "va")
    assert is_gone(world)
    assert world.driver.count("unpublish_volume") == 0


# --- BR-46 ------------------------------------------------------------------------------------------------------------


def test_br_46_a_volume_in_use_is_not_detached(world: Any, attacher: AttachController, run: Any) -> None:
    node = world.node(IN_USE)
    delete(world)
    assert run(attacher, "va") > 0
    assert world.driver.count("unpublish_volume") == 0
    message = world.va().status.detach_error.message
    assert "node node-1 still has volume vol-1 staged or mounted" in message
    assert "volumehost.io/force-detach=true" in message
    version = world.va().metadata.resource_version
    run(attacher, "va")
    assert world.va().metadata.resource_version == version  # told once
    node = world.api.get(Node, "node-1")
    node.status.volumes_in_use = []
    node = world.api.replace_status(node)
    assert [key.name for key in attacher.watches()[Node](node)] == ["va"]
    run(attacher, "va")
    assert is_gone(world)


def test_br_46_other_volumes_do_not_matter(world: Any, attacher: AttachController, run: Any) -> None:
    world.node("kubernetes.io/csi/driver.example.com^vol-2")
    delete(world)
    run(attacher, "va")
    assert is_gone(world)


def test_br_46_an_operator_forces_it_and_is_told_of_the_risk(world: Any, attacher: AttachController, run: Any) -> None:
    world.node(IN_USE)
    delete(world)
    world.api.patch(VolumeAttachment, "va", {"metadata": {"annotations": {"volumehost.io/force-detach": "true"}}})
    run(attacher, "va")
    assert is_gone(world)
    assert world.driver.nodes_of("vol-1") == []
    ((event_type, reason, message),) = world.events
    assert (event_type, reason) == ("Warning", "ForcedDetach")
    assert "lost" in message


def test_br_46_the_node_manager_knows_better(world: Any, attacher: AttachController, run: Any) -> None:
    asked = []

    def in_use(node: str, volume: str) -> bool:
        asked.append((node, volume))
        return len(asked) == 1

    controller = AttachController(replace(world.context, volume_in_use=in_use))
    delete(world)
    run(controller, "va")
    assert not is_gone(world)
    assert asked == [("node-1", IN_USE)]
    run(controller, "va")
    assert is_gone(world)


# --- CSI-EXA-16 -------------------------------------------------------------------------------------------------------


@pytest.fixture
def aged(world: Any, attacher: AttachController, monkeypatch: pytest.MonkeyPatch) -> AttachController:
    """The attacher a minute later."""
    later = attacher._published._clock() + 61
    monkeypatch.setattr(attacher._published, "_clock", lambda: later)
    return attacher


def test_exa_16_what_the_driver_lost_is_published_again(world: Any, aged: AttachController, run: Any) -> None:
    world.driver.unpublish_volume("vol-1", "node-id", {})
    run(aged, "va")
    assert world.driver.count("publish_volume") == 2
    assert world.driver.nodes_of("vol-1") == ["node-id"]


def test_exa_16_what_is_right_stays(world: Any, aged: AttachController, run: Any) -> None:
    assert run(aged, "va") > 0
    assert world.driver.count("list_volumes") == 1
    assert world.driver.count("publish_volume") == 1


def test_exa_16_a_listing_that_fails_changes_nothing(world: Any, aged: AttachController, run: Any) -> None:
    world.driver.fail("list_volumes", "INTERNAL")
    assert run(aged, "va") > 0
    assert world.va().status.attached
    assert world.va().status.attach_error is None


def test_exa_16_a_driver_that_cannot_list_is_not_asked(world: Any, aged: AttachController, run: Any) -> None:
    world.driver.declared = without(EVERYTHING, "LIST_VOLUMES_PUBLISHED_NODES")
    run(aged, "va")
    assert world.driver.count("list_volumes") == 0


# --- CSI-EXA-15 -------------------------------------------------------------------------------------------------------


def test_exa_15_the_volume_is_kept_while_attachments_refer_to_it(
    world: Any, attacher: AttachController, run: Any
) -> None:
    protection = AttachProtection(world.context)
    world.api.patch(PersistentVolume, "pv", {"metadata": {"finalizers": [FINALIZER]}})
    run(protection, "pv")
    world.api.delete(PersistentVolume, "pv")
    run(protection, "pv")
    assert FINALIZER in world.pv().metadata.finalizers
    last = world.va()
    delete(world)
    run(attacher, "va")
    assert [key.name for key in protection.watches()[VolumeAttachment](last)] == ["pv"]
    run(protection, "pv")
    assert not world.api.list(PersistentVolume).items
