"""Kubeconfig files: merged as kubectl does, and whatever is wrong with one is told without a secret."""

from __future__ import annotations

import base64
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from volumehost.api.kubernetes.connecting import cluster_config, connect
from volumehost.api.kubernetes.kubeconfig import load_kubeconfig
from volumehost.api.kubernetes.transport import Request, Transport
from volumehost.errors import ClusterConfigError

SECRET = "hunter2-do-not-show"


def write(path: Path, **content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.yaml.encode(content))
    return str(path)


def cluster(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "cluster": {"server": f"https://{name}.example.com", **fields}}


def user(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "user": fields}


def context(name: str, cluster: str, user: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "context": {"cluster": cluster, "user": user, **fields}}


def whole(path: Path, *, cluster_fields: dict[str, Any] | None = None, **user_fields: Any) -> str:
    return write(
        path,
        clusters=[cluster("one", **(cluster_fields or {}))],
        users=[user("me", **user_fields)],
        contexts=[context("main", "one", "me", namespace="apps")],
        **{"current-context": "main"},
    )


def test_a_whole_file(tmp_path: Path) -> None:
    path = whole(
        tmp_path / "config",
        token=SECRET,
        cluster_fields={
            "tls-server-name": "api",
            "proxy-url": "http://proxy.example.com:3128",
            "insecure-skip-tls-verify": True,
        },
    )
    config = load_kubeconfig([path])
    assert (config.server, config.namespace, config.server_name) == ("https://one.example.com", "apps", "api")
    assert (config.proxy_url, config.verify) == ("http://proxy.example.com:3128", False)
    assert config.credentials.headers() == {"Authorization": f"Bearer {SECRET}"}
    assert SECRET not in repr(config)


def test_another_context(tmp_path: Path) -> None:
    path = write(
        tmp_path / "config",
        clusters=[cluster("one"), cluster("two")],
        users=[user("me", username="me", password=SECRET)],
        contexts=[context("a", "one", "me"), context("b", "two", "me")],
        **{"current-context": "a"},
    )
    assert load_kubeconfig([path]).server == "https://one.example.com"
    config = load_kubeconfig([path], "b")
    assert config.server == "https://two.example.com"
    assert config.namespace == "default"
    assert config.credentials.headers()["Authorization"].startswith("Basic ")


def test_of_several_files_the_first_to_say_something_counts(tmp_path: Path) -> None:
    first = write(
        tmp_path / "a" / "config",
        clusters=[cluster("one")],
        contexts=[context("main", "one", "me")],
        **{"current-context": "main"},
    )
    second = write(
        tmp_path / "b" / "config",
        clusters=[{"name": "one", "cluster": {"server": "https://other.example.com"}}],
        users=[user("me", tokenFile="token")],
        contexts=[context("other", "one", "me")],
        **{"current-context": "other"},
    )
    (tmp_path / "b" / "token").write_text(f"{SECRET}\n")
    config = load_kubeconfig([first, second])
    assert config.server == "https://one.example.com"
    # A path in a file is relative to that file.
    assert config.credentials.headers() == {"Authorization": f"Bearer {SECRET}"}
    assert first in config.origin
    assert second in config.origin


def test_kubeconfig_variable_leaves_out_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = whole(tmp_path / "config", token="t")
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(tmp_path / "absent"), path]))
    assert cluster_config(None, None).server == "https://one.example.com"
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    with pytest.raises(ClusterConfigError, match="absent"):
        cluster_config(None, None)


