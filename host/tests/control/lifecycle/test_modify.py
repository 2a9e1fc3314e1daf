"""VolumeAttributesClass to ControllerModifyVolume, with the claim's status as its memory."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.api.objects import PersistentVolumeClaim, VolumeAttributesClass
from volumehost.control.expanding.modify_controller import ModifyController
from volumehost.errors import StorageDriverUnavailableError
from volumehost.testing.storage_driver import EVERYTHING, without

SECRET = "hunter2-never-to-be-seen"


def attributes_class(world: Any, name: str, *, driver: str = "driver.example.com") -> VolumeAttributesClass:
    return world.create(
        "VolumeAttributesClass",
        name,
        version="storage.k8s.io/v1",
        driverName=driver,
        parameters={"iops": name},
    )


@pytest.fixture
def modifier(world: Any) -> ModifyController:
    world.bound_claim()
    attributes_class(world, "gold")
    attributes_class(world, "silver")
    return ModifyController(world.context)


def ask(world: Any, name: str) -> None:
    world.api.patch(PersistentVolumeClaim, "data", {"spec": {"volumeAttributesClassName": name}}, "default")


def go(world: Any, run: Any, modifier: ModifyController) -> Any:
    return run(modifier, "data", "default")


def state(world: Any) -> tuple[str, str] | None:
    status = world.pvc().status.modify_volume_status
    return (status.status, status.target_volume_attributes_class_name) if status is not None else None


def conditions(world: Any) -> dict[str, Any]:
    return {each.type: each for each in world.pvc().status.conditions}


def reasons(world: Any) -> list[str]:
    return [reason for _, reason, _ in world.events]


def test_a_change(world: Any, modifier: ModifyController, run: Any) -> None:
    ask(world, "gold")
    assert go(world, run, modifier) is None
    assert world.driver.parameters_of("vol-1") == {"iops": "gold"}
    assert world.pvc().status.current_volume_attributes_class_name == "gold"
    assert state(world) is None
    assert conditions(world) == {}
    assert world.pv().spec.volume_attributes_class_name == "gold"
    assert reasons(world) == ["VolumeModify", "VolumeModifySuccessful"]
    assert "ControllerModifyVolume" in "".join(world.steps)
    go(world, run, modifier)
    assert world.driver.count("modify_volume") == 1


def test_nothing_to_do(world: Any, modifier: ModifyController, run: Any) -> None:
    version = world.pvc().metadata.resource_version
    go(world, run, modifier)
    run(modifier, "absent", "default")
    assert world.pvc().metadata.resource_version == version
    assert world.driver.calls == []


@pytest.mark.parametrize("problem", ["missing", "other driver"])
def test_a_class_that_cannot_be_used_is_waited_for(
    world: Any, modifier: ModifyController, run: Any, problem: str
) -> None:
    if problem == "other driver":
        attributes_class(world, "platinum", driver="other.example.com")
    ask(world, "platinum")
    assert go(world, run, modifier) is None
    go(world, run, modifier)
    assert state(world) == ("Pending", "platinum")
    assert world.driver.calls == []
    assert "platinum" in world.events[0][2]
    if problem == "missing":
        made = attributes_class(world, "platinum")
        assert [key.name for key in modifier.watches()[VolumeAttributesClass](made)] == ["data"]
        go(world, run, modifier)
        assert world.pvc().status.current_volume_attributes_class_name == "platinum"


def test_what_is_infeasible_is_left_alone_until_something_else_is_wanted(
    world: Any, modifier: ModifyController, run: Any
) -> None:
    ask(world, "gold")
    world.driver.fail("modify_volume", "INVALID_ARGUMENT", message="no such iops")
    assert go(world, run, modifier) > 60
    assert state(world) == ("Infeasible", "gold")
    assert conditions(world)["ModifyVolumeError"].reason == "INVALID_ARGUMENT"
    assert "no such iops" in conditions(world)["ModifyVolumeError"].message
    assert go(world, run, modifier) > 60
    assert world.driver.count("modify_volume") == 1
    ask(world, "silver")
    go(world, run, modifier)
    assert world.pvc().status.current_volume_attributes_class_name == "silver"


def test_a_driver_that_cannot_modify(world: Any, modifier: ModifyController, run: Any) -> None:
    world.driver.declared = without(EVERYTHING, "MODIFY_VOLUME")
    ask(world, "gold")
    assert go(world, run, modifier) > 60
    assert state(world) == ("Infeasible", "gold")
    assert "cannot change the attributes" in conditions(world)["ModifyVolumeError"].message


@pytest.mark.parametrize("code", ["INTERNAL", "NOT_FOUND", "OUT_OF_RANGE", "FAILED_PRECONDITION", "UNKNOWN"])
def test_after_a_final_error_another_class_may_be_chosen(
    world: Any, modifier: ModifyController, run: Any, code: str
) -> None:
    ask(world, "gold")
    world.driver.fail("modify_volume", code)
    assert isinstance(go(world, run, modifier), Exception)
    assert state(world) == ("InProgress", "gold")
    ask(world, "silver")
    run(ModifyController(world.context), "data", "default")
    assert world.driver.parameters_of("vol-1") == {"iops": "silver"}


@pytest.mark.parametrize("code", ["CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED", ""])
def test_after_an_uncertain_error_the_change_that_was_begun_is_ended_first(
    world: Any, modifier: ModifyController, run: Any, code: str
) -> None:
    ask(world, "gold")
    world.driver.fail("modify_volume", code)
    assert isinstance(go(world, run, modifier), Exception)
    ask(world, "silver")
    again = ModifyController(world.context)
    run(again, "data", "default")
    assert world.driver.last("modify_volume")["mutable_parameters"] == {"iops": "gold"}
    assert world.pvc().status.current_volume_attributes_class_name == "gold"
    run(again, "data", "default")
    assert world.pvc().status.current_volume_attributes_class_name == "silver"


def test_an_uncertain_error_after_a_final_one_is_uncertain(world: Any, modifier: ModifyController, run: Any) -> None:
    ask(world, "gold")
    for code in ("INTERNAL", "DEADLINE_EXCEEDED"):
        world.driver.fail("modify_volume", code)
        go(world, run, modifier)
    ask(world, "silver")
    go(world, run, modifier)
    assert world.driver.last("modify_volume")["mutable_parameters"] == {"iops": "gold"}


def test_a_wish_that_is_taken_back(world: Any, modifier: ModifyController, run: Any) -> None:
    ask(world, "gold")
    world.driver.fail("modify_volume", "INVALID_ARGUMENT")
    go(world, run, modifier)
    # The API refuses to take a class away; a claim may have been stored before that rule.
    with world.api._database.write() as connection:
        connection.execute(
            "UPDATE objects SET body = json_remove(body, '$.spec.volumeAttributesClassName') WHERE name = 'data'"
        )
    go(world, run, modifier)
    assert reasons(world)[-1] == "VolumeModifyCancelled"
    assert "ModifyingVolume" not in conditions(world)
    go(world, run, modifier)
    assert reasons(world).count("VolumeModifyCancelled") == 1


def test_a_driver_that_does_not_run(world: Any, modifier: ModifyController, run: Any) -> None:
    ask(world, "gold")
    world.unavailable = True
    assert isinstance(go(world, run, modifier), StorageDriverUnavailableError)
    assert state(world) is None


def test_a_driver_of_others(world: Any, modifier: ModifyController, run: Any) -> None:
    ask(world, "gold")
    world.external_drivers = True
    world.drivers.clear()
    assert run(ModifyController(world.context), "data", "default") is None
    assert state(world) is None


@pytest.mark.parametrize("own", [True, False])
def test_br_74_secrets(world: Any, run: Any, own: bool) -> None:
    world.secret()
    reference = {"name": "keys", "namespace": "vault"}
    world.bound_claim(**({} if own else {"controllerExpandSecretRef": reference}))
    if own:
        prefix = "volume.kubernetes.io/controller-modify-secret-"
        annotations = {f"{prefix}name": "keys", f"{prefix}namespace": "vault"}
        world.api.patch(type(world.pv()), "pv", {"metadata": {"annotations": annotations}})
    attributes_class(world, "gold")
    ask(world, "gold")
    world.driver.fail("modify_volume", "INTERNAL", message=f"login with {SECRET}")
    error = run(ModifyController(world.context), "data", "default")
    assert world.driver.last("modify_volume")["secrets"] == {"password": SECRET}
    assert SECRET not in f"{error} {error!r}"
    assert SECRET not in world.all_text()
