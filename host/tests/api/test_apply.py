from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from volumehost.api.apply import FIELD_MANAGER, apply_object, field_names, removals
from volumehost.api.convert import to_wire
from volumehost.api.objects import ConfigMap, PersistentVolume, Pod, Secret
from volumehost.api.schema import shape_of
from volumehost.api.store import EmbeddedStore
from volumehost.errors import ConflictError, InvalidObjectError


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(str(tmp_path / "store.sqlite3")) as opened:
        yield opened


def config(data: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}}
    return document if data is None else {**document, "data": data}


def test_created_then_unchanged_then_configured(store: EmbeddedStore) -> None:
    assert apply_object(store, ConfigMap, config({"a": "1"})).outcome == "created"
    assert apply_object(store, ConfigMap, config({"a": "1"})).outcome == "unchanged"
    applied = apply_object(store, ConfigMap, config({"a": "2"}))
    assert applied.outcome == "configured"
    assert store.get(ConfigMap, "c").data == {"a": "2"}


def test_what_a_manifest_says_no_longer_is_taken_away_and_what_others_said_stays(store: EmbeddedStore) -> None:
    apply_object(store, ConfigMap, config({"a": "1", "b": "2"}, labels={"x": "1", "y": "2"}))
    store.patch(ConfigMap, "c", {"data": {"foreign": "3"}, "metadata": {"labels": {"foreign": "4"}}})
    apply_object(store, ConfigMap, config({"a": "1"}, labels={"x": "1"}))
    found = store.get(ConfigMap, "c")
    assert found.data == {"a": "1", "foreign": "3"}
    assert found.metadata.labels == {"x": "1", "foreign": "4"}


def test_a_whole_field_that_goes_takes_only_what_was_applied_with_it(store: EmbeddedStore) -> None:
    apply_object(store, ConfigMap, config({"a": "1"}, annotations={"n": "1"}))
    store.patch(ConfigMap, "c", {"data": {"foreign": "3"}})
    apply_object(store, ConfigMap, config())
    found = store.get(ConfigMap, "c")
    assert found.data == {"foreign": "3"}
    assert found.metadata.annotations == {}
    assert found.metadata.name == "c"


def test_an_object_that_another_made_keeps_what_the_manifest_does_not_mention(store: EmbeddedStore) -> None:
    store.create(config({"old": "1"}))
    apply_object(store, ConfigMap, config({"new": "2"}))
    assert store.get(ConfigMap, "c").data == {"old": "1", "new": "2"}


def test_fields_that_this_version_does_not_know_are_applied_and_removed_too(store: EmbeddedStore) -> None:
    apply_object(store, ConfigMap, {**config({"a": "1"}), "futureField": {"x": 1}})
    apply_object(store, ConfigMap, {**config({"a": "2"}), "futureField": {"x": 1}})
    apply_object(store, ConfigMap, config({"a": "3"}))
    assert store.get(ConfigMap, "c").data == {"a": "3"}


def test_finalizers_are_added_and_never_taken_away(store: EmbeddedStore) -> None:
    apply_object(store, ConfigMap, config({"a": "1"}, finalizers=["example.com/a"]))
    store.patch(ConfigMap, "c", {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})
    apply_object(store, ConfigMap, config({"a": "2"}))
    assert store.get(ConfigMap, "c").metadata.finalizers == ["example.com/a", "example.com/b"]
    apply_object(store, ConfigMap, config({"a": "2"}, finalizers=["example.com/c"]))
    assert store.get(ConfigMap, "c").metadata.finalizers == ["example.com/a", "example.com/b", "example.com/c"]


def test_a_source_that_is_replaced_by_another_kind_of_source_goes(store: EmbeddedStore) -> None:
    def volume(source: dict[str, Any]) -> dict[str, Any]:
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source}
        return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec}

    wire = to_wire(apply_object(store, PersistentVolume, volume({"hostPath": {"path": "/a"}})).object)
    before, now = field_names({"spec": {"hostPath": {"path": "/a"}}}), field_names({"spec": {"nfs": {}}})
    assert removals(before, now, wire, shape_of(PersistentVolume)) == {"spec": {"hostPath": None}}


def test_br74_no_value_of_a_secret_is_kept_outside_of_its_data(store: EmbeddedStore) -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"password": "hunter2", "pin": "1234"},
    }
    apply_object(store, Secret, document)
    stored = store.get(Secret, "s")
    assert stored.data == {"password": b"hunter2", "pin": b"1234"}
    (entry,) = stored.metadata.managed_fields
    assert entry["manager"] == FIELD_MANAGER
    assert entry["fieldsV1"]["f:data"] == {"f:password": {}, "f:pin": {}}
    assert "hunter2" not in str(entry)
    assert apply_object(store, Secret, document).outcome == "unchanged"
    apply_object(store, Secret, {**document, "stringData": {"pin": "5678"}})
    assert store.get(Secret, "s").data == {"pin": b"5678"}


def test_a_resource_version_in_the_manifest_is_a_condition(store: EmbeddedStore) -> None:
    created = apply_object(store, ConfigMap, config({"a": "1"})).object
    version = created.metadata.resource_version
    assert apply_object(store, ConfigMap, config({"a": "2"}, resourceVersion=version)).outcome == "configured"
    with pytest.raises(ConflictError):
        apply_object(store, ConfigMap, config({"a": "3"}, resourceVersion=version))
    assert store.get(ConfigMap, "c").data == {"a": "2"}


def test_a_uid_in_the_manifest_is_a_condition(store: EmbeddedStore) -> None:
    apply_object(store, ConfigMap, config({"a": "1"}))
    with pytest.raises(ConflictError):
        apply_object(store, ConfigMap, config({"a": "2"}, uid="another"))


def test_an_invalid_change_leaves_the_object_as_it_was(store: EmbeddedStore) -> None:
    apply_object(store, ConfigMap, config({"a": "1"}))
    with pytest.raises(InvalidObjectError):
        apply_object(store, ConfigMap, config({"a": "2"}, labels={"not a label!": "x"}))
    assert store.get(ConfigMap, "c").data == {"a": "1"}


def test_appliers_at_the_same_time_all_get_through(store: EmbeddedStore) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(10):
                apply_object(store, ConfigMap, config({"shared": f"{number}-{turn}"}))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert store.get(ConfigMap, "c").data["shared"].endswith("-9")


def test_status_and_bookkeeping_of_a_manifest_are_not_its_to_say(store: EmbeddedStore) -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "creationTimestamp": None},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Failed"},
    }
    assert apply_object(store, Pod, document).outcome == "created"
    assert store.get(Pod, "p").status.phase != "Failed"
    assert apply_object(store, Pod, document).outcome == "unchanged"


def test_names_of_fields_stop_at_lists_and_leave_out_nulls() -> None:
    assert field_names({"a": {"b": 1, "c": None}, "d": [{"e": 1}]}) == {"f:a": {"f:b": {}}, "f:d": {}}


def test_only_what_is_still_there_is_removed() -> None:
    before = field_names({"data": {"x": "1", "y": "2"}, "immutable": True})
    now, shape = field_names({"data": {"x": "1"}}), shape_of(ConfigMap)
    assert removals(before, now, {"data": {"x": "1", "y": "2"}}, shape) == {"data": {"y": None}}
    assert removals(before, now, {"data": {"x": "1"}}, shape) == {}
    assert removals(before, now, {"immutable": True}, shape) == {"immutable": None}
