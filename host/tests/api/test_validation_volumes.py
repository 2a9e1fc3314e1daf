"""PersistentVolumes and claims: what they need, what of them can change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Check = Callable[[Any], dict[str, str]]
CheckChange = Callable[[Any, Any], dict[str, str]]
Change = Callable[..., Any]

VOLUME: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "disk"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/srv/disk"},
    },
}
CSI = {"driver": "d.example.com", "volumeHandle": "h"}
AFFINITY = {
    "required": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}]}
        ]
    }
}
CLAIM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "claim"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"spec/accessModes": ["ReadWriteOncePod"]},
        {"spec/accessModes": ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"]},
        {"spec/persistentVolumeReclaimPolicy": "Recycle"},
        {"spec/volumeMode": "Block"},
        {"spec/mountOptions": ["ro", "noatime"]},
        {"spec/claimRef": {"name": "claim", "namespace": "default"}},
        {"spec/nodeAffinity": AFFINITY},
        {"spec/hostPath": None, "spec/local": {"path": "/mnt/disk"}, "spec/nodeAffinity": AFFINITY},
        {"spec/hostPath": None, "spec/csi": CSI, "spec/volumeAttributesClassName": "gold"},
        {"spec/hostPath": None, "spec/csi": CSI | {"nodeStageSecretRef": {"name": "s", "namespace": "n"}}},
        {
            "spec/hostPath": None,
            "spec/nfs": {"server": "s", "path": "/e"},
            "spec/persistentVolumeReclaimPolicy": "Recycle",
        },
    ],
)
def test_good_volumes(problems_of: Check, changed: Change, changes: Any) -> None:
    assert problems_of(changed(VOLUME, changes)) == {}


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"spec/capacity": None}, "spec.capacity.storage", "Required value"),
        ({"spec/capacity/storage": "0"}, "spec.capacity.storage", "greater than zero"),
        ({"spec/capacity/storage": "-1Gi"}, "spec.capacity.storage", "greater than zero"),
        ({"spec/capacity/storage": "100m"}, "spec.capacity.storage", "must be an integer"),
        ({"spec/capacity/storage": "1 Gi"}, "spec.capacity.storage", "white space"),
        ({"spec/capacity/cpu": "1"}, "spec.capacity", "Unsupported value: 'cpu'"),
        ({"spec/accessModes": None}, "spec.accessModes", "Required value"),
        ({"spec/accessModes": ["ReadWrite"]}, "spec.accessModes", "Unsupported value: 'ReadWrite'"),
        (
            {"spec/accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]},
            "spec.accessModes",
            "may not use ReadWriteOncePod",
        ),
        ({"spec/hostPath": None}, "spec", "must specify a volume type"),
        ({"spec/csi": CSI}, "spec.csi", "more than 1 volume type"),
        ({"spec/hostPath/path": "/a/../b"}, "spec.hostPath.path", "'..'"),
        ({"spec/hostPath/type": "Dir"}, "spec.hostPath.type", "Unsupported"),
        (
            {"spec/persistentVolumeReclaimPolicy": "Keep"},
            "spec.persistentVolumeReclaimPolicy",
            "Unsupported value: 'Keep'",
        ),
        (
            {"spec/persistentVolumeReclaimPolicy": "Recycle", "spec/hostPath/path": "/"},
            "spec.persistentVolumeReclaimPolicy",
            "hostPath mount of '/'",
        ),
        (
            {"spec/persistentVolumeReclaimPolicy": "Recycle", "spec/hostPath/path": "//./"},
            "spec.persistentVolumeReclaimPolicy",
            "hostPath mount of '/'",
        ),
        (
            {"spec/persistentVolumeReclaimPolicy": "Recycle", "spec/hostPath": None, "spec/csi": CSI},
            "spec.persistentVolumeReclaimPolicy",
            "hostPath and nfs volumes only",
        ),
        ({"spec/volumeMode": "File"}, "spec.volumeMode", "Unsupported value: 'File'"),
        ({"spec/storageClassName": "Not Valid"}, "spec.storageClassName", "Invalid value"),
        ({"spec/claimRef": {"namespace": "n"}}, "spec.claimRef.name", "Required value"),
        ({"spec/claimRef": {"name": "c"}}, "spec.claimRef.namespace", "Required value"),
        ({"spec/nodeAffinity": {}}, "spec.nodeAffinity.required", "Required value"),
        ({"spec/nodeAffinity": {"required": {}}}, "spec.nodeAffinity.required.nodeSelectorTerms", "Required value"),
        (
            {"spec/hostPath": None, "spec/local": {"path": "/x"}},
            "spec.nodeAffinity",
            "Local volume requires node affinity",
        ),
        (
            {"spec/hostPath": None, "spec/local": {"path": "x"}, "spec/nodeAffinity": AFFINITY},
            "spec.local.path",
            "absolute",
        ),
        ({"spec/hostPath": None, "spec/csi": {"volumeHandle": "h"}}, "spec.csi.driver", "Required"),
        ({"spec/hostPath": None, "spec/csi": {"driver": "d"}}, "spec.csi.volumeHandle", "Required"),
        (
            {"spec/hostPath": None, "spec/csi": CSI | {"nodeExpandSecretRef": {"name": "s"}}},
            "spec.csi.nodeExpandSecretRef.namespace",
            "Required",
        ),
        ({"spec/volumeAttributesClassName": "gold"}, "spec.csi", "volumeAttributesClassName"),
        ({"metadata/name": "x" * 300}, "metadata.name", "no more than 253"),
    ],
)
def test_bad_volumes(problems_of: Check, changed: Change, changes: Any, field: str, message: str) -> None:
    found = problems_of(changed(VOLUME, changes))
    assert message in found.get(field, ""), found


@pytest.mark.parametrize(
    ("selector", "field", "message"),
    [
        ({"matchExpressions": [{"key": "-", "operator": "Exists"}]}, "matchExpressions[0].key", "Invalid"),
        ({"matchExpressions": [{"key": "a", "operator": "Is"}]}, "matchExpressions[0].operator", "Unsupported"),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "matchExpressions[0].values", "Required"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
            "matchExpressions[0].values",
            "may not have",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]},
            "matchExpressions[0].values",
            "exactly one",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["not ok"]}]},
            "matchExpressions[0].values",
            "Invalid",
        ),
        ({"matchFields": [{"key": "spec.x", "operator": "In", "values": ["x"]}]}, "matchFields[0].key", "Unsupported"),
        (
            {"matchFields": [{"key": "metadata.name", "operator": "Gt", "values": ["x"]}]},
            "matchFields[0].operator",
            "Unsupported",
        ),
        (
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": []}]},
            "matchFields[0].values",
            "exactly one",
        ),
    ],
)
def test_node_selectors(problems_of: Check, changed: Change, selector: Any, field: str, message: str) -> None:
    document = changed(VOLUME, {"spec/nodeAffinity": {"required": {"nodeSelectorTerms": [selector]}}})
    assert message in problems_of(document)[f"spec.nodeAffinity.required.nodeSelectorTerms[0].{field}"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"spec/hostPath/path": "/other"}, "spec.hostPath"),
        ({"spec/hostPath": None, "spec/csi": CSI}, "spec.csi"),
        ({"spec/volumeMode": "Block"}, "spec.volumeMode"),
    ],
)
def test_the_storage_of_a_volume_stays(
    problems_of_change: CheckChange, changed: Change, changes: Any, field: str
) -> None:
    assert "immutable" in problems_of_change(VOLUME, changed(VOLUME, changes))[field]


@pytest.mark.parametrize(
    "changes",
    [
        {"spec/capacity/storage": "2Gi"},
        {"spec/persistentVolumeReclaimPolicy": "Delete"},
        {"spec/claimRef": {"name": "c", "namespace": "n"}},
        {"spec/storageClassName": "slow"},
        {"spec/mountOptions": ["ro"]},
        {"spec/nodeAffinity": AFFINITY},
        {"metadata/labels": {"a": "b"}},
    ],
)
def test_what_of_a_volume_may_change(problems_of_change: CheckChange, changed: Change, changes: Any) -> None:
    assert problems_of_change(VOLUME, changed(VOLUME, changes)) == {}


def test_node_affinity_is_set_once(problems_of_change: CheckChange, changed: Change) -> None:
    there = changed(VOLUME, {"spec/nodeAffinity": AFFINITY})
    assert "spec.nodeAffinity" in problems_of_change(there, VOLUME)


def test_a_secret_for_expansion_may_come_later(problems_of_change: CheckChange, changed: Change) -> None:
    volume = changed(VOLUME, {"spec/hostPath": None, "spec/csi": CSI})
    reference = {"name": "s", "namespace": "n"}
    assert problems_of_change(volume, changed(volume, {"spec/csi/controllerExpandSecretRef": reference})) == {}
    assert "spec.csi" in problems_of_change(volume, changed(volume, {"spec/csi/nodeStageSecretRef": reference}))


# --- claims ------------------------------------------------------------------------------------------------


def test_a_good_claim(problems_of: Check, changed: Change) -> None:
    assert problems_of(CLAIM) == {}
    full = {
        "spec/storageClassName": "",
        "spec/volumeMode": "Block",
        "spec/selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]},
        "spec/dataSource": {"kind": "PersistentVolumeClaim", "name": "other"},
        "spec/resources/limits": {"storage": "2Gi"},
    }
    assert problems_of(changed(CLAIM, full)) == {}


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"spec/accessModes": None}, "spec.accessModes", "at least 1 access mode"),
        ({"spec/accessModes": ["RWO"]}, "spec.accessModes", "Unsupported value: 'RWO'"),
        ({"spec/accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]}, "spec.accessModes", "may not use"),
        ({"spec/resources": None}, "spec.resources.requests.storage", "Required value"),
        ({"spec/resources/requests/storage": "0"}, "spec.resources.requests.storage", "greater than zero"),
        ({"spec/resources/requests/storage": "1.5"}, "spec.resources.requests.storage", "must be an integer"),
        ({"spec/resources/requests/storage": "big"}, "spec.resources.requests.storage", "Invalid value: 'big'"),
        ({"spec/volumeMode": "Raw"}, "spec.volumeMode", "Unsupported"),
        ({"spec/storageClassName": "A B"}, "spec.storageClassName", "Invalid"),
        ({"spec/volumeName": "../x"}, "spec.volumeName", "Invalid"),
        ({"spec/selector": {"matchLabels": {"-": "b"}}}, "spec.selector.matchLabels", "Invalid"),
        (
            {"spec/selector": {"matchExpressions": [{"key": "c", "operator": "Gt"}]}},
            "spec.selector.matchExpressions[0].operator",
            "Unsupported",
        ),
        ({"spec/dataSource": {"kind": "PersistentVolumeClaim"}}, "spec.dataSource.name", "Required"),
        ({"spec/dataSource": {"name": "x"}}, "spec.dataSource.kind", "Required"),
        (
            {"spec/dataSource": {"kind": "VolumeSnapshot", "name": "x"}},
            "spec.dataSource",
            "must be 'PersistentVolumeClaim'",
        ),
        (
            {
                "spec/dataSource": {"kind": "PersistentVolumeClaim", "name": "a"},
                "spec/dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "b"},
            },
            "spec.dataSource",
            "must match dataSourceRef",
        ),
    ],
)
def test_bad_claims(problems_of: Check, changed: Change, changes: Any, field: str, message: str) -> None:
    found = problems_of(changed(CLAIM, changes))
    assert message in found.get(field, ""), found


def test_snapshots_are_data_sources_of_their_group(problems_of: Check, changed: Change) -> None:
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "x"}
    assert problems_of(changed(CLAIM, {"spec/dataSource": source})) == {}
    assert problems_of(changed(CLAIM, {"spec/dataSourceRef": source | {"namespace": "other"}})) == {}


def bound(changed: Change, size: str = "1Gi", capacity: str = "1Gi") -> Any:
    return changed(
        CLAIM,
        {
            "spec/volumeName": "disk",
            "spec/storageClassName": "fast",
            "spec/resources/requests/storage": size,
            "status": {"phase": "Bound", "capacity": {"storage": capacity}},
        },
    )


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"spec/accessModes": ["ReadWriteMany"]}, "spec.accessModes"),
        ({"spec/resources/requests/storage": "2Gi"}, "spec.resources"),
        ({"spec/volumeMode": "Block"}, "spec.volumeMode"),
        ({"spec/selector": {}}, "spec.selector"),
    ],
)
def test_a_pending_claim_stays(problems_of_change: CheckChange, changed: Change, changes: Any, field: str) -> None:
    assert "immutable" in problems_of_change(CLAIM, changed(CLAIM, changes))[field]


def test_a_claim_is_bound_and_given_a_class_once(problems_of_change: CheckChange, changed: Change) -> None:
    there = changed(CLAIM, {"spec/volumeName": "disk", "spec/storageClassName": "fast"})
    assert problems_of_change(CLAIM, there) == {}
    assert set(
        problems_of_change(there, changed(there, {"spec/volumeName": "other", "spec/storageClassName": "slow"}))
    ) == {"spec.volumeName", "spec.storageClassName"}


def test_writing_a_size_in_another_way_changes_nothing(problems_of_change: CheckChange, changed: Change) -> None:
    assert problems_of_change(CLAIM, changed(CLAIM, {"spec/resources/requests/storage": "1024Mi"})) == {}


def test_a_bound_claim_grows(problems_of_change: CheckChange, changed: Change) -> None:
    assert problems_of_change(bound(changed), bound(changed, "2Gi")) == {}
    assert problems_of_change(bound(changed), changed(bound(changed), {"spec/volumeAttributesClassName": "gold"})) == {}


def test_a_bound_claim_never_shrinks_below_its_capacity(problems_of_change: CheckChange, changed: Change) -> None:
    wish = bound(changed, "4Gi", "1Gi")
    assert problems_of_change(wish, bound(changed, "2Gi", "1Gi")) == {}
    assert "spec.resources.requests.storage" in problems_of_change(wish, bound(changed, "1Gi", "1Gi"))
    assert "spec.resources.requests.storage" in problems_of_change(bound(changed), bound(changed, "1Mi"))


def test_the_beta_class_annotation_stays(problems_of_change: CheckChange, changed: Change) -> None:
    annotated = changed(CLAIM, {"metadata/annotations": {"volume.beta.kubernetes.io/storage-class": "x"}})
    assert problems_of_change(CLAIM, annotated)
