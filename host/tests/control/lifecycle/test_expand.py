"""Expansion by the control plane: EXPC, EXPCTL, BR-44, BR-74."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from volumehost.api.objects import PersistentVolume, Pod, StorageClass, VolumeAttachment
from volumehost.control.expanding.expand_controller import ExpandController
from volumehost.errors import StorageDriverUnavailableError
from volumehost.storage_driver import ExpandedVolume
from volumehost.testing.storage_driver import EVERYTHING, without

from .expanding import GIB, ask, conditions, go, reasons, set_state, set_volume_size, state

PRE_RESIZE = "volume.alpha.kubernetes.io/pre-resize-capacity"
NOT_REQUIRED = "volume.kubernetes.io/node-expansion-not-required"
SECRET = "hunter2-never-to-be-seen"


# --- what works -------------------------------------------------------------------------------------------------------


def test_expc_04_the_nodes_part_is_left_to_the_node(world: Any, expander: ExpandController, run: Any) -> None:
    ask(world, "2Gi")
    assert go(world, run, expander) is None
    claim = world.pvc()
    assert world.driver.volumes["vol-1"] == 2 * GIB
    assert world.pv().spec.capacity == {"storage": "2Gi"}
    assert world.pv().metadata.annotations[PRE_RESIZE] == "1Gi"
    assert claim.status.capacity == {"storage": "1Gi"}
    assert claim.status.allocated_resources == {"storage": "2Gi"}
    assert state(world) == "NodeResizePending"
    assert set(conditions(world)) == {"Resizing", "FileSystemResizePending"}
    assert NOT_REQUIRED not in claim.metadata.annotations
    assert reasons(world) == ["Resizing", "FileSystemResizeRequired"]
    assert "ControllerExpandVolume" in "".join(world.steps)
    call = world.driver.last("expand_volume")
    assert call["required_bytes"] == 2 * GIB
    assert call["capability"].access_mode == "SINGLE_NODE_MULTI_WRITER"


def test_br_44_no_node_call_when_none_is_required(world: Any, expander: ExpandController, run: Any) -> None:
    world.driver.expansion_needs_node = False
    ask(world, "2Gi")
    go(world, run, expander)
    claim = world.pvc()
    assert claim.status.capacity == {"storage": "2Gi"}
    assert state(world) == ""
    assert conditions(world) == {}
    assert claim.metadata.annotations[NOT_REQUIRED] == "true"
    assert PRE_RESIZE not in world.pv().metadata.annotations
    assert reasons(world) == ["Resizing", "VolumeResizeSuccessful"]


def test_br_44_the_annotation_goes_when_a_later_expansion_needs_the_node(
    world: Any, expander: ExpandController, run: Any
) -> None:
    world.driver.expansion_needs_node = False
    ask(world, "2Gi")
    go(world, run, expander)
    world.driver.expansion_needs_node = True
    ask(world, "3Gi")
    go(world, run, expander)
    assert NOT_REQUIRED not in world.pvc().metadata.annotations
    assert state(world) == "NodeResizePending"
    assert world.pv().metadata.annotations[PRE_RESIZE] == "2Gi"


def test_expctl_05_the_former_size_is_forgotten_when_the_node_is_done(
    world: Any, expander: ExpandController, run: Any
) -> None:
    ask(world, "2Gi")
    go(world, run, expander)
    claim = world.pvc()
    claim.status.capacity = {"storage": "2Gi"}
    claim.status.allocated_resource_statuses = {}
    world.api.replace_status(claim)
    go(world, run, expander)
    assert PRE_RESIZE not in world.pv().metadata.annotations
    assert world.driver.count("expand_volume") == 1


def test_a_driver_that_rounds_up(world: Any, expander: ExpandController, run: Any) -> None:
    world.driver.size_unit = 3 * GIB
    ask(world, "2Gi")
    go(world, run, expander)
    assert world.pv().spec.capacity == {"storage": "3Gi"}
    # The node is to bring the claim to what the volume has, or the former size would never be forgotten.
    assert world.pvc().status.allocated_resources == {"storage": "3Gi"}


def test_a_driver_whose_nodes_do_it_alone(world: Any, expander: ExpandController, run: Any) -> None:
    world.driver.declared = without(EVERYTHING, "EXPAND_VOLUME")
    ask(world, "2Gi")
    go(world, run, expander)
    assert world.driver.count("expand_volume") == 0
    assert world.pv().spec.capacity == {"storage": "2Gi"}
    assert state(world) == "NodeResizePending"


def test_a_raw_block_volume_of_a_driver_may_need_its_node(world: Any, run: Any) -> None:
    world.storage_class()
    world.bound_claim(claim_spec={"volumeMode": "Block"}, spec={"volumeMode": "Block"})
    ask(world, "2Gi")
    run(ExpandController(world.context), "data", "default")
    assert world.driver.last("expand_volume")["capability"].block
    assert state(world) == "NodeResizePending"


def test_expctl_02_nothing_to_do(world: Any, expander: ExpandController, run: Any) -> None:
    version = world.pvc().metadata.resource_version
    assert go(world, run, expander) is None
    assert run(expander, "absent", "default") is None
    assert world.driver.calls == []
    assert world.pvc().metadata.resource_version == version


def test_a_claim_that_does_not_tell_yet_what_it_has(world: Any, expander: ExpandController, run: Any) -> None:
    claim = world.pvc()
    claim.status.capacity = {}
    world.api.replace_status(claim)
    ask(world, "2Gi")
    assert go(world, run, expander) is None
    assert world.driver.calls == []
    assert world.events == []


def test_expctl_02_a_volume_that_refers_to_another_claim(world: Any, expander: ExpandController, run: Any) -> None:
    world.api.patch(PersistentVolume, "pv", {"spec": {"claimRef": {"uid": "other"}}})
    ask(world, "2Gi")
    assert "is not bound to it" in str(go(world, run, expander))
    assert world.driver.calls == []


# --- EXPC-02, -03: the table ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "allocated", "volume", "requested", "expected"),
    [
        # EXPC-02: the volume is smaller than what is asked for.
        ("", "1Gi", "1Gi", "3Gi", 3),
        ("ControllerResizeInProgress", "2Gi", "1Gi", "3Gi", 2),
        ("NodeResizePending", "2Gi", "1Gi", "3Gi", 2),
        ("NodeResizeInProgress", "2Gi", "1Gi", "3Gi", 2),
        ("NodeResizeInfeasible", "2Gi", "1Gi", "3Gi", 2),
        ("ControllerResizeInfeasible", "2Gi", "1Gi", "3Gi", 3),
        ("ControllerResizeInfeasible", "4Gi", "1Gi", "3Gi", 3),
        ("NodeResizePending", "2Gi", "2Gi", "3Gi", None),
        # EXPC-03: it is large enough.
        ("NodeResizePending", "3Gi", "3Gi", "3Gi", None),
        ("NodeResizeInProgress", "3Gi", "3Gi", "2Gi", None),
        ("NodeResizeInfeasible", "3Gi", "3Gi", "2Gi", 3),
        ("ControllerResizeInProgress", "3Gi", "3Gi", "3Gi", 3),
        ("ControllerResizeInProgress", "3Gi", "3Gi", "2Gi", 3),
        ("ControllerResizeInfeasible", "3Gi", "3Gi", "2Gi", 3),
        ("", "3Gi", "3Gi", "2Gi", 3),
        ("", "1Gi", "3Gi", "3Gi", 3),
    ],
)
def test_expc_02_03(
    world: Any,
    expander: ExpandController,
    run: Any,
    status: str,
    allocated: str,
    volume: str,
    requested: str,
    expected: int | None,
) -> None:
    ask(world, requested)
    set_state(world, status, allocated)
    set_volume_size(world, volume)
    go(world, run, expander)
    if expected is None:
        assert world.driver.count("expand_volume") == 0
        assert state(world) == status
    else:
        assert world.driver.last("expand_volume")["required_bytes"] == expected * GIB
        assert state(world) == "NodeResizePending"


def test_expc_03_a_size_that_a_node_refused_is_offered_again_once(
    world: Any, expander: ExpandController, run: Any
) -> None:
    ask(world, "2Gi")
    go(world, run, expander)
    set_state(world, "NodeResizeInfeasible", "2Gi")
    go(world, run, expander)
    assert state(world) == "NodeResizePending"
    set_state(world, "NodeResizeInfeasible", "2Gi")
    assert go(world, run, expander) > 0
    assert state(world) == "NodeResizeInfeasible"
    assert world.driver.count("expand_volume") == 2


# --- what does not work -----------------------------------------------------------------------------------------------

FINAL = ["UNKNOWN", "ALREADY_EXISTS", "PERMISSION_DENIED", "FAILED_PRECONDITION", "INTERNAL", "DATA_LOSS",
         "UNAUTHENTICATED"]  # fmt: skip
UNCERTAIN = ["CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED", ""]
INFEASIBLE = ["INVALID_ARGUMENT", "OUT_OF_RANGE", "NOT_FOUND", "UNIMPLEMENTED"]


@pytest.mark.parametrize("code", FINAL)
def test_final_errors_and_a_wish_that_is_taken_back(
    world: Any, expander: ExpandController, run: Any, code: str
) -> None:
    world.driver.fail("expand_volume", code)
    ask(world, "5Gi")
    assert isinstance(go(world, run, expander), Exception)
    assert state(world) == "ControllerResizeInProgress"
    assert "it was told to fail" in conditions(world)["ControllerResizeError"].message
    assert reasons(world) == ["Resizing", "VolumeResizeFailed"]
    ask(world, "2Gi")
    run(ExpandController(world.context), "data", "default")
    assert world.driver.last("expand_volume")["required_bytes"] == 2 * GIB
    assert state(world) == "NodeResizePending"
    assert "ControllerResizeError" not in conditions(world)


@pytest.mark.parametrize("code", UNCERTAIN)
def test_uncertain_errors_bind_to_the_size_that_was_begun(
    world: Any, expander: ExpandController, run: Any, code: str
) -> None:
    world.driver.fail("expand_volume", code, after_effect=True)
    ask(world, "5Gi")
    assert isinstance(go(world, run, expander), Exception)
    assert state(world) == "ControllerResizeInProgress"
    ask(world, "2Gi")
    run(ExpandController(world.context), "data", "default")
    assert world.driver.last("expand_volume")["required_bytes"] == 5 * GIB
    assert world.pv().spec.capacity == {"storage": "5Gi"}


def test_an_uncertain_error_after_a_final_one_is_uncertain(world: Any, expander: ExpandController, run: Any) -> None:
    ask(world, "5Gi")
    world.driver.fail("expand_volume", "INTERNAL")
    go(world, run, expander)
    world.driver.fail("expand_volume", "DEADLINE_EXCEEDED")
    go(world, run, expander)
    ask(world, "2Gi")
    go(world, run, expander)
    assert world.driver.last("expand_volume")["required_bytes"] == 5 * GIB


@pytest.mark.parametrize("code", INFEASIBLE)
def test_infeasible_errors_are_not_repeated_until_something_else_is_asked_for(
    world: Any, expander: ExpandController, run: Any, code: str
) -> None:
    world.driver.fail("expand_volume", code)
    ask(world, "5Gi")
    assert go(world, run, expander) > 60
    assert state(world) == "ControllerResizeInfeasible"
    assert "ControllerResizeError" in conditions(world)
    assert go(world, run, expander) > 60
    assert world.driver.count("expand_volume") == 1
    ask(world, "2Gi")
    go(world, run, expander)
    assert world.driver.last("expand_volume")["required_bytes"] == 2 * GIB
    assert state(world) == "NodeResizePending"


def test_an_infeasible_size_is_tried_again_at_last(world: Any, run: Any) -> None:
    now = [0.0]
    world.storage_class()
    world.bound_claim()
    expander = ExpandController(world.context, clock=lambda: now[0])
    world.driver.fail("expand_volume", "OUT_OF_RANGE")
    ask(world, "5Gi")
    go(world, run, expander)
    now[0] = 601.0
    go(world, run, expander)
    assert state(world) == "NodeResizePending"


def test_a_driver_that_cannot_expand(world: Any, expander: ExpandController, run: Any) -> None:
    world.driver.declared = replace(without(EVERYTHING, "EXPAND_VOLUME"), node=frozenset())
    ask(world, "2Gi")
    assert go(world, run, expander) > 60
    assert state(world) == "ControllerResizeInfeasible"
    assert "cannot expand volumes" in conditions(world)["ControllerResizeError"].message


def test_a_driver_that_does_not_run(world: Any, expander: ExpandController, run: Any) -> None:
    ask(world, "2Gi")
    world.unavailable = True
    assert isinstance(go(world, run, expander), StorageDriverUnavailableError)
    assert state(world) == ""


@pytest.mark.parametrize("answer", [0, GIB])
def test_a_driver_that_lies_about_the_size(
    world: Any, expander: ExpandController, run: Any, monkeypatch: pytest.MonkeyPatch, answer: int
) -> None:
    monkeypatch.setattr(world.driver, "expand_volume", lambda *_a, **_k: ExpandedVolume(answer, True))
    ask(world, "2Gi")
    assert f"{answer} bytes" in str(go(world, run, expander))
    assert world.pv().spec.capacity == {"storage": "1Gi"}


@pytest.mark.parametrize(("expansion", "words"), [(False, "does not allow"), (None, "does not allow")])
def test_a_class_that_does_not_allow_it(world: Any, run: Any, expansion: bool | None, words: str) -> None:
    world.storage_class(expansion=expansion)
    world.bound_claim()
    expander = ExpandController(world.context)
    ask(world, "2Gi")
    go(world, run, expander)
    go(world, run, expander)
    assert world.driver.calls == []
    assert state(world) == ""
    assert words in conditions(world)["ControllerResizeError"].message
    assert reasons(world) == ["VolumeResizeFailed"]  # once
    allowed = world.api.patch(StorageClass, "fast", {"allowVolumeExpansion": True})
    assert [key.name for key in expander.watches()[StorageClass](allowed)] == ["data"]
    go(world, run, expander)
    assert state(world) == "NodeResizePending"


@pytest.mark.parametrize(("name", "words"), [("", "has no storage class"), ("gone", "does not exist")])
def test_no_class_allows_it(world: Any, run: Any, name: str, words: str) -> None:
    world.bound_claim(claim_spec={"storageClassName": name})
    ask(world, "2Gi")
    go(world, run, ExpandController(world.context))
    assert world.driver.calls == []
    assert words in conditions(world)["ControllerResizeError"].message


def test_what_was_begun_is_ended_whatever_the_class_says_now(world: Any, expander: ExpandController, run: Any) -> None:
    ask(world, "2Gi")
    set_state(world, "ControllerResizeInProgress", "2Gi")
    world.api.patch(StorageClass, "fast", {"allowVolumeExpansion": False})
    go(world, run, expander)
    assert state(world) == "NodeResizePending"


def use(world: Any) -> None:
    pod = {
        "containers": [{"name": "c"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    }
    world.create("Pod", "web", namespace="default", spec=pod)


def test_an_offline_driver_waits_for_the_end_of_the_use(world: Any, expander: ExpandController, run: Any) -> None:
    world.driver.declared = replace(EVERYTHING, expansion=frozenset({"OFFLINE"}))
    use(world)
    ask(world, "2Gi")
    assert 0 < go(world, run, expander) < 60
    go(world, run, expander)
    assert world.driver.calls == []
    assert "used by pod web" in conditions(world)["ControllerResizeError"].message
    assert reasons(world) == ["VolumeResizeFailed"]
    world.api.delete(Pod, "web", "default")
    go(world, run, expander)
    assert state(world) == "NodeResizePending"
    assert "ControllerResizeError" not in conditions(world)


def test_an_offline_driver_waits_for_the_detach(world: Any, expander: ExpandController, run: Any) -> None:
    world.driver.declared = replace(EVERYTHING, expansion=frozenset({"OFFLINE"}))
    va = world.attachment()
    va.status.attached = True
    world.api.replace_status(va)
    ask(world, "2Gi")
    go(world, run, expander)
    assert world.driver.calls == []
    world.api.delete(VolumeAttachment, "va")
    go(world, run, expander)
    assert world.driver.count("expand_volume") == 1


def test_a_driver_that_refuses_while_in_use_is_not_asked_before_the_use_ends(
    world: Any, expander: ExpandController, run: Any
) -> None:
    world.driver.fail("expand_volume", "FAILED_PRECONDITION", message="volume is published")
    use(world)
    ask(world, "2Gi")
    assert 0 < go(world, run, expander) < 60
    assert 0 < go(world, run, expander) < 60
    assert world.driver.count("expand_volume") == 1
    world.api.delete(Pod, "web", "default")
    go(world, run, expander)
    assert state(world) == "NodeResizePending"


def test_br_74_secrets(world: Any, run: Any) -> None:
    world.storage_class()
    world.secret()
    world.bound_claim(controllerExpandSecretRef={"name": "keys", "namespace": "vault"})
    world.driver.fail("expand_volume", "INTERNAL", message=f"login with {SECRET}")
    ask(world, "2Gi")
    error = run(ExpandController(world.context), "data", "default")
    assert world.driver.last("expand_volume")["secrets"] == {"password": SECRET}
    assert SECRET not in f"{error} {error!r}"
    assert SECRET not in world.all_text()


def test_a_secret_that_is_missing(world: Any, run: Any) -> None:
    world.storage_class()
    world.bound_claim(controllerExpandSecretRef={"name": "keys", "namespace": "vault"})
    ask(world, "2Gi")
    assert "no such secret" in str(run(ExpandController(world.context), "data", "default"))
    assert world.driver.calls == []


def test_expc_05_other_conditions_stay_and_transitions_keep_their_time(
    world: Any, expander: ExpandController, run: Any
) -> None:
    claim = world.pvc()
    claim.status.conditions = [
        _condition("Other", "x"),
        _condition("Resizing", "2020-01-01T00:00:00Z"),
        _condition("NodeResizeError", "y"),
    ]
    world.api.replace_status(claim)
    ask(world, "2Gi")
    go(world, run, expander)
    found = conditions(world)
    assert set(found) == {"Other", "Resizing", "FileSystemResizePending"}
    assert found["Resizing"].last_transition_time == "2020-01-01T00:00:00Z"


def _condition(kind: str, time: str) -> Any:
    from volumehost.api.objects import Condition

    return Condition(type=kind, status="True", last_transition_time=time)
