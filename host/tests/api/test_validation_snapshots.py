"""Snapshots, their classes and their contents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Check = Callable[[Any], dict[str, str]]
CheckChange = Callable[[Any, Any], dict[str, str]]
Change = Callable[..., Any]

V1 = "snapshot.storage.k8s.io/v1"
SNAPSHOT: Any = {
    "apiVersion": V1,
    "kind": "VolumeSnapshot",
    "metadata": {"name": "monday"},
    "spec": {"source": {"persistentVolumeClaimName": "data"}, "volumeSnapshotClassName": "fast"},
}
CLASS: Any = {
    "apiVersion": V1,
    "kind": "VolumeSnapshotClass",
    "metadata": {"name": "fast"},
    "driver": "driver.example.com",
    "deletionPolicy": "Delete",
    "parameters": {"csi.storage.k8s.io/snapshotter-secret-name": "s"},
}
CONTENT: Any = {
    "apiVersion": V1,
    "kind": "VolumeSnapshotContent",
    "metadata": {"name": "snapcontent-1"},
    "spec": {
        "driver": "driver.example.com",
        "deletionPolicy": "Retain",
        "source": {"snapshotHandle": "snap-1"},
        "volumeSnapshotRef": {"name": "monday", "namespace": "default"},
        "sourceVolumeMode": "Filesystem",
    },
}


@pytest.mark.parametrize("document", [SNAPSHOT, CLASS, CONTENT], ids=lambda document: document["kind"])
def test_good_objects(problems_of: Check, document: Any) -> None:
    assert problems_of(document) == {}


BAD = [
    (SNAPSHOT, {"spec/source": None}, "spec.source", "exactly one of"),
    (SNAPSHOT, {"spec/source/volumeSnapshotContentName": "c"}, "spec.source", "exactly one of"),
    (SNAPSHOT, {"spec/source/persistentVolumeClaimName": ""}, "spec.source.persistentVolumeClaimName", "Required"),
    (SNAPSHOT, {"spec/source/persistentVolumeClaimName": "../x"}, "spec.source.persistentVolumeClaimName", "Invalid"),
    (
        SNAPSHOT,
        {"spec/source": {"volumeSnapshotContentName": "A/b"}},
        "spec.source.volumeSnapshotContentName",
        "Invalid",
    ),
    (SNAPSHOT, {"spec/volumeSnapshotClassName": ""}, "spec.volumeSnapshotClassName", "empty string"),
    (SNAPSHOT, {"spec/volumeSnapshotClassName": "a b"}, "spec.volumeSnapshotClassName", "Invalid"),
    (CLASS, {"driver": None}, "driver", "Required"),
    (CLASS, {"deletionPolicy": None}, "deletionPolicy", "Required"),
    (CLASS, {"deletionPolicy": "Recycle"}, "deletionPolicy", "'Delete', 'Retain'"),
    (CLASS, {"parameters": {"": "x"}}, "parameters", "must not be empty"),
    (CONTENT, {"spec/driver": None}, "spec.driver", "Required"),
    (CONTENT, {"spec/deletionPolicy": "Keep"}, "spec.deletionPolicy", "Unsupported"),
    (CONTENT, {"spec/source/volumeHandle": "v"}, "spec.source", "exactly one of"),
    (CONTENT, {"spec/source/snapshotHandle": ""}, "spec.source.snapshotHandle", "Required"),
    (CONTENT, {"spec/volumeSnapshotRef/name": None}, "spec.volumeSnapshotRef.name", "Required"),
    (CONTENT, {"spec/volumeSnapshotRef/namespace": None}, "spec.volumeSnapshotRef.namespace", "Required"),
    (CONTENT, {"spec/sourceVolumeMode": "Tape"}, "spec.sourceVolumeMode", "Unsupported"),
]


@pytest.mark.parametrize(("document", "changes", "field", "message"), BAD)
def test_bad_objects(
    problems_of: Check, changed: Change, document: Any, changes: Any, field: str, message: str
) -> None:
    found = problems_of(changed(document, changes))
    assert message in found.get(field, ""), found


@pytest.mark.parametrize(
    ("document", "changes", "field"),
    [
        (SNAPSHOT, {"spec/source/persistentVolumeClaimName": "other"}, "spec.source"),
        (CONTENT, {"spec/source/snapshotHandle": "snap-2"}, "spec.source"),
        (CONTENT, {"spec/driver": "other.example.com"}, "spec.driver"),
        (CONTENT, {"spec/sourceVolumeMode": "Block"}, "spec.sourceVolumeMode"),
        (CONTENT, {"spec/sourceVolumeMode": None}, "spec.sourceVolumeMode"),
    ],
)
def test_what_must_not_change(
    problems_of_change: CheckChange, changed: Change, document: Any, changes: Any, field: str
) -> None:
    assert "immutable" in problems_of_change(document, changed(document, changes)).get(field, "")


@pytest.mark.parametrize(
    ("document", "changes"),
    [
        (SNAPSHOT, {"spec/volumeSnapshotClassName": "slow"}),
        (CLASS, {"parameters": {"a": "b"}, "deletionPolicy": "Retain"}),
        (CONTENT, {"spec/deletionPolicy": "Delete", "spec/volumeSnapshotRef/uid": "u"}),
    ],
)
def test_what_may_change(problems_of_change: CheckChange, changed: Change, document: Any, changes: Any) -> None:
    assert problems_of_change(document, changed(document, changes)) == {}
