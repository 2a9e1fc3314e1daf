"""Certificates: of the server, of the client, in files and inline, and files that are replaced."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

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


def test_a_certificate_counts_before_a_token(tls_server: ApiServer, tmp_path: Path) -> None:
    """A real server asks the certificate first, whatever else is sent."""
    path = Path(tls_server.kubeconfig(tmp_path / "config", user="frank", groups=["system:masters"], certificate=True))
    document = msgspec.yaml.decode(path.read_bytes())
    document["users"][0]["user"]["token"] = "of-nobody"
    path.write_bytes(msgspec.yaml.encode(document))
    with connect(str(path)) as client:
        assert client.list(Node).items == []
    assert tls_server.requests.all(user="frank")


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


def test_files_of_which_one_is_new_already(tls_server: ApiServer, tmp_path: Path) -> None:
    """Whoever renews certificates writes one file after the other: until both are there, the old ones go on."""
    config = Path(tls_server.kubeconfig(tmp_path / "config", user="erin", groups=["system:masters"], certificate=True))
    document = msgspec.yaml.decode(config.read_bytes())
    given = document["users"][0]["user"]
    for part, name in (("certificate", "tls.crt"), ("key", "tls.key")):
        (tmp_path / name).write_bytes(base64.b64decode(given[f"client-{part}-data"]))
    document["users"][0]["user"] = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    config.write_bytes(msgspec.yaml.encode(document))
    whole = (tmp_path / "tls.crt").read_bytes()
    with connect(str(config)) as client:
        client.list(Pod)
        (tmp_path / "tls.crt").write_bytes(whole[:200])
        # Nothing of it is needed before there is another connection, and then it is the old one that counts.
        client.caller.transport._rest.close()  # type: ignore[union-attr]
        client.list(Pod)
        (tmp_path / "tls.crt").write_bytes(whole)
        client.list(Pod)
    assert len(tls_server.requests.all(user="erin")) == 3


def test_what_the_authority_holds_is_trusted_as_go_does(tls_server: ApiServer, tmp_path: Path) -> None:
    """Be it the root or not: here it is the server's own certificate. And nothing is stricter than Go."""
    address = urlsplit(tls_server.url)
    assert address.hostname is not None
    assert address.port is not None
    own = ssl.get_server_certificate((address.hostname, address.port)).encode()

    def pinned(cluster: dict[str, object]) -> None:
        cluster["certificate-authority-data"] = base64.b64encode(own).decode()

    with connect(edited(tls_server, tmp_path, pinned)) as client:
        assert client.list(Node).items == []
        rest = client.caller.transport._rest
        assert rest is not None
        assert not rest.pool_manager.connection_pool_kw["ssl_context"].verify_flags & ssl.VERIFY_X509_STRICT


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
