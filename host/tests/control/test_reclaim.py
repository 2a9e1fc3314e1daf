"""PVC-22, PVC-40 to -44: what becomes of a volume whose claim is gone."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.api.convert import to_object
from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, Secret, VolumeAttachment
from volumehost.control.binding.volume_reclaimer import VolumeReclaimer
from volumehost.testing.storage_driver import EVERYTHING, without

FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
PROVISIONED = {"annotations": {"pv.kubernetes.io/provisioned-by": "driver.example.com"}}
CSI = {"driver": "driver.example.com", "volumeHandle": "vol-1"}


def delete_claim(world: Any, name: str = "data") -> None:
    world.api.delete(PersistentVolumeClaim, name, "default")


@pytest.fixture
def bound(world: Any, make: Any) -> Any:
    """A world with a provisioned claim whose class says Delete."""
    world.api.create(make.storage_class())
    world.api.create(make.claim())
    world.run_all()
    world.wait(world.bound)
    world.settle()
    return world


def test_delete_takes_the_storage_and_then_the_object(bound: Any) -> None:
    (volume,) = bound.volumes()
    delete_claim(bound)
    bound.wait(lambda: bound.gone(volume))
    assert not bound.driver.volumes
    assert bound.driver.count("delete_volume") == 1
    bound.settle()
    assert bound.planes[-1].explain(volume) == []


def test_retain_keeps_both(world: Any, make: Any) -> None:
    world.api.create(make.storage_class(reclaimPolicy="Retain"))
    world.api.create(make.claim())
    world.run_all()
    world.wait(world.bound)
    (volume,) = world.volumes()
    assert FINALIZER not in volume.metadata.finalizers
    delete_claim(world)
    world.wait(lambda: world.volume(volume.metadata.name).status.phase == "Released")
    world.settle()
    assert len(world.driver.volumes) == 1
    world.api.delete(PersistentVolume, volume.metadata.name)
    assert world.gone(volume)
    world.settle()
    assert len(world.driver.volumes) == 1


def test_br_46_48_nothing_is_deleted_while_it_is_attached(bound: Any) -> None:
    (volume,) = bound.volumes()
    attachment = {
        "metadata": {"name": "csi-1", "finalizers": ["example.com/attacher"]},
        "spec": {
            "attacher": "other.example.com",
            "nodeName": "node-1",
            "source": {"persistentVolumeName": volume.metadata.name},
        },
    }
    bound.api.create(to_object(VolumeAttachment, attachment))
    delete_claim(bound)
    bound.wait(lambda: bool(bound.events("VolumeDelete")))
    assert bound.events("VolumeDelete")[0].event_type == "Normal"
    assert "still attached to node node-1" in bound.events("VolumeDelete")[0].message
    bound.api.delete(VolumeAttachment, "csi-1")
    bound.settle()
    assert bound.driver.count("delete_volume") == 0, "an attachment that is being deleted is an attachment"
    assert bound.volume(volume.metadata.name).status.phase == "Released"
    bound.api.patch(VolumeAttachment, "csi-1", {"metadata": {"finalizers": None}})
    bound.wait(lambda: bound.gone(volume))


def test_pvc_42_in_use_is_no_failure(bound: Any) -> None:
    (volume,) = bound.volumes()
    bound.driver.fail("delete_volume", "FAILED_PRECONDITION")
    delete_claim(bound)
    bound.wait(lambda: bound.gone(volume))
    assert bound.events("VolumeDelete")[0].event_type == "Normal"
    assert not bound.events("VolumeFailedDelete")


def test_pvc_42_43_a_failure_is_told_and_tried_again(bound: Any) -> None:
    (volume,) = bound.volumes()
    bound.driver.fail("delete_volume", "INTERNAL", message="disk on fire")
    bound.driver.fail("delete_volume", "DEADLINE_EXCEEDED", after_effect=True)
    delete_claim(bound)
    bound.wait(lambda: bound.gone(volume))
    first, second = bound.events("VolumeFailedDelete")
    assert "disk on fire" in first.message
    assert "DEADLINE_EXCEEDED" in second.message
    assert bound.driver.count("delete_volume") == 3


def test_pvc_42_a_final_failure_makes_the_volume_failed(bound: Any, make: Any) -> None:
    (volume,) = bound.volumes()
    bound.driver.fail("delete_volume", "INTERNAL", times=10_000, message="disk on fire")
    delete_claim(bound)
    bound.wait(lambda: bound.volume(volume.metadata.name).status.phase == "Failed")
    now = bound.volume(volume.metadata.name)
    assert "disk on fire" in now.status.message
    assert bound.events("VolumeFailedDelete")[0].event_type == "Warning"
    bound.wait(lambda: any("reclaimer" in line for line in bound.planes[-1].explain(now)))


def test_a_volume_that_nobody_provisioned_keeps_its_storage(world: Any, make: Any) -> None:
    world.driver.add_volume("vol-1", 2**30)
    world.api.create(make.volume(policy="Delete", csi=CSI))
    world.api.create(make.claim())
    world.run_all()
    world.wait(world.bound)
    delete_claim(world)
    world.wait(lambda: world.volume("pv").status.phase == "Released")
    world.settle()
    assert world.driver.count("delete_volume") == 0


def test_the_secret_for_the_deletion_is_remembered_on_the_volume(world: Any, make: Any) -> None:
    """BR-74: and shown nowhere."""
    parameters = {
        "csi.storage.k8s.io/provisioner-secret-name": "admin",
        "csi.storage.k8s.io/provisioner-secret-namespace": "vault",
    }
    world.api.create(
        to_object(Secret, {"metadata": {"name": "admin", "namespace": "vault"}, "stringData": {"k": "hush"}})
    )
    world.api.create(make.storage_class(parameters=parameters))
    world.api.create(make.claim())
    world.driver.fail("create_volume", "DEADLINE_EXCEEDED", message="no answer to hush")
    world.run_all()
    world.wait(world.bound)
    assert world.driver.last("create_volume")["request"].secrets == {"k": "hush"}
    (volume,) = world.volumes()
    world.driver.fail("delete_volume", "INTERNAL", message="hush is wrong")
    delete_claim(world)
    world.wait(lambda: world.gone(volume))
    assert world.driver.last("delete_volume")["secrets"] == {"k": "hush"}
    with world.api._database.read() as connection:
        bodies = [row[0] for row in connection.execute("SELECT body FROM changes WHERE kind != 'Secret'")]
    assert bodies
    assert not [body for body in bodies if b"hush" in body]
    failures = [event for event in world.recorder.events if event.event_type == "Warning"]
    assert {event.reason for event in failures} == {"ProvisioningFailed", "VolumeFailedDelete"}
    assert all("***stripped***" in event.message for event in failures)
    assert not [event for event in world.recorder.events if "hush" in event.message]


def test_a_secret_that_is_missing_is_told_and_waited_for(world: Any, make: Any) -> None:
    parameters = {"csi.storage.k8s.io/secret-name": "s", "csi.storage.k8s.io/secret-namespace": "vault"}
    world.api.create(make.storage_class(parameters=parameters))
    world.api.create(make.claim())
    plane = world.run_all(first_delay=1000.0)
    world.wait(lambda: any("reading secret vault/s" in line for line in plane.explain(world.claim())))
    assert world.driver.count("create_volume") == 0
    world.api.create(to_object(Secret, {"metadata": {"name": "s", "namespace": "vault"}, "stringData": {"k": "v"}}))
    world.wait(world.bound)


def test_the_user_deletes_the_volume_of_a_bound_claim(bound: Any) -> None:
    """Protected while it is bound; then its policy decides about the storage all the same."""
    (volume,) = bound.volumes()
    bound.api.delete(PersistentVolume, volume.metadata.name)
    bound.settle()
    assert len(bound.driver.volumes) == 1
    assert not bound.gone(volume)
    delete_claim(bound)
    bound.wait(lambda: bound.gone(volume))
    assert not bound.driver.volumes


def test_the_policy_is_read_when_it_counts(bound: Any) -> None:
    (volume,) = bound.volumes()
    bound.api.patch(PersistentVolume, volume.metadata.name, {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})
    bound.api.delete(PersistentVolume, volume.metadata.name)
    delete_claim(bound)
    bound.wait(lambda: bound.gone(volume))
    assert len(bound.driver.volumes) == 1


def test_a_driver_that_is_gone_is_waited_for(bound: Any) -> None:
    (volume,) = bound.volumes()
    del bound.drivers["driver.example.com"]
    delete_claim(bound)
    plane = bound.planes[-1]
    bound.wait(lambda: any("no driver driver.example.com" in line for line in plane.explain(volume)))
    bound.settle()
    assert bound.volume(volume.metadata.name).status.phase == "Released"
    bound.drivers["driver.example.com"] = bound.driver
    plane.driver_changed("driver.example.com")
    bound.wait(lambda: bound.gone(volume))


def test_a_driver_that_cannot_delete_keeps_the_volume(bound: Any) -> None:
    (volume,) = bound.volumes()
    bound.driver.declared = without(EVERYTHING, "CREATE_DELETE_VOLUME")
    delete_claim(bound)
    bound.wait(lambda: bound.volume(volume.metadata.name).status.phase == "Released")
    bound.settle()
    assert bound.driver.count("delete_volume") == 0
    assert bound.planes[-1].explain(volume) == ["kept: driver driver.example.com cannot delete volumes"]


def test_a_claim_in_use_keeps_its_volume(bound: Any, make: Any) -> None:
    """pvc-protection and pv-protection, in the store itself."""
    from volumehost.api.objects import Pod

    bound.api.create(make.pod(claims=["data"]))
    (volume,) = bound.volumes()
    delete_claim(bound)
    bound.api.delete(PersistentVolume, volume.metadata.name)
    bound.settle()
    assert bound.claim().metadata.deletion_timestamp is not None
    assert bound.claim().status.phase == "Bound"
    assert len(bound.driver.volumes) == 1
    bound.api.delete(Pod, "web", "default")
    bound.wait(lambda: bound.gone(volume))
    assert not bound.driver.volumes


def test_a_pod_that_has_ended_keeps_the_storage_until_it_is_unmounted(bound: Any, make: Any) -> None:
    """The claim is free then, and the node may still have the volume mounted."""
    from volumehost.api.objects import Pod

    pod = make.pod(claims=["data"])
    pod.metadata.finalizers = ["volumehost.io/volumes"]
    pod = bound.api.create(pod)
    (volume,) = bound.volumes()
    pod.status.phase = "Succeeded"
    bound.api.replace_status(pod)
    delete_claim(bound)
    bound.wait(lambda: bool(bound.events("VolumeDelete")))
    assert "pod default/web has ended and is not unmounted yet" in bound.events("VolumeDelete")[0].message
    assert bound.driver.count("delete_volume") == 0
    bound.api.patch(Pod, "web", {"metadata": {"finalizers": None}})
    bound.wait(lambda: bound.gone(volume))


def test_br_46_a_volume_that_the_node_still_has_staged_is_not_deleted(world: Any, make: Any) -> None:
    in_use: list[str] = []
    world.volume_in_use = lambda node, name: node == "node-1" and name in in_use
    world.api.create(make.storage_class())
    world.api.create(make.claim())
    world.run_all()
    world.wait(world.bound)
    (volume,) = world.volumes()
    in_use.append(f"kubernetes.io/csi/driver.example.com^{volume.spec.csi.volume_handle}")
    delete_claim(world)
    world.wait(lambda: bool(world.events("VolumeDelete")))
    assert "still has it staged or mounted" in world.events("VolumeDelete")[0].message
    assert world.driver.count("delete_volume") == 0
    in_use.clear()
    world.wait(lambda: world.gone(volume))


def test_pvc_40_an_unknown_policy_is_told_and_deletes_nothing(bound: Any) -> None:
    """Of an API that knows more policies than this program."""
    bound.planes[-1].stop(10)
    (volume,) = bound.volumes()
    delete_claim(bound)
    volume.spec.persistent_volume_reclaim_policy, volume.status.phase = "Burn", "Failed"
    reclaimer = VolumeReclaimer(bound.context())
    for _ in range(2):
        reclaimer._reconcile(volume)
        volume.status = bound.volume(volume.metadata.name).status
    assert "unrecognized" in volume.status.message
    (event,) = bound.events("VolumeUnknownReclaimPolicy")  # told once
    assert event.event_type == "Warning"
    assert bound.driver.volumes


@pytest.mark.parametrize("capabilities", [EVERYTHING, without(EVERYTHING, "LIST_VOLUMES_PUBLISHED_NODES")])
def test_br_47_a_volume_that_is_published_though_nothing_asks_for_it_is_taken_back_and_deleted(
    bound: Any, capabilities: Any
) -> None:
    """A ControllerPublishVolume took effect after it had been undone: otherwise the volume would stay for ever."""
    bound.driver.declared = capabilities
    bound.api.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": "node-1"},
            "spec": {"drivers": [{"name": "driver.example.com", "nodeID": "node-id"}]},
        }
    )
    (volume,) = bound.volumes()
    bound.driver.add_publication(volume.spec.csi.volume_handle, "node-id")
    delete_claim(bound)
    bound.wait(lambda: bound.gone(volume))
    assert not bound.driver.volumes


def test_br_46_it_stays_where_somebody_else_has_it_published(bound: Any) -> None:
    (volume,) = bound.volumes()
    bound.driver.add_publication(volume.spec.csi.volume_handle, "of-another-cluster")
    delete_claim(bound)
    bound.wait(lambda: any("published to of-another-cluster" in line for line in bound.planes[-1].explain(volume)))
    assert bound.driver.count("unpublish_volume") == 0
    assert len(bound.driver.volumes) == 1
