"""Certificates: of the server, of the client, in files and inline, and files that are replaced."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from volumehost.api.kubernetes import connect
from volumehost.api.objects import Node, Pod
from volumehost.errors import ServerUnreachableError, UnauthorizedError
from volumehost.testing.api_server import ApiServer


@pytest.fixture(scope="module")
def tls_server() -> Iterator[ApiServer]:
    with ApiServer(tls=True) as server:
        yield server


def test_a_client_certificate_given_inline(tls_server: ApiServer, tmp_path: Path) -> None:
    path = tls_server.kubeconfig(tmp_path / "config", user="alice", groups=["system:masters"], certificate=True)
    with connect(path) as client:
        assert client.list(Node).items == []
    assert tls_server.requests.all(user="alice")


def test_a_server_that_nobody_vouches_for(tls_server: ApiServer, tmp_path: Path) -> None:
    path = edited(tls_server, tmp_path, lambda cluster: cluster.pop("certificate-authority-data"))
    with connect(path) as client, pytest.raises(ServerUnreachableError, match="certificate is not accepted"):
        client.list(Node)


def test_insecure_is_insecure(tls_server: ApiServer, tmp_path: Path) -> None:
    def insecure(cluster: dict[str, object]) -> None:
        cluster.pop("certificate-authority-data")
        cluster["insecure-skip-tls-verify"] = True

    with connect(edited(tls_server, tmp_path, insecure)) as client:
        assert client.list(Node).items == []


def test_the_name_in_the_certificate_may_be_another(tls_server: ApiServer, tmp_path: Path) -> None:
    good = edited(tls_server, tmp_path, lambda cluster: cluster.update({"tls-server-name": "localhost"}))
    with connect(good) as client:
        assert client.list(Node).items == []
    wrong = edited(tls_server, tmp_path, lambda cluster: cluster.update({"tls-server-name": "other.example.com"}))
    with connect(wrong) as client, pytest.raises(ServerUnreachableError, match="certificate is not accepted"):
        client.list(Node)


def test_certificate_files_that_are_replaced(tls_server: ApiServer, tmp_path: Path) -> None:
    import base64

    def to_files(path: str, name: str) -> tuple[bytes, bytes]:
        user = msgspec.yaml.decode(Path(path).read_bytes())["users"][0]["user"]
        return tuple(base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key"))  # type: ignore[return-value]

    first = tls_server.kubeconfig(tmp_path / "first", user="carol", groups=["system:masters"], certificate=True)
    second = tls_server.kubeconfig(tmp_path / "second", user="dave", groups=["system:masters"], certificate=True)
    document = msgspec.yaml.decode(Path(first).read_bytes())
    document["users"][0]["user"] = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    (tmp_path / "config").write_bytes(msgspec.yaml.encode(document))

    def install(path: str) -> None:
        certificate, key = to_files(path, "x")
        (tmp_path / "tls.crt").write_bytes(certificate)
        (tmp_path / "tls.key").write_bytes(key)

    install(first)
    with connect(str(tmp_path / "config")) as client:
        client.list(Pod)
        install(second)
        client.list(Pod)
    assert tls_server.requests.all(user="carol")
    assert tls_server.requests.all(user="dave")


def test_watches_end_promptly_over_tls(tls_server: ApiServer, tmp_path: Path) -> None:
    with connect(tls_server.kubeconfig(tmp_path / "config")) as client:
        stopped: list[bool] = []

        def stop() -> bool:
            return bool(stopped)

        version = client.list(Pod).resource_version
        tls_server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
        for event in client.watch(Node, resource_version=version, stop=stop):
            if event.type == "ADDED":
                stopped.append(True)


def test_no_credentials_at_all(tls_server: ApiServer, tmp_path: Path) -> None:
    path = tls_server.kubeconfig(tmp_path / "config", user="gone")
    tls_server.revoke("gone")
    with connect(path) as client, pytest.raises(UnauthorizedError, match="credentials"):
        client.list(Node)


def edited(server: ApiServer, directory: Path, change: object) -> str:
    path = Path(server.kubeconfig(directory / "edited"))
    document = msgspec.yaml.decode(path.read_bytes())
    change(document["clusters"][0]["cluster"])  # type: ignore[operator]
    path.write_bytes(msgspec.yaml.encode(document))
    return str(path)
