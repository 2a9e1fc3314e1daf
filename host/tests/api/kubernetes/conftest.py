"""One fake API server for a test, and clients of it that are closed at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from volumehost.api.kubernetes import KubernetesClient, connect
from volumehost.api.kubernetes.watching import WatchSettings
from volumehost.testing.api_server import ApiServer


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


@pytest.fixture
def new_kubernetes_client(server: ApiServer, tmp_path: Path) -> Iterator[Callable[[], KubernetesClient]]:
    made: list[KubernetesClient] = []

    def make() -> KubernetesClient:
        client = connect(server.kubeconfig(tmp_path / f"config-{len(made)}"))
        client.watches = WatchSettings(silence=5.0, first_byte=5.0)
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()


@pytest.fixture
def kubernetes_client(new_kubernetes_client: Callable[[], KubernetesClient]) -> KubernetesClient:
    return new_kubernetes_client()
