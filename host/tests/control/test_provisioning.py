"""Volumes made through a storage driver."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.errors import ObjectNotFoundError
from volumehost.testing.storage_driver import EVERYTHING, without

GI = 2**30


def provisioned(world: Any, make: Any, claim: Any = None, **fields: Any) -> Any:
    world.api.create(make.storage_class(**fields))
    world.api.create(claim or make.claim())
    world.run_all()
    world.wait(world.bound, "the claim to be bound")
    return world.volume(world.claim().spec.volume_name)


def test_a_claim_gets_a_volume_of_its_class(world: Any, make: Any) -> None:
    """PVC-10, PVC-34, PVC-50, PVC-52."""
    volume = provisioned(world, make, mountOptions=["noatime"], parameters={"tier": "hot"})
    claim = world.claim()
    assert volume.metadata.name == f"pvc-{claim.metadata.uid}"
    assert volume.spec.csi.driver == "driver.example.com"
    assert volume.spec.csi.volume_handle in world.driver.volumes
    assert volume.spec.csi.volume_attributes == {"made-for": volume.metadata.name}
    assert volume.spec.capacity == {"storage": "1Gi"}
    assert volume.spec.mount_options == ["noatime"]
    assert volume.spec.persistent_volume_reclaim_policy == "Delete"
    assert volume.spec.claim_ref.uid == claim.metadata.uid
    assert volume.metadata.annotations["pv.kubernetes.io/provisioned-by"] == "driver.example.com"
    assert "external-provisioner.volume.kubernetes.io/finalizer" in volume.metadata.finalizers
    assert claim.status.capacity == {"storage": "1Gi"}
    assert claim.metadata.annotations["volume.kubernetes.io/storage-provisioner"] == "driver.example.com"
    assert "volumehost.io/provisioning" not in {*claim.metadata.annotations, *claim.metadata.finalizers}
    request = world.driver.last("create_volume")["request"]
    assert (request.name, request.required_bytes, request.parameters) == (volume.metadata.name, GI, {"tier": "hot"})
    assert [event.reason for event in world.recorder.events] == ["ProvisioningSucceeded"]
    world.settle()
    assert world.driver.count("create_volume") == 1
    assert world.planes[0].explain(claim) == []


def test_pvc_10_without_a_class_a_claim_waits_and_says_for_what(world: Any, make: Any) -> None:
    world.api.create(make.claim(storage_class=None))
    plane = world.run_all()
    world.wait(lambda: bool(world.events("FailedBinding")))
    assert world.events("FailedBinding")[0].event_type == "Normal"
    assert any("no storage class is set" in line for line in plane.explain(world.claim()))
    world.settle()
    assert world.claim().status.phase == "Pending"


def test_pvc_53_a_default_class_also_serves_claims_that_were_there_before(world: Any, make: Any) -> None:
    world.api.create(make.claim(storage_class=None))
    world.run_all()
    world.wait(lambda: bool(world.events("FailedBinding")))
    world.api.create(make.storage_class("older", default=True))
    world.wait(world.bound)
    assert world.claim().spec.storage_class_name == "older"


def test_an_empty_class_name_never_gets_the_default(world: Any, make: Any) -> None:
    world.api.create(make.storage_class("standard", default=True))
    world.api.create(make.claim(storage_class=""))
    world.run_all()
    world.wait(lambda: bool(world.events("FailedBinding")))
    assert world.claim().spec.storage_class_name == ""


def test_pvc_50_a_class_that_is_missing_is_told_and_waited_for(world: Any, make: Any) -> None:
    world.api.create(make.claim())
    plane = world.run_all()
    world.wait(lambda: bool(world.events("ProvisioningFailed")))
    assert any("there is no storageclass fast" in line for line in plane.explain(world.claim()))
    world.api.create(make.storage_class())
    world.wait(world.bound)


def test_pvc_50_an_unknown_driver_is_told_and_waited_for(world: Any, make: Any) -> None:
    world.api.create(make.storage_class(provisioner="late.example.com"))
    world.api.create(make.claim())
    plane = world.run_all()
    world.wait(lambda: bool(world.events("ProvisioningFailed")))
    assert any("this host has no driver late.example.com" in line for line in plane.explain(world.claim()))
    world.drivers["late.example.com"] = world.driver
    plane.driver_changed("late.example.com")
    world.wait(world.bound)


def test_pvc_50_in_a_cluster_an_unknown_driver_is_somebody_elses(world: Any, make: Any) -> None:
    world.external_drivers = True
    world.api.create(make.storage_class(provisioner="other.example.com"))
    world.api.create(make.claim())
    world.run_all()
    world.wait(lambda: bool(world.events("ExternalProvisioning")))
    world.settle()
    assert world.claim().metadata.annotations["volume.kubernetes.io/storage-provisioner"] == "other.example.com"
    assert world.driver.count("create_volume") == 0


def test_pvc_50_a_provisioner_of_kubernetes_itself_that_is_missing_fails(world: Any, make: Any) -> None:
    world.external_drivers = True
    world.api.create(make.storage_class(provisioner="kubernetes.io/never-there"))
    world.api.create(make.claim())
    world.run_all()
    world.wait(lambda: bool(world.events("ProvisioningFailed")))
    assert not world.events("ExternalProvisioning")


@pytest.mark.parametrize("code", ["INVALID_ARGUMENT", "INTERNAL", "OUT_OF_RANGE", "RESOURCE_EXHAUSTED", "UNKNOWN"])
def test_a_final_failure_leaves_no_note_and_waits_for_its_backoff(world: Any, make: Any, code: str) -> None:
    """CSI-ERR-04 for CreateVolume: RESOURCE_EXHAUSTED means that there is no room."""
    world.driver.fail("create_volume", code, times=1000, message="no such tier")
    world.api.create(make.storage_class())
    world.api.create(make.claim())
    plane = world.run_all(first_delay=1000.0)
    world.wait(lambda: any("failed once" in line for line in plane.explain(world.claim())))
    world.settle()
    lines = plane.explain(world.claim())
    assert any(code in line and "no such tier" in line and "next try in" in line for line in lines), lines
    assert "volumehost.io/provisioning" not in world.claim().metadata.finalizers
    assert world.driver.count("create_volume") == 1, "the writes of a failed attempt must not bring the next one"


def test_br_53_a_change_of_what_is_wanted_ends_the_backoff(world: Any, make: Any) -> None:
    world.driver.fail("create_volume", "INTERNAL")
    world.api.create(make.storage_class())
    world.api.create(make.claim())
    plane = world.run_all(first_delay=1000.0)
    world.wait(lambda: any("failed once" in line for line in plane.explain(world.claim())))
    from volumehost.api.objects import StorageClass

    world.api.patch(StorageClass, "fast", {"metadata": {"labels": {"changed": "yes"}}})
    world.wait(world.bound)


def test_a_node_that_reports_its_status_does_not_end_the_backoff(world: Any, make: Any) -> None:
    from volumehost.api.convert import to_object
    from volumehost.api.objects import Node

    world.driver.fail("create_volume", "INTERNAL", times=1000)
    node = world.api.create(to_object(Node, {"metadata": {"name": "node-1"}}))
    world.api.create(make.storage_class())
    world.api.create(make.claim())
    plane = world.run_all(first_delay=1000.0)
    world.wait(lambda: any("failed once" in line for line in plane.explain(world.claim())))
    world.settle()
    node.status.volumes_in_use = ["kubernetes.io/csi/d^v"]
    node = world.api.replace_status(node)
    world.settle()
    assert world.driver.count("create_volume") == 1
    world.api.patch(Node, "node-1", {"metadata": {"labels": {"zone": "a"}}})
    world.wait(lambda: world.driver.count("create_volume") == 2)


@pytest.mark.parametrize("code", ["DEADLINE_EXCEEDED", "UNAVAILABLE", "ABORTED", "CANCELLED", ""])
def test_an_uncertain_failure_asks_for_exactly_the_same_again(world: Any, make: Any, code: str) -> None:
    """CSI-WIRE-13: also when the class has changed meanwhile."""
    world.driver.fail("create_volume", code, after_effect=True)
    world.api.create(make.storage_class(parameters={"tier": "hot"}))
    world.api.create(make.claim())
    world.run_all()
    world.wait(lambda: bool(world.events("ProvisioningFailed")))
    assert "volumehost.io/provisioning" in world.claim().metadata.finalizers
    from volumehost.api.objects import StorageClass

    world.api.delete(StorageClass, "fast")
    world.wait(world.bound)
    first, second = (call.arguments["request"] for call in world.driver.calls if call.method == "create_volume")
    assert first == second
    assert len(world.driver.volumes) == 1
    assert "volumehost.io/provisioning" not in world.claim().metadata.finalizers


def test_a_claim_deleted_while_its_volume_is_uncertain_leaves_no_volume(world: Any, make: Any) -> None:
    world.driver.fail("create_volume", "DEADLINE_EXCEEDED", after_effect=True)
    world.api.create(make.storage_class())
    world.api.create(make.claim())
    world.run_all()
    world.wait(lambda: bool(world.events("ProvisioningFailed")))
    assert len(world.driver.volumes) == 1
    claim = world.claim()
    world.api.delete(type(claim), "data", "default")
    world.wait(lambda: world.gone(claim) and not world.driver.volumes and not world.volumes())


def test_a_claim_deleted_after_a_final_answer_goes_at_once(world: Any, make: Any) -> None:
    world.driver.fail("create_volume", "DEADLINE_EXCEEDED")
    world.driver.fail("create_volume", "INTERNAL")
    world.api.create(make.storage_class())
    world.api.create(make.claim())
    world.run_all()
    world.wait(lambda: bool(world.events("ProvisioningFailed")))
    claim = world.claim()
    world.api.delete(type(claim), "data", "default")
    world.wait(lambda: world.gone(claim))
    assert world.driver.count("delete_volume") == 0


def test_deleting_an_uncertain_volume_is_tried_until_it_works(world: Any, make: Any) -> None:
    world.driver.fail("create_volume", "DEADLINE_EXCEEDED", after_effect=True)
    world.driver.fail("delete_volume", "INTERNAL")
    world.api.create(make.storage_class())
    world.api.create(make.claim())
    world.run_all()
    world.wait(lambda: bool(world.events("ProvisioningFailed")))
    claim = world.claim()
    world.api.delete(type(claim), "data", "default")
    world.wait(lambda: world.gone(claim) and not world.driver.volumes)
    assert world.driver.count("create_volume") == 2, "once its handle is known only the deletion is repeated"


def test_a_spoilt_note_keeps_the_claim_and_says_what_to_do(world: Any, make: Any) -> None:
    claim = make.claim()
    claim.metadata.finalizers = ["volumehost.io/provisioning"]
    claim.metadata.annotations["volumehost.io/provisioning"] = '{"request": []'
    world.api.create(claim)
    world.api.delete(type(claim), "data", "default")
    plane = world.run_all()
    world.wait(lambda: any("spoilt" in line for line in plane.explain(claim)))
    world.settle()
    assert not world.gone(world.claim())


def test_a_spoilt_note_on_a_claim_that_is_wanted_is_written_anew(world: Any, make: Any) -> None:
    claim = make.claim()
    claim.metadata.finalizers = ["volumehost.io/provisioning"]
    claim.metadata.annotations["volumehost.io/provisioning"] = "{}"
    world.api.create(make.storage_class())
    world.api.create(claim)
    world.run_all()
    world.wait(world.bound)
    assert "volumehost.io/provisioning" not in world.claim().metadata.finalizers


@pytest.mark.parametrize(("answered", "limit"), [(GI - 1, ""), (3 * GI, "2Gi")])
def test_a_volume_of_the_wrong_size_is_deleted_again(world: Any, make: Any, answered: int, limit: str) -> None:
    world.driver.answer_bytes = answered
    world.api.create(make.storage_class())
    world.api.create(make.claim(limit=limit))
    world.run_all()
    world.wait(lambda: bool(world.events("ProvisioningFailed")))
    assert str(answered) in world.events("ProvisioningFailed")[0].message
    assert not world.driver.volumes
    assert not world.volumes()
    world.driver.answer_bytes = None
    world.wait(world.bound)


def test_a_wrong_volume_that_cannot_be_deleted_yet_is_not_forgotten(world: Any, make: Any) -> None:
    world.driver.answer_bytes = 1
    world.driver.fail("delete_volume", "UNAVAILABLE")
    world.api.create(make.storage_class())
    world.api.create(make.claim())
    world.run_all()
    world.wait(lambda: world.driver.count("delete_volume") == 1)
    world.driver.answer_bytes = None
    world.wait(world.bound)
    assert len(world.driver.volumes) == 1


def test_an_unknown_capacity_counts_as_what_was_asked_for(world: Any, make: Any) -> None:
    world.driver.answer_bytes = 0
    assert provisioned(world, make).spec.capacity == {"storage": "1Gi"}


def test_more_than_asked_for_is_taken_without_a_limit(world: Any, make: Any) -> None:
    world.driver.size_unit = 4 * GI
    assert provisioned(world, make).spec.capacity == {"storage": "4Gi"}
    assert world.claim().status.capacity == {"storage": "4Gi"}


@pytest.mark.parametrize(
    ("modes", "multi_writer", "expected"),
    [
        (["ReadWriteOnce"], True, ["SINGLE_NODE_MULTI_WRITER"]),
        (["ReadWriteOnce"], False, ["SINGLE_NODE_WRITER"]),
        (["ReadWriteOncePod"], True, ["SINGLE_NODE_SINGLE_WRITER"]),
        (["ReadWriteOncePod"], False, ["SINGLE_NODE_WRITER"]),
        (["ReadWriteMany", "ReadOnlyMany"], False, ["MULTI_NODE_MULTI_WRITER", "MULTI_NODE_READER_ONLY"]),
    ],
)
def test_br_42_access_modes(world: Any, make: Any, modes: list[str], multi_writer: bool, expected: list[str]) -> None:
    if not multi_writer:
        world.driver.declared = without(EVERYTHING, "SINGLE_NODE_MULTI_WRITER")
    provisioned(world, make, make.claim(modes=modes))
    request = world.driver.last("create_volume")["request"]
    assert [capability.access_mode for capability in request.capabilities] == expected


def test_a_block_volume_has_neither_filesystem_nor_mount_flags(world: Any, make: Any) -> None:
    parameters = {"csi.storage.k8s.io/fstype": "xfs"}
    volume = provisioned(world, make, make.claim(volumeMode="Block"), parameters=parameters, mountOptions=["noatime"])
    (capability,) = world.driver.last("create_volume")["request"].capabilities
    assert (capability.block, capability.fs_type, list(capability.mount_flags)) == (True, "", [])
    assert (volume.spec.volume_mode, volume.spec.csi.fs_type) == ("Block", "")


def test_a_driver_that_cannot_create_is_told_so(world: Any, make: Any) -> None:
    world.driver.declared = without(EVERYTHING, "CREATE_DELETE_VOLUME")
    world.api.create(make.storage_class())
    world.api.create(make.claim())
    world.run_all()
    world.wait(lambda: bool(world.events("ProvisioningFailed")))
    assert "cannot create volumes" in world.events("ProvisioningFailed")[0].message


def test_a_claim_with_a_selector_is_not_provisioned(world: Any, make: Any) -> None:
    world.api.create(make.storage_class())
    world.api.create(make.claim(selector={"matchLabels": {"a": "b"}}))
    world.run_all()
    world.wait(lambda: bool(world.events("ProvisioningFailed")))
    assert "selector" in world.events("ProvisioningFailed")[0].message
    assert world.driver.count("create_volume") == 0


def test_attributes_of_a_class_go_to_the_driver_and_to_the_claim(world: Any, make: Any) -> None:
    from volumehost.api.convert import to_object
    from volumehost.api.objects import VolumeAttributesClass

    attributes = {"metadata": {"name": "gold"}, "driverName": "driver.example.com", "parameters": {"iops": "9"}}
    world.api.create(to_object(VolumeAttributesClass, attributes))
    volume = provisioned(world, make, make.claim(volumeAttributesClassName="gold"))
    assert world.driver.last("create_volume")["request"].mutable_parameters == {"iops": "9"}
    assert volume.spec.volume_attributes_class_name == "gold"
    assert world.claim().status.current_volume_attributes_class_name == "gold"


@pytest.mark.parametrize("driver_name", ["other.example.com", ""])
def test_an_attributes_class_of_another_driver_or_none_is_refused(world: Any, make: Any, driver_name: str) -> None:
    from volumehost.api.convert import to_object
    from volumehost.api.objects import VolumeAttributesClass

    if driver_name:
        found = {"metadata": {"name": "gold"}, "driverName": driver_name, "parameters": {"iops": "9"}}
        world.api.create(to_object(VolumeAttributesClass, found))
    world.api.create(make.storage_class())
    world.api.create(make.claim(volumeAttributesClassName="gold"))
    world.run_all()
    world.wait(lambda: bool(world.events("ProvisioningFailed")))
    assert "volumeattributesclass gold" in world.events("ProvisioningFailed")[0].message


def test_a_class_may_have_the_driver_told_the_names(world: Any, make: Any) -> None:
    volume = provisioned(world, make, annotations={"volumehost.io/extra-create-metadata": "true"})
    assert world.driver.last("create_volume")["request"].parameters == {
        "csi.storage.k8s.io/pvc/name": "data",
        "csi.storage.k8s.io/pvc/namespace": "default",
        "csi.storage.k8s.io/pv/name": volume.metadata.name,
    }


def test_a_volume_that_the_api_refuses_is_deleted_again(world: Any, make: Any) -> None:
    """PVC-52: what the driver answered can never be stored."""
    world.driver.answer_handle = "x" * (4 * 2**20)
    world.api.create(make.storage_class())
    world.api.create(make.claim())
    world.run_all()
    world.wait(lambda: bool(world.events("ProvisioningFailed")))
    world.wait(lambda: world.driver.count("delete_volume") >= 1)
    with pytest.raises(ObjectNotFoundError):
        world.volume(f"pvc-{world.claim().metadata.uid}")


@pytest.mark.parametrize("handle", ["a/b/../c", "..", "^", "x" * 4096])
def test_any_handle_is_kept_as_it_is(world: Any, make: Any, handle: str) -> None:
    world.driver.answer_handle = handle
    assert provisioned(world, make).spec.csi.volume_handle == handle


def test_a_volume_without_an_id_is_an_error(world: Any, make: Any) -> None:
    world.driver.answer_handle = ""
    world.api.create(make.storage_class())
    world.api.create(make.claim())
    world.run_all()
    world.wait(lambda: bool(world.events("ProvisioningFailed")))
    assert "without a volume id" in world.events("ProvisioningFailed")[0].message
    assert world.driver.count("delete_volume") == 0
