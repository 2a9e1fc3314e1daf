"""The Kubernetes backend keeps the contract of every ApiClient, with and without caches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from volumehost.api.client import ApiClient, MultiKindWatcher
from volumehost.api.kubernetes import CachedClient, KubernetesClient, Watched
from volumehost.api.objects import ConfigMap, PersistentVolumeClaim, Pod, Secret, StorageClass
from volumehost.testing.api_contract import ApiClientContract

_WATCHED = [Watched(kind) for kind in (ConfigMap, PersistentVolumeClaim, Pod, Secret, StorageClass)]


class TestKubernetesClient(ApiClientContract):
    @pytest.fixture
    def new_client(self, new_kubernetes_client: Callable[[], KubernetesClient]) -> Callable[[], ApiClient]:
        return new_kubernetes_client


class TestCachedClient(ApiClientContract):
    @pytest.fixture
    def new_client(
        self, new_kubernetes_client: Callable[[], KubernetesClient]
    ) -> Iterator[Callable[[], ApiClient]]:
        made: list[CachedClient] = []

        def make() -> ApiClient:
            client = CachedClient(new_kubernetes_client(), _WATCHED)
            made.append(client)
            client.start()
            assert client.wait_for_sync(20)
            return client

        yield make
        for client in made:
            assert client.stop(10)


def test_they_are_api_clients(kubernetes_client: KubernetesClient) -> None:
    assert isinstance(kubernetes_client, ApiClient)
    cached = CachedClient(kubernetes_client, [])
    assert isinstance(cached, ApiClient)
    assert isinstance(cached, MultiKindWatcher)
