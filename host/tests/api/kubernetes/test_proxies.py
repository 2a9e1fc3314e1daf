"""Whom a proxy is asked for: what the kubeconfig says counts, then the environment, as with the Go client."""

from __future__ import annotations

import base64
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from volumehost.api.kubernetes.cluster_config import ClusterConfig
from volumehost.api.kubernetes.transport import Request, Transport
from volumehost.testing.api_server import ApiServer

FAR = "http://api.example.com"
_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def proxy() -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Host and port of a proxy that answers one request, and the head of that request."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        listener.settimeout(20)

        def serve() -> bytes:
            connection, _address = listener.accept()
            with connection:
                asked = b""
                while not asked.endswith(b"\r\n\r\n"):
                    asked += connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                return asked

        serving = pool.submit(serve)
        yield f"127.0.0.1:{listener.getsockname()[1]}", lambda: serving.result(20)


def ask(config: ClusterConfig) -> int:
    transport = Transport(config, connect_seconds=5, read_seconds=5)
    try:
        return transport.send(Request("GET", "/version"), {}).status
    finally:
        transport.close()


def test_the_kubeconfig_counts_before_no_proxy(
    proxy: tuple[str, Callable[[], bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, asked = proxy
    monkeypatch.setenv("NO_PROXY", "*")
    assert ask(ClusterConfig(FAR, "a test", proxy_url=f"http://{address}")) == 200
    assert asked().startswith(b"GET http://api.example.com/version ")


def test_a_proxy_of_the_environment_needs_no_scheme(
    proxy: tuple[str, Callable[[], bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, asked = proxy
    monkeypatch.setenv("http_proxy", address)
    assert ask(ClusterConfig(FAR, "a test")) == 200
    assert asked().startswith(b"GET http://api.example.com/version ")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_proxy_is_asked_for_this_machine(server: ApiServer, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """As where a cluster runs on the machine of its developer, and all else goes through the company's proxy."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        assert ask(ClusterConfig(server.url.replace("127.0.0.1", host), "a test")) in {200, 401}


def test_a_password_for_the_proxy_may_be_escaped(proxy: tuple[str, Callable[[], bytes]]) -> None:
    address, asked = proxy
    assert ask(ClusterConfig(FAR, "a test", proxy_url=f"http://me:p%40ss%2Fword@{address}")) == 200
    assert b"Basic " + base64.b64encode(b"me:p@ss/word") in asked()
