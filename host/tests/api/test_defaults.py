"""What is filled in, on create and on update."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.api.convert import to_object, to_wire
from volumehost.api.defaults import set_create_defaults, set_defaults
from volumehost.api.objects import (
    CSIDriver,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Secret,
    StorageClass,
)


def pod_with(source: Any) -> Any:
    pod = to_object(Pod, {"spec": {"volumes": [{"name": "x"} | source]}})
    return set_defaults(pod).spec.volumes[0]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("secret", {"secret": {"secretName": "s"}}),
        ("config_map", {"configMap": {"name": "c"}}),
        ("downward_api", {"downwardAPI": {}}),
        ("projected", {"projected": {}}),
    ],
)
def test_file_modes(name: str, source: Any) -> None:
    assert getattr(pod_with(source), name).default_mode == 0o644


def test_a_given_mode_stays_even_zero() -> None:
    assert pod_with({"secret": {"secretName": "s", "defaultMode": 0}}).secret.default_mode == 0


def test_hostpath_type_stays_unset() -> None:
    assert pod_with({"hostPath": {"path": "/x"}}).host_path.type == ""


def test_projected_tokens_live_an_hour_and_fields_have_a_version() -> None:
    volume = pod_with(
        {
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "t"}},
                    {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                ]
            }
        }
    )
    assert volume.projected.sources[0].service_account_token.expiration_seconds == 3600
    assert volume.projected.sources[1].downward_api.items[0].field_ref.api_version == "v1"


def test_sources_of_network_storage() -> None:
    assert pod_with({"iscsi": {}}).iscsi.iscsi_interface == "default"
    rbd = pod_with({"rbd": {}}).rbd
    assert (rbd.pool, rbd.user, rbd.keyring) == ("rbd", "admin", "/etc/ceph/keyring")
    disk = pod_with({"azureDisk": {}}).azure_disk
    assert (disk.caching_mode, disk.kind, disk.fs_type, disk.read_only) == ("ReadWrite", "Shared", "ext4", False)
    scale_io = pod_with({"scaleIO": {}}).scale_io
    assert (scale_io.storage_mode, scale_io.fs_type) == ("ThinProvisioned", "xfs")
    volume = set_defaults(to_object(PersistentVolume, {"spec": {"iscsi": {}}}))
    assert volume.spec.iscsi is not None
    assert volume.spec.iscsi.iscsi_interface == "default"


def test_service_account_names_agree() -> None:
    assert set_defaults(to_object(Pod, {"spec": {"serviceAccount": "a"}})).spec.service_account_name == "a"
    assert set_defaults(to_object(Pod, {"spec": {"serviceAccountName": "b"}})).spec.service_account == "b"


def test_persistent_volumes() -> None:
    volume = set_create_defaults(set_defaults(PersistentVolume()))
    assert volume.spec.persistent_volume_reclaim_policy == "Retain"
    assert volume.spec.volume_mode == "Filesystem"
    assert volume.metadata.finalizers == ["kubernetes.io/pv-protection"]
    assert volume.status.phase == "Pending"


def test_claims() -> None:
    claim = set_create_defaults(set_defaults(PersistentVolumeClaim()))
    assert claim.spec.volume_mode == "Filesystem"
    assert claim.spec.storage_class_name is None
    assert claim.metadata.finalizers == ["kubernetes.io/pvc-protection"]


def test_finalizers_are_added_once() -> None:
    claim = to_object(PersistentVolumeClaim, {"metadata": {"finalizers": ["a/b", "kubernetes.io/pvc-protection"]}})
    assert set_create_defaults(claim).metadata.finalizers == ["a/b", "kubernetes.io/pvc-protection"]


def test_data_sources_say_the_same() -> None:
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
    by_source = set_defaults(to_object(PersistentVolumeClaim, {"spec": {"dataSource": source}}))
    assert by_source.spec.data_source_ref is not None
    assert by_source.spec.data_source_ref.name == "s"
    by_reference = set_defaults(to_object(PersistentVolumeClaim, {"spec": {"dataSourceRef": source}}))
    assert by_reference.spec.data_source is not None
    elsewhere = set_defaults(to_object(PersistentVolumeClaim, {"spec": {"dataSourceRef": source | {"namespace": "n"}}}))
    assert elsewhere.spec.data_source is None


def test_the_claim_of_an_ephemeral_volume() -> None:
    volume = pod_with({"ephemeral": {"volumeClaimTemplate": {}}})
    assert volume.ephemeral.volume_claim_template.spec.volume_mode == "Filesystem"


def test_storage_classes_and_drivers() -> None:
    storage_class = set_defaults(StorageClass())
    assert (storage_class.reclaim_policy, storage_class.volume_binding_mode) == ("Delete", "Immediate")
    spec = set_defaults(CSIDriver()).spec
    assert (spec.attach_required, spec.pod_info_on_mount, spec.requires_republish) == (True, False, False)
    assert (spec.fs_group_policy, spec.volume_lifecycle_modes) == ("ReadWriteOnceWithFSType", ["Persistent"])


def test_secrets() -> None:
    secret = set_defaults(Secret(data={"a": b"old", "b": b"kept"}, string_data={"a": "new"}))
    assert secret.data == {"a": b"new", "b": b"kept"}
    assert secret.string_data == {}
    assert secret.type == "Opaque"


@pytest.mark.parametrize("struct", [Pod, PersistentVolume, PersistentVolumeClaim, StorageClass, CSIDriver, Secret])
def test_a_second_time_changes_nothing(struct: Any) -> None:
    once = set_defaults(struct())
    assert set_defaults(to_object(struct, to_wire(once))) == once
