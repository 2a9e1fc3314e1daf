"""Volumes of drivers with sidecars of their own: what those write of a volume is left to them, and told by them."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim
from volumehost.control.binding.volume_reclaimer import VolumeReclaimer
from volumehost.control.expanding.expand_controller import ExpandController
from volumehost.control.expanding.expand_decision import PRE_RESIZE
from volumehost.control.machinery.controller import Key
from volumehost.control.well_known import PROVISIONED_BY, PROVISIONER_FINALIZER

CSI = {"driver": "other.example.com", "volumeHandle": "vol-1"}


@pytest.fixture
def theirs(world: Any, make: Any) -> Any:
    """A volume that the external-provisioner made, and its claim, bound."""
    world.external_drivers = True
    claim = world.api.create(make.claim(volumeName="pv"))
    marks = {"annotations": {PROVISIONED_BY: CSI["driver"]}, "finalizers": [PROVISIONER_FINALIZER]}
    reference = {"name": "data", "namespace": "default", "uid": claim.metadata.uid}
    world.api.create(make.volume(policy="Delete", csi=CSI, metadata=marks, claim_ref=reference))
    claim.status.phase, claim.status.capacity = "Bound", {"storage": "1Gi"}
    world.api.replace_status(claim)
    return world


def test_pvc_42_what_keeps_it_from_being_deleted_is_its_provisioners_to_tell(theirs: Any) -> None:
    theirs.api.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": "csi-1"},
            "spec": {"attacher": CSI["driver"], "nodeName": "n", "source": {"persistentVolumeName": "pv"}},
        }
    )
    theirs.api.delete(PersistentVolumeClaim, "data", "default")
    VolumeReclaimer(theirs.context()).reconcile(Key("pv"))
    assert theirs.volume("pv").status.phase == "Released"
    assert not theirs.events("VolumeDelete")


def test_pvc_02_its_provisioner_takes_its_own_finalizer_away(theirs: Any) -> None:
    theirs.api.patch(PersistentVolume, "pv", {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})
    theirs.api.delete(PersistentVolumeClaim, "data", "default")
    theirs.api.delete(PersistentVolume, "pv")
    VolumeReclaimer(theirs.context()).reconcile(Key("pv"))
    assert PROVISIONER_FINALIZER in theirs.volume("pv").metadata.finalizers


def test_expctl_05_the_size_from_before_is_its_resizers_to_forget(theirs: Any) -> None:
    theirs.api.patch(PersistentVolume, "pv", {"metadata": {"annotations": {PRE_RESIZE: "1Gi"}}})
    before = theirs.volume("pv").metadata.resource_version
    ExpandController(theirs.context()).reconcile(Key("data", "default"))
    assert theirs.volume("pv").metadata.resource_version == before
