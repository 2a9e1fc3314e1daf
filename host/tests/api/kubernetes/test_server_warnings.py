"""What a server warns of is told once."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from volumehost.api.kubernetes.client import KubernetesClient
from volumehost.api.kubernetes.cluster_config import ClusterConfig
from volumehost.api.kubernetes.transport import Transport
from volumehost.api.objects import Node

_ANSWER = b"""HTTP/1.1 200 OK\r
Warning: 299 - "v1 Node is \\"deprecated\\"", 299 - "unknown field"\r
Warning: 299 - "another one"\r
Warning: 110 proxy "the response is stale"\r
Content-Length: 40\r
\r
{"kind":"Node","metadata":{"name":"n1"}}"""


def test_a_warning_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        listener.settimeout(20)

        def serve() -> None:
            connection, _address = listener.accept()
            with connection:
                for _request in range(2):
                    asked = b""
                    while not asked.endswith(b"\r\n\r\n"):
                        asked += connection.recv(4096)
                    connection.sendall(_ANSWER)

        serving = pool.submit(serve)
        config = ClusterConfig(f"http://127.0.0.1:{listener.getsockname()[1]}", "a test")
        with KubernetesClient(Transport(config)) as client, caplog.at_level("WARNING", "volumehost.api.kubernetes"):
            for _request in range(2):
                assert client.get(Node, "n1").metadata.name == "n1"
        serving.result(20)
    assert [record.getMessage() for record in caplog.records] == [
        f"get node n1: the API server warns: {text}"
        for text in ('v1 Node is "deprecated"', "unknown field", "another one")
    ]
