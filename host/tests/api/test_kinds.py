"""Kinds are found by any spelling; what is not found is explained."""

from __future__ import annotations

import pytest

from volumehost.api.kinds import KINDS, find_kind, kind_for, kind_of
from volumehost.api.objects import KubeObject, PersistentVolumeClaim, Pod, StorageClass
from volumehost.errors import UnknownKindError


@pytest.mark.parametrize(
    ("spelling", "kind"),
    [
        ("po", "Pod"),
        ("pod", "Pod"),
        ("Pods", "Pod"),
        ("PV", "PersistentVolume"),
        ("pvc", "PersistentVolumeClaim"),
        ("persistentvolumeclaims", "PersistentVolumeClaim"),
        ("PersistentVolumeClaim", "PersistentVolumeClaim"),
        ("sc", "StorageClass"),
        ("storageclasses", "StorageClass"),
        ("storageclasses.storage.k8s.io", "StorageClass"),
        ("cm", "ConfigMap"),
        ("sa", "ServiceAccount"),
        ("no", "Node"),
        ("ev", "Event"),
        ("va", "VolumeAttachment"),
        ("vac", "VolumeAttributesClass"),
        ("vs", "VolumeSnapshot"),
        ("vsclass", "VolumeSnapshotClass"),
        ("vsc", "VolumeSnapshotContent"),
        ("volumesnapshots.snapshot.storage.k8s.io", "VolumeSnapshot"),
        ("csinode", "CSINode"),
        ("csidrivers", "CSIDriver"),
        (" secret ", "Secret"),
    ],
)
def test_any_spelling(spelling: str, kind: str) -> None:
    assert find_kind(spelling).kind == kind


def test_no_two_kinds_share_a_spelling() -> None:
    spellings = [spelling for kind in KINDS for spelling in kind.spellings]
    assert len(spellings) == len(set(spellings))


@pytest.mark.parametrize(
    ("wrong", "right"), [("stoargeclass", "StorageClass"), ("pvs", "PersistentVolume"), ("podd", "Pod")]
)
def test_the_nearest_is_suggested(wrong: str, right: str) -> None:
    with pytest.raises(UnknownKindError) as caught:
        find_kind(wrong)
    assert f"did you mean {right}?" in caught.value.hint
    assert "PersistentVolumeClaim (pvc)" in caught.value.hint


def test_an_ordinary_deployment_is_explained() -> None:
    with pytest.raises(UnknownKindError, match=r"unknown kind Deployment \(apps/v1\)") as caught:
        kind_for("apps/v1", "Deployment")
    assert all(kind.kind in caught.value.hint for kind in KINDS)


def test_another_version_names_the_right_one() -> None:
    with pytest.raises(UnknownKindError, match=r"write apiVersion: storage\.k8s\.io/v1"):
        kind_for("storage.k8s.io/v1beta1", "StorageClass")


def test_kind_of_a_class() -> None:
    assert kind_of(Pod).namespaced
    assert not kind_of(StorageClass).namespaced
    assert kind_of(PersistentVolumeClaim).has_status
    assert kind_of(StorageClass).group == "storage.k8s.io"
    assert kind_of(Pod).group == ""
    with pytest.raises(UnknownKindError):
        kind_of(KubeObject)


def test_description_in_messages() -> None:
    assert kind_of(Pod).describe("web", "default") == "pod default/web"
    assert kind_of(StorageClass).describe("fast") == "storageclass fast"
