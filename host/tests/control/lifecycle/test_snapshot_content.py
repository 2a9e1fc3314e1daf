"""Snapshots from the driver's side: CreateSnapshot, DeleteSnapshot, errors, secrets; nothing is ever leaked."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.api.objects import VolumeSnapshotContent
from volumehost.control.snapshots.snapshot_content_controller import SnapshotContentController
from volumehost.errors import StorageDriverUnavailableError
from volumehost.storage_driver import DriverSnapshot
from volumehost.testing.storage_driver import EVERYTHING, without

V1 = "snapshot.storage.k8s.io/v1"
PREFIX = "snapshot.storage.kubernetes.io/"
BEING_CREATED = f"{PREFIX}volumesnapshot-being-created"
BEING_DELETED = f"{PREFIX}volumesnapshot-being-deleted"
SECRET = "hunter2-never-to-be-seen"
FINAL = ["INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION", "UNIMPLEMENTED", "INTERNAL", "UNKNOWN", "OUT_OF_RANGE"]
UNCERTAIN = ["CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED", ""]


@pytest.fixture
def snapshotter(world: Any) -> SnapshotContentController:
    world.driver.add_volume("vol-1", 2**30)
    return SnapshotContentController(world.context)


def snapshot_class(world: Any, **parameters: str) -> None:
    prefixed = {key.replace("__", "/").replace("_", "-"): text for key, text in parameters.items()}
    world.create(
        "VolumeSnapshotClass",
        "fast",
        version=V1,
        driver="driver.example.com",
        deletionPolicy="Delete",
        parameters={"kind": "full"} | {f"csi.storage.k8s.io/{key}": text for key, text in prefixed.items()},
    )


def content(world: Any, *, annotations: Any = None, **fields: Any) -> VolumeSnapshotContent:
    spec = {
        "driver": "driver.example.com",
        "deletionPolicy": "Delete",
        "source": {"volumeHandle": "vol-1"},
        "volumeSnapshotClassName": "fast",
        "volumeSnapshotRef": {"name": "monday", "namespace": "default", "uid": "uid-1"},
    } | fields
    metadata = {"annotations": annotations or {}}
    return world.create("VolumeSnapshotContent", "c", version=V1, metadata=metadata, spec=spec)


def get(world: Any) -> VolumeSnapshotContent:
    return world.api.get(VolumeSnapshotContent, "c")


def end(world: Any) -> None:
    """As the snapshot controller ends a content."""
    world.api.patch(VolumeSnapshotContent, "c", {"metadata": {"annotations": {BEING_DELETED: "yes"}}})
    world.api.delete(VolumeSnapshotContent, "c")


def gone(world: Any) -> bool:
    return not world.api.list(VolumeSnapshotContent).items


def test_create(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    snapshot_class(world)
    assert run(snapshotter, content(world)) is None
    status = get(world).status
    assert status.snapshot_handle == "snap-1"
    assert status.restore_size == 2**30
    assert status.creation_time == 1_700_000_001 * 10**9
    assert status.ready_to_use
    call = world.driver.last("create_snapshot")
    assert (call["source_volume"], call["name"], call["parameters"]) == ("vol-1", "snapshot-uid-1", {"kind": "full"})
    assert BEING_CREATED not in get(world).metadata.annotations
    assert "CreateSnapshot" in world.steps[0]
    run(snapshotter, "c")
    assert world.driver.count("create_snapshot") == 1


def test_it_is_asked_again_until_it_is_ready(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    world.driver.ready_after = 3
    snapshot_class(world)
    delays = [run(snapshotter, content(world)), run(snapshotter, "c")]
    assert delays == [1.0, 1.5]
    assert get(world).status.snapshot_handle == "snap-1"
    assert get(world).status.ready_to_use is False
    assert run(snapshotter, "c") is None
    assert get(world).status.ready_to_use
    assert world.driver.snapshots == ["snap-1"]


def test_a_driver_that_tells_neither_time_nor_size(
    world: Any, snapshotter: SnapshotContentController, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = DriverSnapshot("s", "vol-1", 0, 0.0, ready_to_use=True)
    monkeypatch.setattr(world.driver, "create_snapshot", lambda *_a, **_k: answer)
    snapshot_class(world)
    run(snapshotter, content(world))
    assert get(world).status.creation_time == int(world.now * 10**9)
    assert get(world).status.restore_size is None


def test_a_driver_that_names_nothing(
    world: Any, snapshotter: SnapshotContentController, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = DriverSnapshot("", "vol-1", 0, 0.0, ready_to_use=True)
    monkeypatch.setattr(world.driver, "create_snapshot", lambda *_a, **_k: answer)
    snapshot_class(world)
    assert "without the id of a snapshot" in str(run(snapshotter, content(world)))
    assert not get(world).status.ready_to_use


@pytest.mark.parametrize("code", FINAL)
def test_final_errors(world: Any, snapshotter: SnapshotContentController, run: Any, code: str) -> None:
    snapshot_class(world)
    world.driver.fail("create_snapshot", code, message="quota")
    assert "quota" in str(run(snapshotter, content(world)))
    assert "quota" in get(world).status.error.message
    assert get(world).status.error.time.startswith("2027-01-15T08:00:00")
    assert get(world).status.ready_to_use is False
    assert BEING_CREATED not in get(world).metadata.annotations
    assert [reason for _, reason, _ in world.events] == ["SnapshotCreationFailed"]
    end(world)
    run(snapshotter, "c")
    assert gone(world)
    assert world.driver.count("create_snapshot") == 1  # there is none, and that is known


@pytest.mark.parametrize("code", UNCERTAIN)
def test_uncertain_results_never_leak_a_snapshot(
    world: Any, snapshotter: SnapshotContentController, run: Any, code: str
) -> None:
    snapshot_class(world)
    world.driver.fail("create_snapshot", code, after_effect=True)
    assert isinstance(run(snapshotter, content(world)), Exception)
    assert BEING_CREATED in get(world).metadata.annotations
    assert world.driver.snapshots == ["snap-1"]
    end(world)
    again = SnapshotContentController(world.context)
    assert run(again, "c") == 0.0
    assert get(world).status.snapshot_handle == "snap-1"
    run(again, "c")
    assert gone(world)
    assert world.driver.snapshots == []


def test_what_cannot_be_found_out_is_not_forgotten(
    world: Any, snapshotter: SnapshotContentController, run: Any
) -> None:
    snapshot_class(world)
    world.driver.fail("create_snapshot", "DEADLINE_EXCEEDED", after_effect=True, times=2)
    run(snapshotter, content(world))
    end(world)
    assert isinstance(run(snapshotter, "c"), Exception)
    assert not gone(world)
    assert get(world).status.error is not None
    run(snapshotter, "c")
    run(snapshotter, "c")
    assert gone(world)
    assert world.driver.snapshots == []


def test_an_error_before_the_call_says_nothing_about_an_earlier_call(
    world: Any, snapshotter: SnapshotContentController, run: Any
) -> None:
    snapshot_class(world)
    world.secret()
    annotations = {f"{PREFIX}deletion-secret-name": "keys", f"{PREFIX}deletion-secret-namespace": "vault"}
    world.driver.fail("create_snapshot", "DEADLINE_EXCEEDED", after_effect=True)
    run(snapshotter, content(world, annotations=annotations))
    from volumehost.api.objects import Secret

    world.api.delete(Secret, "keys", "vault")
    assert "no such secret" in str(run(snapshotter, "c"))
    assert BEING_CREATED in get(world).metadata.annotations
    end(world)
    assert "no such secret" in str(run(snapshotter, "c"))
    assert not gone(world)
    world.secret()
    run(snapshotter, "c")
    run(snapshotter, "c")
    assert gone(world)
    assert world.driver.snapshots == []


def test_after_an_uncertain_error_a_failure_proves_nothing(
    world: Any, snapshotter: SnapshotContentController, run: Any
) -> None:
    snapshot_class(world)
    world.driver.fail("create_snapshot", "DEADLINE_EXCEEDED", after_effect=True)
    run(snapshotter, content(world))
    world.driver.fail("create_snapshot", "INTERNAL", times=2)
    run(snapshotter, "c")
    end(world)
    assert isinstance(run(snapshotter, "c"), Exception)
    assert not gone(world)
    run(snapshotter, "c")
    run(snapshotter, "c")
    assert gone(world)
    assert world.driver.snapshots == []


@pytest.mark.parametrize("code", ["INVALID_ARGUMENT", "NOT_FOUND", "UNIMPLEMENTED"])
def test_after_an_uncertain_error_a_refusal_settles_it(
    world: Any, snapshotter: SnapshotContentController, run: Any, code: str
) -> None:
    snapshot_class(world)
    world.driver.fail("create_snapshot", "DEADLINE_EXCEEDED")
    run(snapshotter, content(world))
    end(world)
    world.driver.fail("create_snapshot", code)
    assert run(snapshotter, "c") == 0.0
    run(snapshotter, "c")
    assert gone(world)
    assert world.driver.snapshots == []


def test_retain(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    snapshot_class(world)
    run(snapshotter, content(world, deletionPolicy="Retain"))
    end(world)
    run(snapshotter, "c")
    assert gone(world)
    assert world.driver.snapshots == ["snap-1"]


def test_a_content_whose_snapshot_lives_stays(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    spec = {"source": {"persistentVolumeClaimName": "data"}}
    owner = world.create("VolumeSnapshot", "monday", namespace="default", version=V1, spec=spec)
    reference = {"name": "monday", "namespace": "default", "uid": owner.metadata.uid}
    snapshot_class(world)
    run(snapshotter, content(world, volumeSnapshotRef=reference))
    world.api.delete(VolumeSnapshotContent, "c")
    assert run(snapshotter, "c") is None
    assert not gone(world)
    assert world.driver.snapshots == ["snap-1"]


@pytest.mark.parametrize("code", [*FINAL, *UNCERTAIN])
def test_delete_is_repeated_until_it_works(
    world: Any, snapshotter: SnapshotContentController, run: Any, code: str
) -> None:
    snapshot_class(world)
    run(snapshotter, content(world))
    end(world)
    world.driver.fail("delete_snapshot", code)
    assert isinstance(run(snapshotter, "c"), Exception)
    assert not gone(world)
    assert get(world).status.error is not None
    run(snapshotter, "c")
    assert gone(world)
    assert world.driver.last("delete_snapshot")["handle"] == "snap-1"


# --- snapshots that exist already -------------------------------------------------------------------------------------

GIVEN: Any = {
    "source": {"snapshotHandle": "snap-1"},
    "volumeSnapshotClassName": None,
    "volumeSnapshotRef": {"name": "monday", "namespace": "default"},
}


def test_one_that_exists(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    world.driver.create_snapshot("vol-1", "by-hand", {}, {})
    run(snapshotter, content(world, **GIVEN))
    assert get(world).status.ready_to_use
    assert get(world).status.restore_size == 2**30
    assert world.driver.count("create_snapshot") == 1


def test_one_that_does_not(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    assert "has no snapshot snap-1" in str(run(snapshotter, content(world, **GIVEN)))
    assert "has no snapshot snap-1" in get(world).status.error.message


def test_a_driver_that_cannot_tell_is_believed(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    world.driver.declared = without(EVERYTHING, "GET_SNAPSHOT", "LIST_SNAPSHOTS", "CREATE_DELETE_SNAPSHOT")
    run(snapshotter, content(world, **GIVEN))
    assert get(world).status.ready_to_use
    assert get(world).status.snapshot_handle == "snap-1"


def test_one_that_never_was_bound_is_let_go_with_its_object(
    world: Any, snapshotter: SnapshotContentController, run: Any
) -> None:
    world.driver.create_snapshot("vol-1", "by-hand", {}, {})
    run(snapshotter, content(world, **GIVEN | {"deletionPolicy": "Retain"}))
    world.api.delete(VolumeSnapshotContent, "c")
    run(snapshotter, "c")
    assert gone(world)
    assert world.driver.snapshots == ["snap-1"]


def test_the_list_secret(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    world.driver.create_snapshot("vol-1", "by-hand", {}, {})
    world.secret("keys-c")
    snapshot_class(
        world,
        snapshotter_list_secret_name="keys-${volumesnapshotcontent.name}",
        snapshotter_list_secret_namespace="vault",
    )
    run(snapshotter, content(world, **GIVEN | {"volumeSnapshotClassName": "fast"}))
    assert world.driver.last("get_snapshot")["secrets"] == {"password": SECRET}


# --- drivers and secrets ----------------------------------------------------------------------------------------------


def test_a_driver_without_snapshots(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    world.driver.declared = without(EVERYTHING, "CREATE_DELETE_SNAPSHOT")
    snapshot_class(world)
    assert "has no snapshots" in str(run(snapshotter, content(world)))
    assert world.driver.calls == []


def test_a_driver_that_does_not_run(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    snapshot_class(world)
    world.unavailable = True
    assert isinstance(run(snapshotter, content(world)), StorageDriverUnavailableError)
    assert BEING_CREATED not in get(world).metadata.annotations


def test_a_driver_that_nobody_has(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    made = content(world, driver="other.example.com")
    assert isinstance(run(snapshotter, made), StorageDriverUnavailableError)
    world.external_drivers = True
    assert run(SnapshotContentController(world.context), made) is None


def test_a_reserved_parameter(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    snapshot_class(world, unknown="x")
    assert "unknown parameter csi.storage.k8s.io/unknown" in str(run(snapshotter, content(world)))


def test_br_74_secrets(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    world.secret()
    snapshot_class(world)
    annotations = {f"{PREFIX}deletion-secret-name": "keys", f"{PREFIX}deletion-secret-namespace": "vault"}
    world.driver.fail("create_snapshot", "INTERNAL", message=f"login with {SECRET}")
    error = run(snapshotter, content(world, annotations=annotations))
    assert world.driver.last("create_snapshot")["secrets"] == {"password": SECRET}
    run(snapshotter, "c")
    end(world)
    world.driver.fail("delete_snapshot", "INTERNAL", message=f"login with {SECRET}")
    second = run(snapshotter, "c")
    assert world.driver.last("delete_snapshot")["secrets"] == {"password": SECRET}
    assert SECRET not in f"{error} {error!r} {second} {second!r} {get(world)} {get(world).status.error}"
    assert SECRET not in world.all_text()


def test_half_a_reference_to_a_secret(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    snapshot_class(world)
    made = content(world, annotations={f"{PREFIX}deletion-secret-name": "keys"})
    assert "must both be set" in str(run(snapshotter, made))


def test_own_marks_do_not_bring_it_back(world: Any, snapshotter: SnapshotContentController, run: Any) -> None:
    affects = snapshotter.watches()[VolumeSnapshotContent]
    snapshot_class(world)
    assert list(affects(content(world)))
    world.driver.fail("create_snapshot", "DEADLINE_EXCEEDED")
    run(snapshotter, "c")
    assert not list(affects(get(world)))
    world.driver.fail("create_snapshot", "INTERNAL")
    run(snapshotter, "c")
    assert not list(affects(get(world)))
