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
def kubeconfig(server: ApiServer, tmp_path: Path) -> str:
    """A kubeconfig for the server; other modules name another server."""
    return server.kubeconfig(tmp_path / "kubeconfig")


@pytest.fixture
def new_kubernetes_client(kubeconfig: str) -> Iterator[Callable[[], KubernetesClient]]:
    made: list[KubernetesClient] = []

    def make() -> KubernetesClient:
        client = connect(kubeconfig)
        client.watches = WatchSettings(silence=10.0, first_byte=10.0, retry=0.02)
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()


@pytest.fixture
def kubernetes_client(new_kubernetes_client: Callable[[], KubernetesClient]) -> KubernetesClient:
    return new_kubernetes_client()
