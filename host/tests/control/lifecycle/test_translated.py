"""Volumes of a kind that a plugin has taken over: the controllers go by its driver, the objects stay (CSI-MIG-01)."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from volumehost import Spec
from volumehost.api.objects import CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeClaim
from volumehost.control.attaching.attach_controller import AttachController
from volumehost.control.attaching.attach_protection import AttachProtection
from volumehost.control.expanding.expand_controller import ExpandController
from volumehost.control.provisioning.storage_deletion import StorageDeletion
from volumehost.control.translation import translated
from volumehost.errors import DeletedVolumeInUseError, SpecError

DRIVER = "driver.example.com"
FINALIZER = "external-attacher/driver-example-com"
IN_TREE = {"spec": {"csi": None, "awsElasticBlockStore": {"volumeID": "vol-1"}}}


def to_csi(spec: Spec, namespace: str) -> Spec:
    volume = copy.deepcopy(spec.persistent_volume)
    handle = volume.spec.aws_elastic_block_store.volume_id
    volume.spec.aws_elastic_block_store = None
    volume.spec.csi = CSIPersistentVolumeSource(driver=DRIVER, volume_handle=handle)
    return Spec.from_persistent_volume(volume, spec.read_only)


@pytest.fixture(autouse=True)
def _translator(world: Any) -> None:
    world.plugins.translate = to_csi


def test_it_is_attached_and_detached_by_the_driver(world: Any, run: Any) -> None:
    world.csi_node()
    world.volume(**IN_TREE)
    va = world.attachment()
    attacher = AttachController(world.context)
    assert run(attacher, va) > 0
    assert world.va().status.attached
    assert world.driver.last("publish_volume")["handle"] == "vol-1"
    assert FINALIZER in world.pv().metadata.finalizers
    assert world.pv().spec.csi is None
    world.api.delete(type(va), "va")
    run(attacher, va)
    assert world.driver.last("unpublish_volume")["handle"] == "vol-1"
    world.api.delete(PersistentVolume, "pv")
    run(AttachProtection(world.context), "pv")
    assert FINALIZER not in world.pv().metadata.finalizers


def test_it_grows_by_the_driver(world: Any, run: Any) -> None:
    world.storage_class()
    world.bound_claim(**IN_TREE)
    expander = ExpandController(world.context)
    world.api.patch(PersistentVolumeClaim, "data", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}, "default")
    assert run(expander, "data", "default") is None
    assert world.driver.last("expand_volume")["handle"] == "vol-1"
    volume = world.pv()
    assert volume.spec.capacity == {"storage": "2Gi"}
    assert (volume.spec.csi, volume.spec.aws_elastic_block_store.volume_id) == (None, "vol-1")


def test_it_is_deleted_by_the_driver_once_no_node_uses_it(world: Any) -> None:
    marks = {"annotations": {"pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs"}}
    volume = world.create(
        "PersistentVolume",
        "pv",
        metadata=marks,
        spec={
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "awsElasticBlockStore": {"volumeID": "vol-1"},
        },
    )
    world.driver.add_volume("vol-1", 2**30)
    in_use = replace(world.context, volume_in_use=lambda node, name: "vol-1" in name)
    with pytest.raises(DeletedVolumeInUseError, match="staged"):
        StorageDeletion(in_use).delete_storage(volume)
    assert StorageDeletion(world.context).delete_storage(volume)
    assert world.driver.volumes == {}


def test_a_translator_without_a_persistent_volume_is_refused(world: Any) -> None:
    world.plugins.translate = lambda spec, namespace: Spec()
    with pytest.raises(SpecError, match="did not return a PersistentVolume"):
        translated(world.plugins, world.volume(**IN_TREE))


def test_nothing_is_made_of_other_volumes(world: Any) -> None:
    volume = world.volume()
    assert translated(world.plugins, volume) is volume
