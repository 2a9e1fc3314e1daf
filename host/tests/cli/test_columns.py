from __future__ import annotations

import pytest

from volumehost.api import objects
from volumehost.api.objects import (
    Event,
    KubeObject,
    Node,
    ObjectMeta,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Secret,
    StorageClass,
)
from volumehost.cli.columns import access_modes, age, columns_for, parse_time, since


def cells(obj: KubeObject) -> dict[str, object]:
    return {header: cell(obj) for header, cell in columns_for(obj.kind)}


KINDS = [
    kind
    for kind in (getattr(objects, name) for name in objects.__all__)
    if isinstance(kind, type) and issubclass(kind, KubeObject) and kind is not KubeObject
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_has_columns_that_work_on_an_empty_object(kind: type[KubeObject]) -> None:
    obj = kind(metadata=ObjectMeta(name="x"))
    shown = cells(obj)
    assert len(shown) >= 2
    if kind is not Event:
        assert next(iter(shown.values())) == "x"


def test_a_pod_that_is_being_deleted_is_terminating() -> None:
    pod = Pod(metadata=ObjectMeta(name="web", deletion_timestamp="2026-01-01T00:00:00Z"))
    assert cells(pod)["status"] == "Terminating"
    assert cells(Pod())["status"] == "Pending"


def test_volumes_and_claims_show_what_kubectl_users_look_for() -> None:
    volume = PersistentVolume(metadata=ObjectMeta(name="pv"))
    volume.spec.capacity = {"storage": "5Gi"}
    volume.spec.access_modes = ["ReadWriteOnce", "ReadOnlyMany"]
    volume.spec.claim_ref = ObjectReference(namespace="default", name="data")
    volume.status.phase = "Bound"
    shown = cells(volume)
    assert (shown["capacity"], shown["access modes"], shown["claim"], shown["status"]) == (
        "5Gi",
        "RWO,ROX",
        "default/data",
        "Bound",
    )
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name="data"))
    claim.spec.access_modes = ["ReadWriteOncePod"]
    assert cells(claim)["access modes"] == "RWOP"


def test_the_default_storage_class_is_marked() -> None:
    storage_class = StorageClass(metadata=ObjectMeta(name="fast"))
    storage_class.metadata.annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    assert cells(storage_class)["name"] == "fast (default)"


def test_a_secret_shows_how_many_keys_and_no_content() -> None:
    secret = Secret(metadata=ObjectMeta(name="s"), data={"password": b"hunter2"})
    assert cells(secret)["data"] == 1
    assert "hunter2" not in str(cells(secret))


def test_a_node_is_ready_when_it_says_so() -> None:
    node = Node(metadata=ObjectMeta(name="n"))
    assert cells(node)["status"] == "Unknown"
    node.status.conditions = [objects.Condition(type="Ready", status="True")]
    node.spec.unschedulable = True
    assert cells(node)["status"] == "Ready,SchedulingDisabled"


def test_unknown_access_modes_are_shown_as_they_are() -> None:
    assert access_modes(["ReadWriteMany", "Strange"]) == "RWX,Strange"


def test_ages_of_moments_past_ahead_absent_and_unreadable() -> None:
    assert since("2001-01-01T00:00:00Z").endswith("d")
    assert since("2999-01-01T00:00:00Z") == "0s"
    assert since(None) == since("") == since("yesterday") == ""
    assert age(Pod()) == ""
    without_zone = parse_time("2026-01-01T00:00:00")
    assert without_zone is not None
    assert without_zone == parse_time("2026-01-01T01:00:00+01:00")
