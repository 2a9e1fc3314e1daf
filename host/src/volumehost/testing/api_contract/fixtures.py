"""Fixtures and objects of the contract tests."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from volumehost.api.client import ApiClient
from volumehost.api.objects import (
    ConfigMap,
    Container,
    EmptyDirVolumeSource,
    ObjectMeta,
    PersistentVolumeClaim,
    Pod,
    PodSpec,
    Volume,
    VolumeMount,
)
from volumehost.errors import ObjectNotFoundError

#: Longest wait for something that another thread does, in seconds.
PATIENCE = 30.0


class ContractFixtures:
    """Clients, and names that no other run uses."""

    @pytest.fixture
    def new_client(self) -> Callable[[], ApiClient]:
        """Makes a client of the one set of objects; the subclass says how."""
        raise NotImplementedError("override the fixture new_client")

    @pytest.fixture
    def client(self, new_client: Callable[[], ApiClient]) -> ApiClient:
        """The client under test."""
        return new_client()

    @pytest.fixture
    def namespace(self) -> str:
        """The namespace to work in."""
        return "default"

    @pytest.fixture
    def gone_version(self) -> str:
        """A resource version after which changes are not known. Servers with other histories name another one."""
        return "999999999999999999"

    @pytest.fixture
    def name(self) -> str:
        """A name for this test alone."""
        return f"contract-{uuid.uuid4().hex[:12]}"

    @pytest.fixture
    def config_map(self, client: ApiClient, namespace: str, name: str) -> Iterator[ConfigMap]:
        """An object that is there, and gone after the test."""
        yield client.create(make_config_map(namespace, name))
        remove(client, ConfigMap, name, namespace)


def make_config_map(namespace: str, name: str, *, labels: dict[str, str] | None = None) -> ConfigMap:
    """A config map with one key."""
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels or {}), data={"a": "1"})


def make_claim(namespace: str, name: str) -> PersistentVolumeClaim:
    """A claim that nobody will bind."""
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace=namespace))
    claim.spec.access_modes = ["ReadWriteOnce"]
    claim.spec.resources.requests = {"storage": "1Gi"}
    claim.spec.storage_class_name = ""
    return claim


def make_pod(namespace: str, name: str) -> Pod:
    """A pod with one volume."""
    scratch = Volume(name="scratch", empty_dir=EmptyDirVolumeSource(size_limit="1Gi"))
    mount = VolumeMount(name="scratch", mount_path="/scratch")
    container = Container(name="main", image="registry.example.com/none", volume_mounts=[mount])
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace), spec=PodSpec(volumes=[scratch], containers=[container])
    )


def remove(client: ApiClient, kind: type[Any], name: str, namespace: str) -> None:
    """Delete whatever is left, finalizers or not."""
    try:
        client.delete(kind, name, namespace)
        client.patch(kind, name, {"metadata": {"finalizers": None}}, namespace)
    except ObjectNotFoundError:
        return
