"""Controllers of a cluster read from caches, one of which may be behind another: nothing is lost on that.

PVC-21, PVC-22, PVC-41, PVC-51, BR-46.
"""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.api.objects import (
    KubeObject,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    VolumeSnapshot,
    VolumeSnapshotContent,
)
from volumehost.control.binding.bind_writes import set_claim_phase
from volumehost.control.binding.claim_binder import ClaimBinder
from volumehost.control.binding.intent import Intent, write_intent
from volumehost.control.binding.volume_reclaimer import VolumeReclaimer
from volumehost.control.machinery.controller import Key
from volumehost.control.provisioning.ephemeral import EphemeralClaims
from volumehost.control.snapshots.snapshot_content_controller import SnapshotContentController
from volumehost.control.snapshots.snapshot_controller import SnapshotController
from volumehost.control.snapshots.snapshot_names import BOUND_FINALIZER, CONTENT_FINALIZER, content_name
from volumehost.errors import ConflictError, ObjectNotFoundError
from volumehost.storage_driver import CreateVolumeRequest

SNAPSHOTS = "snapshot.storage.k8s.io/v1"


class OldView:
    """An API whose reads know some objects as they were; ``None`` for what had not been heard of."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self.old: dict[tuple[type[KubeObject], str], KubeObject | None] = {}

    def get(self, kind: type[Any], name: str, namespace: str = "") -> Any:
        found = self.old.get((kind, name), self)
        if found is None:
            raise ObjectNotFoundError(f"there is no {name}", subject=name)
        return self._api.get(kind, name, namespace) if found is self else found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)


@pytest.fixture
def bound(world: Any, make: Any) -> Any:
    """A provisioned claim that is bound; then nothing runs any more."""
    world.api.create(make.storage_class())
    world.api.create(make.claim())
    world.run_all()
    world.wait(world.bound)
    world.settle()
    world.stop()
    return world


@pytest.fixture
def view(bound: Any) -> OldView:
    return OldView(bound.api)


def context(world: Any, view: OldView) -> Any:
    return world.context(api=view, live=world.api)


def test_pvc_21_a_volume_is_not_released_because_its_claim_was_not_heard_of_yet(bound: Any, view: OldView) -> None:
    """Whoever deletes released volumes, the external-provisioner for example, would take the data with it."""
    (volume,) = bound.volumes()
    view.old[PersistentVolumeClaim, "data"] = None
    VolumeReclaimer(context(bound, view)).reconcile(Key.of(volume))
    assert bound.volumes()[0].status.phase == "Bound"
    assert bound.driver.volumes


def test_pvc_21_another_claim_of_the_name_is_asked_for_once_more(bound: Any, view: OldView) -> None:
    """The claim was deleted and made again: the cache has the former one, the volume is the new one's."""
    (volume,) = bound.volumes()
    former = bound.claim()
    former.metadata.uid = "former"
    view.old[PersistentVolumeClaim, "data"] = former
    VolumeReclaimer(context(bound, view)).reconcile(Key.of(volume))
    assert bound.volumes()[0].status.phase == "Bound"
    assert bound.driver.volumes


def test_pvc_22_the_binder_releases_no_volume_of_a_claim_that_was_not_heard_of_yet(bound: Any, view: OldView) -> None:
    view.old[PersistentVolumeClaim, "data"] = None
    ClaimBinder(context(bound, view)).reconcile(Key("data", "default"))
    assert bound.volumes()[0].status.phase == "Bound"


def test_pvc_12_a_claim_is_not_lost_because_its_volume_was_not_heard_of_yet(bound: Any, view: OldView) -> None:
    (volume,) = bound.volumes()
    view.old[PersistentVolume, volume.metadata.name] = None
    ClaimBinder(context(bound, view)).reconcile(Key("data", "default"))
    assert bound.claim().status.phase == "Bound"
    assert not bound.events("ClaimLost")


@pytest.mark.parametrize("what", ["policy", "claim"])
def test_pvc_41_42_what_a_volume_is_now_counts_when_its_storage_is_deleted(
    bound: Any, view: OldView, make: Any, what: str
) -> None:
    """Somebody has rescued it, by another policy or by giving it to another claim, and the cache is behind."""
    (volume,) = bound.volumes()
    name = volume.metadata.name
    volume.status.phase = "Released"
    view.old[PersistentVolume, name] = bound.api.replace_status(volume)
    bound.api.delete(PersistentVolumeClaim, "data", "default")
    if what == "policy":
        bound.api.patch(PersistentVolume, name, {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})
    else:
        other = bound.api.create(make.claim("other"))
        rescued = {"name": "other", "uid": other.metadata.uid}
        bound.api.patch(PersistentVolume, name, {"spec": {"claimRef": rescued}})
    VolumeReclaimer(context(bound, view)).reconcile(Key(name))
    assert bound.driver.count("delete_volume") == 0
    assert bound.volume(name).metadata.deletion_timestamp is None


