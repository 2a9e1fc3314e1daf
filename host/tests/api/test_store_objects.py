"""What the embedded store does with objects beyond the contract of every client."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from volumehost.api.convert import to_object
from volumehost.api.objects import (
    ConfigMap,
    Container,
    Event,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodSpec,
    Secret,
    StorageClass,
    TokenRequest,
)
from volumehost.api.store import EmbeddedStore
from volumehost.errors import (
    ApiError,
    ConflictError,
    InvalidObjectError,
    NotAvailableOnHostError,
    ObjectNotFoundError,
    StoreError,
    UnknownKindError,
)

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "novel": 1},
    "spec": {
        "containers": [{"name": "main", "novel": 2}],
        "volumes": [{"name": "data", "emptyDir": {"novel": 3}}],
    },
}


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(str(tmp_path / "store.sqlite3"), clock=clock) as store:
        yield store


def raw(store: EmbeddedStore, kind: str, name: str) -> Any:
    with store._database.read() as connection:
        row = connection.execute("SELECT body FROM objects WHERE kind = ? AND name = ?", (kind, name)).fetchone()
    return msgspec.json.decode(row[0])


def test_identity_comes_from_the_store(store: EmbeddedStore, clock: Clock) -> None:
    handed_in = ConfigMap(
        metadata=ObjectMeta(
            name="c", uid="mine", generation=7, creation_timestamp="1999-01-01T00:00:00Z", deletion_timestamp="now"
        )
    )
    made = store.create(handed_in).metadata
    assert made.uid != "mine"
    assert made.generation == 1
    assert made.creation_timestamp == "2027-01-15T08:00:00Z"
    assert made.deletion_timestamp is None

    clock.now += 60
    stolen = store.get(ConfigMap, "c")
    stolen.metadata.creation_timestamp = "1999-01-01T00:00:00Z"
    stolen.metadata.generation = 99
    stolen.data = {"a": "b"}
    kept = store.replace(stolen).metadata
    assert (kept.creation_timestamp, kept.generation, kept.uid) == (made.creation_timestamp, 2, made.uid)


def test_a_resource_version_is_not_for_new_objects(store: EmbeddedStore) -> None:
    with pytest.raises(InvalidObjectError, match=r"metadata\.resourceVersion"):
        store.create(ConfigMap(metadata=ObjectMeta(name="c", resource_version="5")))


def test_resource_versions_rise_across_kinds(store: EmbeddedStore) -> None:
    versions = [
        store.create(ConfigMap(metadata=ObjectMeta(name="a"))).metadata.resource_version,
        store.create(Secret(metadata=ObjectMeta(name="a"))).metadata.resource_version,
        store.patch(ConfigMap, "a", {"data": {"x": "y"}}).metadata.resource_version,
        store.delete(Secret, "a").metadata.resource_version,
    ]
    assert [int(version) for version in versions] == [1, 2, 3, 4]
    assert store.list(Secret).resource_version == "4"


def test_generation_counts_changes_of_what_is_wanted(store: EmbeddedStore) -> None:
    store.create(POD)
    assert store.patch(Pod, "web", {"metadata": {"labels": {"a": "b"}}}).metadata.generation == 1
    pod = store.get(Pod, "web")
    pod.status.phase = "Running"
    assert store.replace_status(pod).metadata.generation == 1
    assert store.patch(Pod, "web", {"spec": {"nodeName": "n"}}).metadata.generation == 2


def test_unknown_fields_survive_typed_writes(store: EmbeddedStore) -> None:
    pod = store.create(POD)
    assert isinstance(pod, Pod)
    pod.metadata.labels = {"a": "b"}
    pod = store.replace(pod)
    pod.status.phase = "Running"
    store.replace_status(pod)
    store.patch(Pod, "web", {"spec": {"nodeName": "n"}})
    kept = raw(store, "Pod", "web")
    assert kept["metadata"]["novel"] == 1
    assert kept["spec"]["containers"][0]["novel"] == 2
    assert kept["spec"]["volumes"][0]["emptyDir"] == {"novel": 3}
    assert kept["status"] == {"phase": "Running"}
    assert kept["spec"]["nodeName"] == "n"


def test_unknown_fields_of_a_status_survive(store: EmbeddedStore) -> None:
    store.create(POD)
    store.replace_status(POD | {"status": {"phase": "Running", "novel": 1}})
    pod = store.get(Pod, "web")
    pod.status.phase = "Succeeded"
    store.replace_status(pod)
    assert raw(store, "Pod", "web")["status"] == {"phase": "Succeeded", "novel": 1}


def test_a_complete_document_replaces_unknown_fields_too(store: EmbeddedStore) -> None:
    store.create(POD)
    document = {key: value for key, value in POD.items() if key != "metadata"} | {"metadata": {"name": "web"}}
    store.replace(document)
    assert "novel" not in raw(store, "Pod", "web")["metadata"]


def test_wrong_types_in_our_own_structs_are_refused(store: EmbeddedStore) -> None:
    config_map = ConfigMap(metadata=ObjectMeta(name="c"), data={"a": 5})  # type: ignore[dict-item]
    with pytest.raises(InvalidObjectError, match=r"\$\.data\.a: expected string, got integer"):
        store.create(config_map)


def test_status_of_kinds_without_one(store: EmbeddedStore) -> None:
    store.create(ConfigMap(metadata=ObjectMeta(name="c")))
    with pytest.raises(ApiError, match="no status of its own"):
        store.replace_status(ConfigMap(metadata=ObjectMeta(name="c")))


def test_a_name_is_needed_to_replace(store: EmbeddedStore) -> None:
    with pytest.raises(InvalidObjectError, match=r"metadata\.name"):
        store.replace(ConfigMap())


def test_a_patch_cannot_rename(store: EmbeddedStore) -> None:
    store.create(ConfigMap(metadata=ObjectMeta(name="c")))
    for change in ({"name": "d"}, {"namespace": "other"}, {"name": None}):
        with pytest.raises(InvalidObjectError, match="cannot change name or namespace"):
            store.patch(ConfigMap, "c", {"metadata": change})


def test_a_patch_is_checked(store: EmbeddedStore) -> None:
    store.create(ConfigMap(metadata=ObjectMeta(name="c")))
    with pytest.raises(InvalidObjectError, match=r"\$\.data\.a"):
        store.patch(ConfigMap, "c", {"data": {"a": 1}})
    with pytest.raises(ConflictError, match="another object of that name"):
        store.patch(ConfigMap, "c", {"metadata": {"uid": "other"}})
    assert store.get(ConfigMap, "c").data == {}


def test_a_failed_write_leaves_nothing_behind(store: EmbeddedStore) -> None:
    before = store.list(ConfigMap).resource_version
    with pytest.raises(InvalidObjectError):
        store.create(ConfigMap(metadata=ObjectMeta(name="c"), data={"../x": "y"}))
    assert store.list(ConfigMap).items == []
    assert store.list(ConfigMap).resource_version == before


def test_long_generated_names_are_cut(store: EmbeddedStore) -> None:
    made = store.create(ConfigMap(metadata=ObjectMeta(generate_name="x" * 200)))
    assert len(made.metadata.name) == 63
    with pytest.raises(InvalidObjectError, match=r"metadata\.name"):
        store.create(ConfigMap(metadata=ObjectMeta(generate_name="Bad_")))


def test_unknown_kinds_and_other_things(store: EmbeddedStore) -> None:
    with pytest.raises(UnknownKindError):
        store.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}})
    with pytest.raises(InvalidObjectError, match=r"\$\.kind: Required value"):
        store.create({"apiVersion": "v1"})
    with pytest.raises(InvalidObjectError, match="neither"):
        store.create("text")  # type: ignore[call-overload]


def test_token_requests_have_nobody_who_answers(store: EmbeddedStore) -> None:
    with pytest.raises(NotAvailableOnHostError):
        store.create(TokenRequest(metadata=ObjectMeta(name="sa")))
    with pytest.raises(NotAvailableOnHostError):
        store.list(TokenRequest)


def test_namespaces_of_kinds_without_them_are_ignored_in_look_ups(store: EmbeddedStore) -> None:
    store.create(StorageClass(metadata=ObjectMeta(name="fast"), provisioner="example.com/x"))
    assert store.get(StorageClass, "fast", "default").provisioner == "example.com/x"
    store.delete(StorageClass, "fast", "default")


def test_secrets_reach_no_log_and_no_error(store: EmbeddedStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = store.create(Secret(metadata=ObjectMeta(name="s"), string_data={"key": "hunter2"}))
    errors = []
    attempts: list[Callable[[], object]] = [
        lambda: store.create(Secret(metadata=ObjectMeta(name="s"), string_data={"key": "hunter2"})),
        lambda: store.create(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t"}, "data": {"key": "hunter2!"}}
        ),
        lambda: store.create(Secret(metadata=ObjectMeta(name="T"), string_data={"a b": "hunter2"})),
        lambda: store.patch(Secret, "s", {"type": "other", "stringData": {"key": "hunter2"}}),
    ]
    for bad in attempts:
        with pytest.raises(ApiError) as caught:
            bad()
        errors.append(f"{caught.value} {caught.value!r} {caught.value.args}")
    assert "hunter2" not in " ".join([*errors, caplog.text, repr(secret)])


def test_many_threads_share_one_store(store: EmbeddedStore) -> None:
    def work(number: int) -> str:
        name = f"c{number}"
        store.create(ConfigMap(metadata=ObjectMeta(name=name), data={"n": str(number)}))
        assert store.get(ConfigMap, name).data["n"] == str(number)
        store.list(ConfigMap)
        if number % 2:
            store.delete(ConfigMap, name)
        return name

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(64)))
    assert len(store.list(ConfigMap).items) == 32
    assert store.list(ConfigMap).resource_version == "96"


def test_a_stored_object_that_cannot_be_read_is_named(store: EmbeddedStore) -> None:
    store.create(ConfigMap(metadata=ObjectMeta(name="c")))
    with store._database.write() as connection:
        connection.execute("UPDATE objects SET body = ?", (b'{"data": 5}',))
    with pytest.raises(StoreError, match="a stored ConfigMap cannot be read"):
        store.get(ConfigMap, "c")


# --- what is in use is not deleted -------------------------------------------------------------------------


def claim(name: str = "data") -> PersistentVolumeClaim:
    made = PersistentVolumeClaim(metadata=ObjectMeta(name=name))
    made.spec.access_modes = ["ReadWriteOnce"]
    made.spec.resources.requests = {"storage": "1Gi"}
    return made


def user(name: str = "web", claim_name: str = "data") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "main"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}],
        },
    }


def test_an_idle_claim_goes_at_once(store: EmbeddedStore) -> None:
    store.create(claim())
    store.delete(PersistentVolumeClaim, "data")
    with pytest.raises(ObjectNotFoundError):
        store.get(PersistentVolumeClaim, "data")


def test_a_claim_waits_for_its_last_pod(store: EmbeddedStore) -> None:
    store.create(claim())
    for name in ("one", "two"):
        store.create(user(name))
    assert store.delete(PersistentVolumeClaim, "data").metadata.deletion_timestamp
    store.delete(Pod, "one")
    assert store.get(PersistentVolumeClaim, "data").metadata.finalizers == ["kubernetes.io/pvc-protection"]
    start = store.list(PersistentVolumeClaim).resource_version
    store.delete(Pod, "two")
    with pytest.raises(ObjectNotFoundError):
        store.get(PersistentVolumeClaim, "data")
    events = list(store.watch(PersistentVolumeClaim, resource_version=start, timeout=0.05))
    assert [event.type for event in events] == ["DELETED"]


def test_a_finished_pod_uses_nothing(store: EmbeddedStore) -> None:
    store.create(claim())
    pod = store.create(user())
    assert isinstance(pod, Pod)
    store.delete(PersistentVolumeClaim, "data")
    pod.status.phase = "Succeeded"
    store.replace_status(pod)
    with pytest.raises(ObjectNotFoundError):
        store.get(PersistentVolumeClaim, "data")


def test_the_claim_of_an_ephemeral_volume_is_used_by_its_own_pod_alone(store: EmbeddedStore) -> None:
    """A pod that comes again under its name must not keep the claim of the former one, or it never gets its own."""
    spec = {"containers": [{"name": "c"}], "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}]}  # fmt: skip
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
    first = store.create(manifest)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": first.metadata.uid, "controller": True}
    owned = claim()
    owned.metadata = to_object(ObjectMeta, {"name": "web-v", "ownerReferences": [owner]})
    store.create(owned)
    store.delete(PersistentVolumeClaim, "web-v")
    assert store.get(PersistentVolumeClaim, "web-v").metadata.deletion_timestamp
    store.delete(Pod, "web")
    with pytest.raises(ObjectNotFoundError):
        store.get(PersistentVolumeClaim, "web-v")
    store.create(manifest)
    store.create(owned)
    store.delete(PersistentVolumeClaim, "web-v")
    with pytest.raises(ObjectNotFoundError):
        store.get(PersistentVolumeClaim, "web-v")


def test_a_pod_that_is_held_by_a_finalizer_still_uses_its_claim(store: EmbeddedStore) -> None:
    store.create(claim())
    store.create(user() | {"metadata": {"name": "web", "finalizers": ["example.com/volumes"]}})
    store.delete(Pod, "web")
    store.delete(PersistentVolumeClaim, "data")
    assert store.get(PersistentVolumeClaim, "data").metadata.deletion_timestamp
    store.patch(Pod, "web", {"metadata": {"finalizers": None}})
    with pytest.raises(ObjectNotFoundError):
        store.get(PersistentVolumeClaim, "data")


def test_claims_of_other_namespaces_are_not_meant(store: EmbeddedStore) -> None:
    store.create(claim())
    store.create(user() | {"metadata": {"name": "web", "namespace": "other"}})
    store.delete(PersistentVolumeClaim, "data")
    with pytest.raises(ObjectNotFoundError):
        store.get(PersistentVolumeClaim, "data")


def test_a_bound_volume_waits_until_it_is_released(store: EmbeddedStore) -> None:
    document = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/srv"}},
    }
    volume = store.create(document)
    assert isinstance(volume, PersistentVolume)
    volume.status.phase = "Bound"
    volume = store.replace_status(volume)
    assert store.delete(PersistentVolume, "disk").metadata.deletion_timestamp
    volume = store.get(PersistentVolume, "disk")
    volume.status.phase = "Released"
    store.replace_status(volume)
    with pytest.raises(ObjectNotFoundError):
        store.get(PersistentVolume, "disk")


# --- events ------------------------------------------------------------------------------------------------


def event(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"e{number}"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web"},
        "reason": "Test",
    }


def test_old_events_go(store: EmbeddedStore, clock: Clock) -> None:
    for number in range(40):
        store.create(event(number))
    clock.now += 3601
    for number in range(40, 50):
        store.create(event(number))
    assert sorted(found.metadata.name for found in store.list(Event).items) == [
        f"e{number}" for number in range(40, 50)
    ]


def test_pods_may_be_made_with_types(store: EmbeddedStore) -> None:
    pod = store.create(Pod(metadata=ObjectMeta(name="web"), spec=PodSpec(containers=[Container(name="main")])))
    assert pod.status.phase == "Pending"
    assert pod.spec.restart_policy == "Always"


def test_quantities_come_back_in_canonical_form(store: EmbeddedStore) -> None:
    document = POD | {"spec": POD["spec"] | {"volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1024Mi"}}]}}
    made = store.create(document)
    assert isinstance(made, Pod)
    assert made.spec.volumes[0].empty_dir is not None
    assert made.spec.volumes[0].empty_dir.size_limit == "1Gi"
    assert store.replace(document).metadata.resource_version == made.metadata.resource_version


def test_an_object_that_no_server_would_take(store: EmbeddedStore) -> None:
    huge = POD | {"spec": POD["spec"] | {"affinity": {"fill": "x" * (3 * 1024 * 1024)}}}
    with pytest.raises(InvalidObjectError, match="Too long"):
        store.create(huge)
    assert store.list(Pod).items == []


def test_lists_of_one_namespace_and_of_all(store: EmbeddedStore) -> None:
    for namespace in ("one", "two"):
        store.create(ConfigMap(metadata=ObjectMeta(name="c", namespace=namespace)))
    assert [found.metadata.namespace for found in store.list(ConfigMap).items] == ["one", "two"]
    assert len(store.list(ConfigMap, "").items) == 2
    assert len(store.list(ConfigMap, "one").items) == 1
    store.create(StorageClass(metadata=ObjectMeta(name="fast"), provisioner="example.com/x"))
    assert len(store.list(StorageClass, "one").items) == 1
    events = store.watch(StorageClass, "one", resource_version="0", timeout=0)
    assert [event.object.metadata.name for event in events] == ["fast"]
