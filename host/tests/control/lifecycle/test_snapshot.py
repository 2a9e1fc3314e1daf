"""Snapshots from the user's side: VolumeSnapshot, its content, its source, its end."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.api.objects import (
    PersistentVolumeClaim,
    VolumeSnapshot,
    VolumeSnapshotClass,
    VolumeSnapshotContent,
)
from volumehost.control.snapshots.snapshot_content_controller import SnapshotContentController
from volumehost.control.snapshots.snapshot_controller import SnapshotController
from volumehost.control.snapshots.snapshot_source_protection import SnapshotSourceProtection

V1 = "snapshot.storage.k8s.io/v1"
PREFIX = "snapshot.storage.kubernetes.io/"
BOUND = f"{PREFIX}volumesnapshot-bound-protection"
AS_SOURCE = f"{PREFIX}volumesnapshot-as-source-protection"
CLAIM_FINALIZER = f"{PREFIX}pvc-as-source-protection"
CONTENT_FINALIZER = f"{PREFIX}volumesnapshotcontent-bound-protection"
BEING_DELETED = f"{PREFIX}volumesnapshot-being-deleted"


class Actors:
    """The three controllers, each on demand."""

    def __init__(self, world: Any, run: Any) -> None:
        self.world, self._run = world, run
        self.snapshots = SnapshotController(world.context)
        self.contents = SnapshotContentController(world.context)
        self.protection = SnapshotSourceProtection(world.context)

    def snapshot(self, name: str = "monday") -> Any:
        return self._run(self.snapshots, name, "default")

    def content(self) -> Any:
        (content,) = self.world.api.list(VolumeSnapshotContent).items
        return self._run(self.contents, content)

    def claim(self, name: str = "data") -> Any:
        return self._run(self.protection, name, "default")

    def take(self) -> VolumeSnapshot:
        self.snapshot()
        self.content()
        self.snapshot()
        self.claim()
        return get(self.world)


def get(world: Any, name: str = "monday") -> VolumeSnapshot:
    return world.api.get(VolumeSnapshot, name, "default")


def content_of(world: Any) -> VolumeSnapshotContent:
    (content,) = world.api.list(VolumeSnapshotContent).items
    return content


def snapshot_class(
    world: Any, name: str = "fast", *, policy: str = "Delete", default: bool = False, **fields: Any
) -> Any:
    annotations = {f"{PREFIX}is-default-class": "true"} if default else {}
    given = {"driver": "driver.example.com", "deletionPolicy": policy} | fields
    return world.create("VolumeSnapshotClass", name, version=V1, metadata={"annotations": annotations}, **given)


def snapshot(world: Any, name: str = "monday", *, cls: str | None = "fast", **source: str) -> Any:
    spec: dict[str, Any] = {"source": source or {"persistentVolumeClaimName": "data"}}
    if cls is not None:
        spec["volumeSnapshotClassName"] = cls
    return world.create("VolumeSnapshot", name, namespace="default", version=V1, spec=spec)


@pytest.fixture
def actors(world: Any, run: Any) -> Actors:
    return Actors(world, run)


@pytest.fixture
def ready(world: Any, actors: Actors) -> VolumeSnapshot:
    world.bound_claim()
    snapshot_class(world)
    snapshot(world)
    return actors.take()


def reasons(world: Any) -> list[str]:
    return [reason for _, reason, _ in world.events]


def test_a_snapshot_of_a_claim(world: Any, ready: VolumeSnapshot) -> None:
    status = ready.status
    content = content_of(world)
    assert status.ready_to_use
    assert status.restore_size == "1Gi"
    assert status.creation_time == "2023-11-14T22:13:21.000000Z"
    assert status.bound_volume_snapshot_content_name == f"snapcontent-{ready.metadata.uid}" == content.metadata.name
    assert set(ready.metadata.finalizers) == {BOUND, AS_SOURCE}
    assert content.spec.source.volume_handle == "vol-1"
    assert content.spec.source_volume_mode == "Filesystem"
    assert content.spec.deletion_policy == "Delete"
    assert content.spec.volume_snapshot_class_name == "fast"
    assert content.spec.volume_snapshot_ref.uid == ready.metadata.uid
    assert content.metadata.finalizers == [CONTENT_FINALIZER]
    assert world.driver.last("create_snapshot")["name"] == f"snapshot-{ready.metadata.uid}"
    assert reasons(world) == ["CreatingSnapshot", "SnapshotCreated", "SnapshotReady"]


def test_the_source_is_kept_while_the_snapshot_is_taken(world: Any, actors: Actors) -> None:
    world.bound_claim()
    snapshot_class(world)
    snapshot(world)
    actors.snapshot()
    actors.claim()
    assert CLAIM_FINALIZER in world.pvc().metadata.finalizers
    actors.content()
    actors.snapshot()
    actors.claim()
    assert CLAIM_FINALIZER not in world.pvc().metadata.finalizers


def test_the_source_is_let_go_when_the_snapshot_ends_unready(world: Any, actors: Actors) -> None:
    world.bound_claim()
    snapshot_class(world)
    made = snapshot(world)
    actors.snapshot()
    world.api.delete(VolumeSnapshot, "monday", "default")
    actors.snapshot()
    actors.content()
    actors.snapshot()
    keys = actors.protection.watches()[VolumeSnapshot](made)
    assert [key.name for key in keys] == ["data"]
    actors.claim()
    assert CLAIM_FINALIZER not in world.pvc().metadata.finalizers


def test_a_claim_that_is_being_deleted_is_no_source(world: Any, actors: Actors) -> None:
    world.bound_claim()
    snapshot_class(world)
    world.api.patch(PersistentVolumeClaim, "data", {"metadata": {"finalizers": ["example.com/x"]}}, "default")
    world.api.delete(PersistentVolumeClaim, "data", "default")
    snapshot(world)
    assert "is being deleted" in str(actors.snapshot())


# --- classes ----------------------------------------------------------------------------------------------------------


def test_the_default_class_of_the_driver_is_chosen(world: Any, actors: Actors) -> None:
    world.bound_claim()
    snapshot_class(world, "other", driver="other.example.com", default=True)
    snapshot_class(world, "unmarked")
    snapshot_class(world, "gold", default=True)
    snapshot(world, cls=None)
    actors.snapshot()
    assert get(world).spec.volume_snapshot_class_name == "gold"
    assert content_of(world).spec.volume_snapshot_class_name == "gold"


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([], "create a VolumeSnapshotClass of that driver"),
        ([("a", False), ("b", False)], "name one of a, b"),
        ([("a", True), ("b", True)], "2 classes are marked as the default: a, b"),
    ],
)
def test_no_single_default_class(world: Any, actors: Actors, classes: Any, message: str) -> None:
    world.bound_claim()
    for name, default in classes:
        snapshot_class(world, name, default=default)
    snapshot(world, cls=None)
    assert message in str(actors.snapshot())
    assert message in str(get(world).status.error)
    assert get(world).status.error.time is not None
    assert get(world).status.ready_to_use is False
    added = snapshot_class(world, "z", default=not any(default for _, default in classes))
    assert [key.name for key in actors.snapshots.watches()[VolumeSnapshotClass](added)] == ["monday"]


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ("no class", "there is no VolumeSnapshotClass fast"),
        ("other driver", "is for driver other.example.com"),
        ("no claim", "there is no such claim"),
        ("unbound", "is not bound to a volume yet"),
        ("half a secret", "needs both a name and a namespace"),
        ("bad token", "stands for nothing here"),
    ],
)
def test_what_is_missing_is_told_and_waited_for(world: Any, actors: Actors, problem: str, message: str) -> None:
    parameters = {}
    if problem == "half a secret":
        parameters = {"csi.storage.k8s.io/snapshotter-secret-name": "keys"}
    if problem == "bad token":
        parameters = {
            "csi.storage.k8s.io/snapshotter-secret-name": "keys",
            # A user names the snapshot: that must not choose the namespace of a secret.
            "csi.storage.k8s.io/snapshotter-secret-namespace": "${volumesnapshot.name}",
        }
    if problem != "no class":
        driver = "other.example.com" if problem == "other driver" else "driver.example.com"
        snapshot_class(world, driver=driver, parameters=parameters)
    if problem == "unbound":
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        world.create("PersistentVolumeClaim", "data", namespace="default", spec=claim)
    elif problem != "no claim":
        world.bound_claim()
    snapshot(world)
    assert message in str(actors.snapshot())
    actors.snapshot()
    assert message in get(world).status.error.message
    assert reasons(world) == ["SnapshotContentCreationFailed"]
    assert not world.api.list(VolumeSnapshotContent).items
    assert world.driver.calls == []


# --- snapshots that exist already -------------------------------------------------------------------------------------


def given_content(world: Any, *, policy: str = "Retain", handle: str = "snap-1", **fields: Any) -> Any:
    spec = {
        "driver": "driver.example.com",
        "deletionPolicy": policy,
        "source": {"snapshotHandle": handle},
        "volumeSnapshotRef": {"name": "monday", "namespace": "default"},
    } | fields
    return world.create("VolumeSnapshotContent", "given", version=V1, spec=spec)


def test_a_snapshot_that_exists_is_bound(world: Any, actors: Actors) -> None:
    world.driver.add_volume("vol-1", 2**30)
    world.driver.create_snapshot("vol-1", "by-hand", {}, {})
    given_content(world)
    snapshot(world, cls=None, volumeSnapshotContentName="given")
    actors.snapshot()
    assert content_of(world).spec.volume_snapshot_ref.uid == get(world).metadata.uid
    actors.content()
    actors.snapshot()
    assert get(world).status.ready_to_use
    assert get(world).status.restore_size == "1Gi"
    assert BOUND not in get(world).metadata.finalizers
    assert world.driver.count("create_snapshot") == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"volumeSnapshotRef": {"name": "tuesday", "namespace": "default"}}, "belongs to snapshot default/tuesday"),
        ({"volumeSnapshotRef": {"name": "monday", "namespace": "other"}}, "belongs to snapshot other/monday"),
        ({"volumeSnapshotRef": {"name": "monday", "namespace": "default", "uid": "u"}}, "(uid u)"),
        ({"source": {"volumeHandle": "vol-1"}}, "must have a snapshot that exists (snapshotHandle)"),
    ],
)
def test_a_content_of_others(world: Any, actors: Actors, fields: Any, message: str) -> None:
    given_content(world, **fields)
    snapshot(world, cls=None, volumeSnapshotContentName="given")
    assert message in str(actors.snapshot())
    assert message in get(world).status.error.message
    assert not get(world).status.bound_volume_snapshot_content_name


def test_a_content_that_is_not_there_yet(world: Any, actors: Actors) -> None:
    snapshot(world, cls=None, volumeSnapshotContentName="given")
    assert "is missing" in str(actors.snapshot())
    assert reasons(world) == ["SnapshotContentMissing"]
    made = given_content(world)
    assert list(actors.snapshots.watches()[VolumeSnapshotContent](made)) == [("monday", "default")]
    actors.snapshot()
    assert get(world).status.error is None


def test_a_content_that_was_lost_is_not_made_anew(world: Any, actors: Actors, ready: VolumeSnapshot) -> None:
    content = content_of(world)
    world.api.patch(VolumeSnapshotContent, content.metadata.name, {"metadata": {"finalizers": None}})
    world.api.delete(VolumeSnapshotContent, content.metadata.name)
    assert "is missing" in str(actors.snapshot())
    assert get(world).status.ready_to_use is False
    assert not world.api.list(VolumeSnapshotContent).items


# --- the end ----------------------------------------------------------------------------------------------------------


def gone(world: Any) -> bool:
    return not world.api.list(VolumeSnapshot).items


def delete(world: Any) -> None:
    world.api.delete(VolumeSnapshot, "monday", "default")


def test_delete_takes_the_drivers_snapshot_along(world: Any, actors: Actors, ready: VolumeSnapshot) -> None:
    delete(world)
    actors.snapshot()
    assert content_of(world).metadata.deletion_timestamp
    assert BEING_DELETED in content_of(world).metadata.annotations
    assert get(world).metadata.finalizers == [BOUND]
    actors.content()
    assert not world.api.list(VolumeSnapshotContent).items
    assert world.driver.snapshots == []
    actors.snapshot()
    assert gone(world)


def test_retain_leaves_content_and_snapshot(world: Any, actors: Actors) -> None:
    world.bound_claim()
    snapshot_class(world, policy="Retain")
    snapshot(world)
    made = actors.take()
    assert made.metadata.finalizers == [AS_SOURCE]
    delete(world)
    actors.snapshot()
    assert gone(world)
    assert not content_of(world).metadata.deletion_timestamp
    assert world.driver.snapshots == ["snap-1"]
    # The content that is left can be deleted by hand; with it goes what its policy says then.
    world.api.patch(VolumeSnapshotContent, content_of(world).metadata.name, {"spec": {"deletionPolicy": "Delete"}})
    world.api.delete(VolumeSnapshotContent, content_of(world).metadata.name)
    actors.content()
    assert world.driver.snapshots == []
    assert not world.api.list(VolumeSnapshotContent).items


def test_a_snapshot_that_is_being_restored_from_stays(world: Any, actors: Actors, ready: VolumeSnapshot) -> None:
    restored = world.create(
        "PersistentVolumeClaim",
        "restored",
        namespace="default",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "dataSource": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "monday"},
        },
    )
    delete(world)
    assert "used to restore a PVC: restored" in str(actors.snapshot())
    assert reasons(world)[-1] == "SnapshotDeletePending"
    assert get(world).status.ready_to_use  # the restore goes on
    assert not content_of(world).metadata.deletion_timestamp
    restored.status.phase = "Bound"
    restored = world.api.replace_status(restored)
    assert ("monday", "default") in list(actors.snapshots.watches()[PersistentVolumeClaim](restored))
    actors.snapshot()
    assert content_of(world).metadata.deletion_timestamp


def test_an_error_of_the_delete_is_shown(world: Any, actors: Actors, ready: VolumeSnapshot) -> None:
    delete(world)
    actors.snapshot()
    world.driver.fail("delete_snapshot", "INTERNAL", message="busy")
    assert "busy" in str(actors.content())
    actors.snapshot()
    assert "busy" in get(world).status.error.message
    assert "SnapshotDeleteError" in reasons(world)
    actors.content()
    actors.snapshot()
    assert gone(world)


def test_a_snapshot_without_content_goes_at_once(world: Any, actors: Actors) -> None:
    snapshot(world)
    actors.snapshot()
    delete(world)
    actors.snapshot()
    assert gone(world)


def test_own_marks_do_not_bring_it_back(world: Any, actors: Actors) -> None:
    affects = actors.snapshots.watches()[VolumeSnapshot]
    assert list(affects(snapshot(world)))
    actors.snapshot()
    assert not list(affects(get(world)))
    delete(world)
    assert list(affects(get(world)))