def test_a_home_without_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ClusterConfigError, match="--kubeconfig"):
        connect()
    whole(tmp_path / ".kube" / "config", token="t")
    assert connect().server == "https://one.example.com"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({}, "current context"),
        ({"current-context": "mian", "contexts": [context("main", "one", "")]}, "did you mean main"),
        ({"current-context": "main", "contexts": [context("main", "gone", "")]}, "cluster 'gone'"),
        ({"current-context": "main", "contexts": [context("main", "", "")]}, "names no cluster"),
        (
            {"current-context": "main", "contexts": [context("main", "one", "gone")], "clusters": [cluster("one")]},
            "user 'gone'",
        ),
        (
            {
                "current-context": "main",
                "contexts": [context("main", "one", "")],
                "clusters": [{"name": "one", "cluster": {"server": "one.example.com:6443"}}],
            },
            "http://",
        ),
        (
            {
                "current-context": "main",
                "contexts": [context("main", "one", "")],
                "clusters": [{"name": "one", "cluster": {"server": f"https://me:{SECRET}@one.example.com"}}],
            },
            "password in its URL",
        ),
        ({"clusters": {"one": 1}}, r"\$\.clusters"),
        ({"users": [{"name": "me", "user": {"token": 5}}]}, "token"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, content: dict[str, Any], told: str) -> None:
    path = write(tmp_path / "config", **content)
    with pytest.raises(ClusterConfigError, match=told) as caught:
        load_kubeconfig([path])
    assert path in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"client-certificate-data": SECRET + "?"}, "base64"),
        ({"client-certificate": "some.crt"}, "without a client key"),
        ({"client-key-data": base64.b64encode(SECRET.encode()).decode()}, "without a client certificate"),
        ({"token": f"{SECRET}\nX-Evil: 1"}, "no token has"),
        ({"tokenFile": "absent"}, "absent"),
        ({"auth-provider": {"name": "gcp", "config": {"access-token": SECRET}}}, "'gcp'"),
        ({"as-groups": ["admins"]}, "of nobody"),
        ({"as": "someone", "as-groups": ["a\nX-Evil: 1"]}, "no header can hold"),
    ],
)
def test_what_is_wrong_with_a_user_is_told(tmp_path: Path, fields: dict[str, Any], told: str) -> None:
    path = whole(tmp_path / "config", **fields)
    with pytest.raises(ClusterConfigError, match=told) as caught:
        load_kubeconfig([path])
    assert "main" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"users: [{{name: me, user: {{token: {SECRET}}}\n", "not YAML from line"),
        (f"- {SECRET}\n", "no kubeconfig"),
        ("a: !!python/object/apply:os.getcwd []\n", "not YAML"),
    ],
)
def test_text_that_is_no_kubeconfig(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ClusterConfigError, match=told) as caught:
        load_kubeconfig([str(path)])
    assert SECRET not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ClusterConfigError, match="no such file"):
        connect(str(tmp_path / "absent"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ClusterConfigError, match="UTF-8"):
        connect(str(tmp_path / "binary"))
    with pytest.raises(ClusterConfigError, match="directory"):
        connect(str(tmp_path))


def test_nulls_count_as_absent(tmp_path: Path) -> None:
    path = write(
        tmp_path / "config",
        clusters=[{"name": "one", "cluster": {"server": "http://one.example.com", "extensions": None}}],
        users=None,
        contexts=[{"name": "main", "context": {"cluster": "one", "user": None}}],
        preferences={},
        **{"current-context": "main"},
    )
    config = load_kubeconfig([path])
    assert config.credentials.headers() == {}


def test_impersonation(tmp_path: Path) -> None:
    path = whole(tmp_path / "config", token="t", **{"as": "someone", "as-uid": "7"})
    assert load_kubeconfig([path]).headers == (("Impersonate-User", "someone"), ("Impersonate-Uid", "7"))


def test_impersonation_with_groups_and_extras(tmp_path: Path) -> None:
    """Each in a header of its own, as the server reads them: a comma belongs to the name."""
    path = whole(
        tmp_path / "config",
        cluster_fields={"server": "http://api.example.com"},
        **{"as": "someone", "as-groups": ["admins", "a,b"], "as-user-extra": {"Example.com/Team": ["x", "y"]}},
    )
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(answer_once, listener)
        config = replace(load_kubeconfig([path]), server=f"http://127.0.0.1:{listener.getsockname()[1]}")
        Transport(config).send(Request("GET", "/version"), {})
        lines = asked.result(20).decode().splitlines()
    assert [line for line in lines if line.startswith("Impersonate-")] == [
        "Impersonate-User: someone",
        "Impersonate-Group: admins",
        "Impersonate-Group: a,b",
        "Impersonate-Extra-example.com%2Fteam: x",
        "Impersonate-Extra-example.com%2Fteam: y",
    ]


def answer_once(listener: socket.socket) -> bytes:
    """The head of the one request that comes; the answer is empty."""
    connection, _address = listener.accept()
    with connection:
        asked = b""
        while not asked.endswith(b"\r\n\r\n"):
            asked += connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        return asked


def test_certificates_that_are_none(tmp_path: Path) -> None:
    garbage = base64.b64encode(b"no pem").decode()
    with pytest.raises(ClusterConfigError, match="certificate authority") as caught:
        connect(whole(tmp_path / "a", cluster_fields={"certificate-authority-data": garbage}))
    assert "main" in str(caught.value)
    with pytest.raises(ClusterConfigError, match=r"ca\.crt.*no such file"):
        connect(whole(tmp_path / "b", cluster_fields={"certificate-authority": "ca.crt"}))
    with pytest.raises(ClusterConfigError, match="client certificate and key"):
        connect(whole(tmp_path / "c", **{"client-certificate-data": garbage, "client-key-data": garbage}))