def test_the_claim_of_a_pod_that_was_not_heard_of_yet_is_not_taken_for_left_behind(world: Any, make: Any) -> None:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    world.api.create(make.pod(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}]))
    view = OldView(world.api)
    EphemeralClaims(context(world, view)).reconcile(Key("web", "default"))
    view.old[Pod, "web"] = None
    EphemeralClaims(context(world, view)).reconcile(Key("web", "default"))
    assert world.claim("web-v").metadata.deletion_timestamp is None


def test_pvc_52_a_volume_that_a_cache_has_not_heard_of_is_not_deleted_again(bound: Any, view: OldView) -> None:
    """Another controller has made the PersistentVolume, which is to be retained, and its claim is deleted."""
    (volume,) = bound.volumes()
    bound.api.patch(PersistentVolume, volume.metadata.name, {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})
    handle = volume.spec.csi.volume_handle
    request = CreateVolumeRequest(volume.metadata.name, [], 2**30)
    noted = write_intent(bound.api, bound.claim(), Intent("driver.example.com", request, {}, handle=handle))
    view.old[PersistentVolume, volume.metadata.name] = None
    bound.api.delete(PersistentVolumeClaim, "data", "default")
    ClaimBinder(context(bound, view)).reconcile(Key("data", "default"))
    assert bound.driver.count("delete_volume") == 0
    assert bound.gone(noted)


def test_a_snapshot_keeps_its_content_though_a_cache_has_not_heard_of_it(bound: Any, view: OldView) -> None:
    """Somebody deletes the content; the driver's snapshot stays as long as there is a VolumeSnapshot of it."""
    snapshot = bound.api.create(
        {
            "apiVersion": SNAPSHOTS,
            "kind": "VolumeSnapshot",
            "metadata": {"name": "monday", "namespace": "default"},
            "spec": {"source": {"persistentVolumeClaimName": "data"}},
        }
    )
    content = _content(bound, snapshot)
    bound.api.delete(VolumeSnapshotContent, content.metadata.name)
    view.old[VolumeSnapshot, "monday"] = None
    SnapshotContentController(context(bound, view)).reconcile(Key.of(content))
    assert bound.driver.count("delete_snapshot") == 0
    bound.api.delete(VolumeSnapshot, "monday", "default")
    SnapshotContentController(context(bound, view)).reconcile(Key.of(content))
    assert bound.driver.count("delete_snapshot") == 1


def test_a_snapshot_that_goes_takes_its_content_along_though_a_cache_has_not_heard_of_that(
    bound: Any, view: OldView
) -> None:
    snapshot = bound.api.create(
        {
            "apiVersion": SNAPSHOTS,
            "kind": "VolumeSnapshot",
            "metadata": {"name": "monday", "namespace": "default", "finalizers": [BOUND_FINALIZER]},
            "spec": {"source": {"persistentVolumeClaimName": "data"}},
        }
    )
    content = _content(bound, snapshot)
    bound.api.delete(VolumeSnapshot, "monday", "default")
    view.old[VolumeSnapshotContent, content.metadata.name] = None
    controller = SnapshotController(context(bound, view))
    with pytest.raises(ObjectNotFoundError):  # and again later
        controller.reconcile(Key("monday", "default"))
    assert bound.api.get(VolumeSnapshot, "monday", "default").metadata.finalizers == [BOUND_FINALIZER]
    view.old.clear()
    controller.reconcile(Key("monday", "default"))
    assert bound.api.get(VolumeSnapshotContent, content.metadata.name).metadata.deletion_timestamp is not None


def _content(world: Any, snapshot: VolumeSnapshot) -> VolumeSnapshotContent:
    reference = {"name": "monday", "namespace": "default", "uid": snapshot.metadata.uid}
    made = world.api.create(
        {
            "apiVersion": SNAPSHOTS,
            "kind": "VolumeSnapshotContent",
            "metadata": {"name": content_name(snapshot), "finalizers": [CONTENT_FINALIZER]},
            "spec": {
                "driver": "driver.example.com",
                "deletionPolicy": "Delete",
                "source": {"volumeHandle": "vol-1"},
                "volumeSnapshotRef": reference,
            },
        }
    )
    made.status.snapshot_handle = "snap-1"
    return world.api.replace_status(made)  # type: ignore[no-any-return]


def test_pvc_22_what_is_gone_for_certain_is_reclaimed(bound: Any, view: OldView) -> None:
    (volume,) = bound.volumes()
    bound.api.delete(PersistentVolumeClaim, "data", "default")
    VolumeReclaimer(context(bound, view)).reconcile(Key.of(volume))
    assert bound.driver.count("delete_volume") == 1
    assert bound.gone(volume)


def test_a_claim_that_was_bound_meanwhile_does_not_become_pending_again(bound: Any, make: Any) -> None:
    """Its capacity would go with it."""
    seen = make.claim()
    seen.metadata.uid, seen.status.phase = bound.claim().metadata.uid, ""
    with pytest.raises(ConflictError, match="was given a volume meanwhile"):
        set_claim_phase(bound.api, seen, "Pending")
    assert bound.claim().status.phase == "Bound"
    assert bound.claim().status.capacity
