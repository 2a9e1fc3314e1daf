"""An API server, and a client that knows nothing but HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode

import pytest

from volumehost.testing.api_server import ApiServer

MERGE = "application/merge-patch+json"


@dataclass
class Reply:
    """What came back; the body is decoded where it is JSON."""

    code: int
    body: Any
    headers: dict[str, str]

    @property
    def metadata(self) -> dict[str, Any]:
        return self.body["metadata"]


@dataclass
class Http:
    """Requests over one connection, which is kept."""

    port: int
    token: str
    connection: HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = HTTPConnection("127.0.0.1", self.port, timeout=30)

    def send(self, method: str, path: str, body: object = None, *, content_type: str = "", **query: object) -> Any:
        """Send a request; the response is still to be read."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = content_type or "application/json"
        target = f"{path}?{urlencode(query)}" if query else path
        self.connection.request(method, target, data, headers)
        return self.connection.getresponse()

    def __call__(self, method: str, path: str, body: object = None, **more: Any) -> Reply:
        response = self.send(method, path, body, **more)
        data = response.read()
        is_json = response.getheader("Content-Type") == "application/json"
        return Reply(response.status, json.loads(data) if is_json else data, dict(response.getheaders()))

    def get(self, path: str, **query: object) -> Reply:
        return self("GET", path, **query)

    def post(self, path: str, body: object, **query: object) -> Reply:
        return self("POST", path, body, **query)

    def put(self, path: str, body: object, **query: object) -> Reply:
        return self("PUT", path, body, **query)

    def patch(self, path: str, body: object, content_type: str = MERGE, **query: object) -> Reply:
        return self("PATCH", path, body, content_type=content_type, **query)

    def delete(self, path: str, body: object = None, **query: object) -> Reply:
        return self("DELETE", path, body, **query)

    @contextmanager
    def watch(self, path: str, **query: object) -> Iterator[Iterator[dict[str, Any]]]:
        """A watch over a connection of its own, as an iterator of events."""
        other = Http(self.port, self.token)
        response = other.send("GET", path, watch="true", **query)
        assert response.status == 200, response.read()
        try:
            yield (json.loads(line) for line in response)
        finally:
            other.connection.close()
            response.close()


def client_of(server: ApiServer, token: str) -> Http:
    return Http(int(server.url.rpartition(":")[2]), token)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as made:
        yield made


@pytest.fixture
def http(server: ApiServer) -> Iterator[Http]:
    made = client_of(server, server.token())
    yield made
    made.connection.close()


@pytest.fixture
def connect() -> Iterator[Any]:
    """Makes clients of a server, for a user."""
    made: list[Http] = []

    def connect(server: ApiServer, user: str = "admin", *, token: str | None = None) -> Http:
        made.append(client_of(server, server.token(user) if token is None else token))
        return made[-1]

    yield connect
    for client in made:
        client.connection.close()


@pytest.fixture
def pod() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {
            "containers": [{"name": "main", "image": "registry.example.com/web:1"}],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
        },
    }


@pytest.fixture
def config_map() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}


@pytest.fixture
def claim() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}},
    }
