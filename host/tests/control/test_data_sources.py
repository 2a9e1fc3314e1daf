"""Clones and restored snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.api.convert import to_object
from volumehost.api.objects import PersistentVolumeClaim, VolumeSnapshot, VolumeSnapshotContent
from volumehost.testing.storage_driver import EVERYTHING, without

CLONING = "provisioner.storage.kubernetes.io/cloning-protection"
SNAPSHOT = {"kind": "VolumeSnapshot", "apiGroup": "snapshot.storage.k8s.io", "name": "snap"}
CLONE = {"kind": "PersistentVolumeClaim", "name": "data"}


@pytest.fixture
def source(world: Any, make: Any) -> Any:
    """A world with a bound claim of 1 GiB."""
    world.api.create(make.storage_class())
    world.api.create(make.claim())
    world.run_all()
    world.wait(world.bound)
    return world


def fails_with(world: Any, text: str) -> None:
    world.wait(lambda: any(text in event.message for event in world.events("ProvisioningFailed")), text)


def snapshot(world: Any, **changes: Any) -> None:
    """A snapshot that is ready; ``changes`` tell what is wrong with it."""
    made = to_object(
        VolumeSnapshot, {"metadata": {"name": "snap"}, "spec": {"source": {"persistentVolumeClaimName": "data"}}}
    )
    made = world.api.create(made)
    content = {
        "metadata": {"name": "content", "annotations": changes.get("annotations", {})},
        "spec": {
            "deletionPolicy": "Delete",
            "driver": changes.get("driver", "driver.example.com"),
            "source": {"volumeHandle": "vol-1"},
            "sourceVolumeMode": changes.get("mode", "Filesystem"),
            "volumeSnapshotRef": {
                "kind": "VolumeSnapshot",
                "name": "snap",
                "namespace": "default",
                "uid": changes.get("uid", made.metadata.uid),
            },
        },
    }
    stored = world.api.create(to_object(VolumeSnapshotContent, content))
    stored.status.snapshot_handle = "snap-1"
    world.api.replace_status(stored)
    made.status.bound_volume_snapshot_content_name = "content"
    made.status.ready_to_use = changes.get("ready", True)
    made.status.restore_size = changes.get("size", "1Gi")
    world.api.replace_status(made)


def test_a_clone_is_made_from_the_volume_of_its_source(source: Any, make: Any) -> None:
    source.api.create(make.claim("copy", dataSource=CLONE))
    source.wait(lambda: source.bound("copy"))
    handle = source.volume(source.claim().spec.volume_name).spec.csi.volume_handle
    assert source.driver.last("create_volume")["request"].source_volume == handle
    source.settle()
    assert CLONING not in source.claim().metadata.finalizers


def test_the_source_of_a_clone_is_protected_until_the_clone_is_made(source: Any, make: Any) -> None:
    source.driver.fail("create_volume", "ABORTED")  # tried again after a second, whatever the backoff
    source.api.create(make.claim("copy", dataSource=CLONE))
    fails_with(source, "ABORTED")
    source.api.delete(PersistentVolumeClaim, "data", "default")
    assert CLONING in source.claim().metadata.finalizers
    original = source.claim()
    source.wait(lambda: source.bound("copy"))
    source.wait(lambda: source.gone(original))


def test_a_clone_waits_for_its_source(world: Any, make: Any) -> None:
    world.api.create(make.storage_class())
    world.api.create(make.claim("copy", dataSource=CLONE))
    plane = world.run_all(first_delay=1000.0)
    world.wait(lambda: any("there is no claim data" in line for line in plane.explain(world.claim("copy"))))
    world.api.create(make.claim())
    world.wait(lambda: world.bound("copy"))


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ({"size": "1Mi"}, "ask for at least as much"),
        ({"volumeMode": "Block"}, "has another volumeMode"),
        ({"storage_class": "other"}, "is no volume of driver"),
    ],
)
def test_a_clone_that_cannot_be(source: Any, make: Any, claim: Any, reason: str) -> None:
    source.drivers["other.example.com"] = type(source.driver)("other.example.com")
    source.api.create(make.storage_class("other", provisioner="other.example.com"))
    source.api.create(make.claim("copy", dataSource=CLONE, **claim))
    fails_with(source, reason)


def test_a_source_in_another_namespace_is_refused(source: Any, make: Any) -> None:
    source.api.create(make.claim("copy", dataSourceRef={**CLONE, "namespace": "other"}))
    fails_with(source, "data source is in namespace other")


def test_other_sources_are_for_populators(source: Any, make: Any) -> None:
    source.api.create(make.claim("copy", dataSource={"kind": "Seed", "apiGroup": "acme.example.com", "name": "s"}))
    fails_with(source, "volume populator")


@pytest.mark.parametrize(("capability", "data_source"), [("CLONE_VOLUME", CLONE), ("CREATE_DELETE_SNAPSHOT", SNAPSHOT)])
def test_a_driver_without_the_capability_is_not_asked(
    source: Any, make: Any, capability: str, data_source: Any
) -> None:
    source.driver.declared = without(EVERYTHING, capability)
    source.api.create(make.claim("copy", dataSource=data_source))
    fails_with(source, f"it does not declare {capability}")
    assert source.driver.count("create_volume") == 1


def test_a_driver_that_forgets_the_source_made_an_empty_volume(source: Any, make: Any) -> None:
    source.driver.forget_source = True
    source.api.create(make.claim("copy", dataSource=CLONE))
    fails_with(source, "made from its source")
    assert len(source.driver.volumes) == 1


def test_a_snapshot_is_restored(world: Any, make: Any) -> None:
    world.api.create(make.storage_class())
    snapshot(world)
    world.api.create(make.claim("copy", size="2Gi", dataSource=SNAPSHOT))
    world.run(*provisioning())
    world.wait(lambda: world.bound("copy"))
    assert world.driver.last("create_volume")["request"].source_snapshot == "snap-1"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ready": False}, "is not ready to use"),
        ({"uid": "another"}, "is not bound"),
        ({"driver": "other.example.com"}, "is of driver other.example.com"),
        ({"mode": "Block"}, "was taken of a volume of mode Block"),
        ({"size": "9Gi"}, "ask for at least as much"),
    ],
)
def test_a_snapshot_that_cannot_be_restored(world: Any, make: Any, changes: Any, reason: str) -> None:
    world.api.create(make.storage_class())
    snapshot(world, **changes)
    world.api.create(make.claim("copy", dataSource=SNAPSHOT))
    world.run(*provisioning())
    fails_with(world, reason)
    assert world.driver.count("create_volume") == 0


def test_a_snapshot_of_another_mode_is_restored_where_somebody_allows_it(world: Any, make: Any) -> None:
    world.api.create(make.storage_class())
    allowed = {"snapshot.storage.kubernetes.io/allow-volume-mode-change": "true"}
    snapshot(world, mode="Block", annotations=allowed)
    world.api.create(make.claim("copy", dataSource=SNAPSHOT))
    world.run(*provisioning())
    world.wait(lambda: world.bound("copy"))


def provisioning() -> list[Any]:
    """The controllers of this part alone: those of snapshots would have their own view of half a snapshot."""
    from volumehost.control.binding.claim_binder import ClaimBinder
    from volumehost.control.binding.volume_reclaimer import VolumeReclaimer

    return [ClaimBinder, VolumeReclaimer]
