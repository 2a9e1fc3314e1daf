"""The contract for create, get, list, replace, patch, status and delete."""

# ruff: noqa: D102 - the names of tests say what they ask for

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from volumehost.api.client import ApiClient
from volumehost.api.objects import (
    ConfigMap,
    EmptyDirVolumeSource,
    ObjectMeta,
    PersistentVolumeClaim,
    Pod,
    Secret,
    StorageClass,
    Volume,
)
from volumehost.errors import AlreadyExistsError, ConflictError, InvalidObjectError, ObjectNotFoundError
from volumehost.testing.api_contract.fixtures import (
    PATIENCE,
    ContractFixtures,
    make_claim,
    make_config_map,
    make_pod,
    remove,
)

FINALIZER = "contract.example.com/hold"


class ReadWriteContract(ContractFixtures):
    """Create, get, list, replace, patch, status, delete."""

    def test_created_object_has_identity(self, client: ApiClient, namespace: str, config_map: ConfigMap) -> None:
        metadata = config_map.metadata
        assert metadata.uid
        assert metadata.resource_version
        assert metadata.creation_timestamp
        assert metadata.creation_timestamp.endswith("Z")
        assert client.get(ConfigMap, metadata.name, namespace) == config_map

    def test_create_leaves_the_argument_alone(self, client: ApiClient, namespace: str, name: str) -> None:
        mine = make_config_map(namespace, name)
        client.create(mine)
        assert mine == make_config_map(namespace, name)
        client.delete(ConfigMap, name, namespace)

    def test_returned_objects_are_the_callers_own(
        self, client: ApiClient, namespace: str, config_map: ConfigMap
    ) -> None:
        config_map.data["extra"] = "mine"
        assert "extra" not in client.get(ConfigMap, config_map.metadata.name, namespace).data

    def test_empty_namespace_means_default(self, client: ApiClient, name: str) -> None:
        client.create(ConfigMap(metadata=ObjectMeta(name=name)))
        assert client.get(ConfigMap, name).metadata.namespace == "default"
        client.delete(ConfigMap, name)

    def test_second_object_of_that_name(self, client: ApiClient, namespace: str, config_map: ConfigMap) -> None:
        with pytest.raises(AlreadyExistsError):
            client.create(make_config_map(namespace, config_map.metadata.name))

    def test_missing_object(self, client: ApiClient, namespace: str, name: str) -> None:
        with pytest.raises(ObjectNotFoundError, match=name):
            client.get(ConfigMap, name, namespace)
        with pytest.raises(ObjectNotFoundError, match=name):
            client.replace(make_config_map(namespace, name))
        with pytest.raises(ObjectNotFoundError, match=name):
            client.patch(ConfigMap, name, {"data": {"a": "b"}}, namespace)
        with pytest.raises(ObjectNotFoundError, match=name):
            client.delete(ConfigMap, name, namespace)

    def test_invalid_object_names_the_field(self, client: ApiClient, namespace: str) -> None:
        with pytest.raises(InvalidObjectError) as caught:
            client.create(make_config_map(namespace, "Not A Name"))
        assert any(field == "metadata.name" for field, _message in caught.value.problems)

    def test_generated_names_differ(self, client: ApiClient, namespace: str) -> None:
        made = [
            client.create(ConfigMap(metadata=ObjectMeta(generate_name="contract-", namespace=namespace)))
            for _ in range(3)
        ]
        names = {obj.metadata.name for obj in made}
        assert len(names) == 3
        assert all(name.startswith("contract-") for name in names)
        for name in names:
            client.delete(ConfigMap, name, namespace)

    def test_list_by_labels(self, client: ApiClient, namespace: str, name: str) -> None:
        for index, tier in enumerate(("web", "web", "cache")):
            client.create(make_config_map(namespace, f"{name}-{index}", labels={"run": name, "tier": tier}))
        found = client.list(ConfigMap, namespace, {"run": name})
        assert [obj.metadata.name for obj in found.items] == [f"{name}-{index}" for index in range(3)]
        assert found.resource_version
        assert len(client.list(ConfigMap, namespace, f"run={name},tier!=cache").items) == 2
        assert len(client.list(ConfigMap, None, f"run={name},tier in (cache)").items) == 1
        assert client.list(ConfigMap, f"other-{name}"[:40], {"run": name}).items == []
        for index in range(3):
            client.delete(ConfigMap, f"{name}-{index}", namespace)

    def test_replace_changes_the_version(self, client: ApiClient, config_map: ConfigMap) -> None:
        before = config_map.metadata.resource_version
        config_map.data["a"] = "changed"
        after = client.replace(config_map)
        assert after.data["a"] == "changed"
        assert after.metadata.resource_version != before
        assert after.metadata.uid == config_map.metadata.uid

    def test_replace_without_a_change_changes_nothing(self, client: ApiClient, config_map: ConfigMap) -> None:
        assert client.replace(config_map).metadata.resource_version == config_map.metadata.resource_version

    def test_replace_of_a_stale_state_conflicts(self, client: ApiClient, namespace: str, config_map: ConfigMap) -> None:
        client.patch(ConfigMap, config_map.metadata.name, {"data": {"a": "first"}}, namespace)
        config_map.data["a"] = "second"
        with pytest.raises(ConflictError):
            client.replace(config_map)
        assert client.get(ConfigMap, config_map.metadata.name, namespace).data["a"] == "first"

    def test_replace_without_a_version_always_works(
        self, client: ApiClient, namespace: str, config_map: ConfigMap
    ) -> None:
        client.patch(ConfigMap, config_map.metadata.name, {"data": {"a": "first"}}, namespace)
        config_map.metadata.resource_version = ""
        config_map.data["a"] = "second"
        assert client.replace(config_map).data["a"] == "second"

    def test_one_of_two_writers_wins(self, client: ApiClient, namespace: str, config_map: ConfigMap) -> None:
        name = config_map.metadata.name

        def count_up() -> None:
            while True:
                obj = client.get(ConfigMap, name, namespace)
                obj.data["count"] = str(int(obj.data.get("count", "0")) + 1)
                try:
                    client.replace(obj)
                except ConflictError:
                    continue
                return

        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(count_up) for _ in range(12)]:
                done.result(timeout=PATIENCE)
        assert client.get(ConfigMap, name, namespace).data["count"] == "12"

    def test_patch_merges_and_null_removes(self, client: ApiClient, namespace: str, config_map: ConfigMap) -> None:
        name = config_map.metadata.name
        after = client.patch(ConfigMap, name, {"data": {"a": None, "b": "new"}}, namespace)
        assert after.data == {"b": "new"}

    def test_patch_with_a_stale_version_conflicts(
        self, client: ApiClient, namespace: str, config_map: ConfigMap
    ) -> None:
        stale = {"metadata": {"resourceVersion": config_map.metadata.resource_version}, "data": {"a": "stale"}}
        client.patch(ConfigMap, config_map.metadata.name, {"data": {"a": "first"}}, namespace)
        with pytest.raises(ConflictError):
            client.patch(ConfigMap, config_map.metadata.name, stale, namespace)

    def test_status_is_apart(self, client: ApiClient, namespace: str, name: str) -> None:
        claim = client.create(make_claim(namespace, name))
        assert claim.status.phase == "Pending"
        claim.status.phase = "Bound"
        claim.metadata.labels["x"] = "y"
        after = client.replace(claim)
        assert (after.status.phase, after.metadata.labels) == ("Pending", {"x": "y"})

        after.status.phase = "Bound"
        after.status.capacity = {"storage": "2Gi"}
        after.metadata.labels["x"] = "z"
        settled = client.replace_status(after)
        assert (settled.status.phase, settled.status.capacity["storage"]) == ("Bound", "2Gi")
        assert settled.spec == after.spec
        remove(client, PersistentVolumeClaim, name, namespace)

    def test_defaults_are_filled_in(self, client: ApiClient, namespace: str, name: str) -> None:
        claim = client.create(make_claim(namespace, name))
        assert claim.spec.volume_mode == "Filesystem"
        assert "kubernetes.io/pvc-protection" in claim.metadata.finalizers
        storage_class = client.create(StorageClass(metadata=ObjectMeta(name=name), provisioner="example.com/none"))
        assert (storage_class.reclaim_policy, storage_class.volume_binding_mode) == ("Delete", "Immediate")
        client.delete(StorageClass, name)
        remove(client, PersistentVolumeClaim, name, namespace)

    def test_secret_text_becomes_data(self, client: ApiClient, namespace: str, name: str) -> None:
        secret = client.create(
            Secret(metadata=ObjectMeta(name=name, namespace=namespace), data={"a": b"\x00\xff"}, string_data={"b": "ä"})
        )
        assert secret.data == {"a": b"\x00\xff", "b": "ä".encode()}
        assert secret.string_data == {}
        client.delete(Secret, name, namespace)

    def test_delete_gives_the_last_state(self, client: ApiClient, namespace: str, name: str) -> None:
        client.create(make_config_map(namespace, name))
        assert client.delete(ConfigMap, name, namespace).data == {"a": "1"}
        with pytest.raises(ObjectNotFoundError):
            client.get(ConfigMap, name, namespace)

    def test_delete_of_another_object_of_that_name(
        self, client: ApiClient, namespace: str, config_map: ConfigMap
    ) -> None:
        name = config_map.metadata.name
        with pytest.raises(ConflictError):
            client.delete(ConfigMap, name, namespace, uid=str(uuid.uuid4()))
        client.delete(ConfigMap, name, namespace, uid=config_map.metadata.uid)

    def test_delete_of_a_stale_state(self, client: ApiClient, namespace: str, config_map: ConfigMap) -> None:
        name = config_map.metadata.name
        stale = config_map.metadata.resource_version
        client.patch(ConfigMap, name, {"data": {"a": "2"}}, namespace)
        with pytest.raises(ConflictError):
            client.delete(ConfigMap, name, namespace, resource_version=stale)

    def test_finalizer_holds_the_object(self, client: ApiClient, namespace: str, name: str) -> None:
        held = make_config_map(namespace, name)
        held.metadata.finalizers = [FINALIZER]
        client.create(held)
        marked = client.delete(ConfigMap, name, namespace)
        assert marked.metadata.deletion_timestamp
        again = client.delete(ConfigMap, name, namespace)
        assert again.metadata.deletion_timestamp == marked.metadata.deletion_timestamp

        with pytest.raises(InvalidObjectError):
            client.patch(ConfigMap, name, {"metadata": {"finalizers": [FINALIZER, "example.com/late"]}}, namespace)
        client.patch(ConfigMap, name, {"metadata": {"finalizers": []}}, namespace)
        with pytest.raises(ObjectNotFoundError):
            client.get(ConfigMap, name, namespace)

    def test_a_mapping_is_as_good_as_an_object(self, client: ApiClient, namespace: str, name: str) -> None:
        made = client.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace},
                "data": {"a": "1"},
            }
        )
        assert isinstance(made, ConfigMap)
        assert made.data == {"a": "1"}
        client.delete(ConfigMap, name, namespace)

    def test_pod_keeps_its_volumes(self, client: ApiClient, namespace: str, name: str) -> None:
        pod = client.create(make_pod(namespace, name))
        # A cluster adds a volume of its own, for the service account.
        assert Volume(name="scratch", empty_dir=EmptyDirVolumeSource(size_limit="1Gi")) in pod.spec.volumes
        client.delete(Pod, name, namespace)
