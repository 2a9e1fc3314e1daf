"""The Kubernetes backend keeps the contract of every ApiClient, with and without caches.

With a kubeconfig in VOLUMEHOST_TEST_KUBECONFIG the same tests run against that cluster, in a namespace of their own.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from volumehost.api.client import ApiClient, MultiKindWatcher
from volumehost.api.kubernetes import CachedClient, KubernetesClient, Watched
from volumehost.api.kubernetes.transport import Request
from volumehost.api.objects import (
    ConfigMap,
    PersistentVolumeClaim,
    Pod,
    Secret,
    ServiceAccount,
    StorageClass,
)
from volumehost.errors import ObjectNotFoundError
from volumehost.testing.api_contract import ApiClientContract
from volumehost.testing.api_contract.fixtures import PATIENCE
from volumehost.testing.api_server import ApiServer

_REAL = os.environ.get("VOLUMEHOST_TEST_KUBECONFIG", "")
_WATCHED = [Watched(kind) for kind in (ConfigMap, PersistentVolumeClaim, Pod, Secret, StorageClass)]


class ClusterContract(ApiClientContract):
    """The contract in a cluster."""

    @pytest.fixture
    def server(self) -> Iterator[ApiServer | None]:
        if _REAL:
            yield None
            return
        with ApiServer(service_accounts=True) as server:
            yield server

    @pytest.fixture
    def kubeconfig(self, server: ApiServer | None, tmp_path: Path) -> str:
        return _REAL if server is None else server.kubeconfig(tmp_path / "kubeconfig")

    @pytest.fixture
    def namespace(self, server: ApiServer | None, kubernetes_client: KubernetesClient) -> Iterator[str]:
        if server is not None:
            yield "default"
            return
        name = f"volumehost-test-{uuid.uuid4().hex[:8]}"
        _send(kubernetes_client, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        _wait_for_service_account(kubernetes_client, name)
        yield name
        _send(kubernetes_client, "DELETE", f"/api/v1/namespaces/{name}")

    @pytest.fixture
    def gone_version(self, server: ApiServer | None) -> str:
        if server is not None:
            server.compact()
        return "1"


def _send(client: KubernetesClient, method: str, path: str, body: object = None) -> None:
    transport = client.caller.transport
    request = Request(method, path, body=None if body is None else msgspec.json.encode(body))
    assert transport.send(request, transport.headers).status < 300


def _wait_for_service_account(client: KubernetesClient, namespace: str) -> None:
    """Pods are refused before a controller has made it."""
    try:
        client.get(ServiceAccount, "default", namespace)
    except ObjectNotFoundError:
        for event in client.watch(ServiceAccount, namespace, timeout=PATIENCE):
            if event.type == "ADDED":
                return
        raise


class TestKubernetesClient(ClusterContract):
    @pytest.fixture
    def new_client(self, new_kubernetes_client: Callable[[], KubernetesClient]) -> Callable[[], ApiClient]:
        return new_kubernetes_client


class TestCachedClient(ClusterContract):
    @pytest.fixture
    def new_client(self, new_kubernetes_client: Callable[[], KubernetesClient]) -> Iterator[Callable[[], ApiClient]]:
        made: list[CachedClient] = []

        def make() -> ApiClient:
            client = CachedClient(new_kubernetes_client(), _WATCHED)
            made.append(client)
            client.start()
            assert client.wait_for_sync(PATIENCE)
            return client

        yield make
        for client in made:
            assert client.stop(PATIENCE)


def test_they_are_api_clients(kubernetes_client: KubernetesClient) -> None:
    assert isinstance(kubernetes_client, ApiClient)
    cached = CachedClient(kubernetes_client, [])
    assert isinstance(cached, ApiClient)
    assert isinstance(cached, MultiKindWatcher)
