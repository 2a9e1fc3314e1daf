"""Tokens that are rotated, credential plugins that expire, and the configuration of a pod."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from volumehost.api.kubernetes.credentials import TokenFile, bearer
from volumehost.api.kubernetes.exec_plugin import ExecCredentials
from volumehost.api.kubernetes.in_cluster import in_cluster_config
from volumehost.api.kubernetes.kubeconfig_file import Cluster, EnvVar, ExecConfig
from volumehost.errors import ClusterConfigError

SECRET = "hunter2-do-not-show"
VERSION = "client.authentication.k8s.io/v1"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", Clock()
    path.write_text("first\n")
    tokens = TokenFile(str(path), "a test", clock)
    first = tokens.headers()
    path.write_text("second")
    assert tokens.headers() == first == {"Authorization": "Bearer first"}
    clock.now += 10
    assert tokens.headers() == {"Authorization": "Bearer second"}


def test_a_refused_token_is_looked_for_in_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first")
    tokens = TokenFile(str(path), "a test", Clock())
    refused = tokens.headers()
    assert not tokens.refresh(refused)
    path.write_text("second")
    assert tokens.refresh(refused)
    assert tokens.headers() == {"Authorization": "Bearer second"}


def test_a_token_file_that_is_gone_for_a_moment(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", Clock()
    path.write_text("first")
    tokens = TokenFile(str(path), "a test", clock)
    first = tokens.headers()
    path.unlink()
    clock.now += 60
    assert tokens.headers() == first
    assert not tokens.refresh(first)


@pytest.mark.parametrize("token", ["", " ", "two words", "line\nbreak", "ünicode", "\x00"])
def test_no_token_can_break_a_header(token: str) -> None:
    with pytest.raises(ClusterConfigError):
        bearer(token, "a test")


# --- plugins ---


def plugin(tmp_path: Path, answer: str, *, name: str = "plugin", **fields: Any) -> ExecConfig:
    """A program that counts its runs and prints the answer."""
    path = tmp_path / name
    path.write_text(f'#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" >> {tmp_path}/runs\ncat {tmp_path}/answer\n{answer}\n')
    path.chmod(0o755)
    return ExecConfig(command=f"./{name}", api_version=VERSION, **fields)


def says(tmp_path: Path, **status: Any) -> None:
    answer = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
    (tmp_path / "answer").write_text(json.dumps(answer))


def credentials(tmp_path: Path, config: ExecConfig, **clocks: Any) -> ExecCredentials:
    return ExecCredentials(config, Cluster(server="https://one.example.com"), f"{tmp_path}/config", "a test", **clocks)


def runs(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "runs").read_text().splitlines()]


def test_a_plugin_runs_once_and_again_when_its_token_expires(tmp_path: Path) -> None:
    says(tmp_path, token="first", expirationTimestamp="2026-01-01T00:10:00Z")
    clock, wall = Clock(), Clock()
    wall.now = 1767225600.0  # 2026-01-01T00:00:00Z
    found = credentials(tmp_path, plugin(tmp_path, ""), clock=clock, wall_clock=wall)
    assert found.headers() == {"Authorization": "Bearer first"}
    says(tmp_path, token="second")
    clock.now += 580
    assert found.headers() == {"Authorization": "Bearer first"}
    clock.now += 20
    assert found.headers() == {"Authorization": "Bearer second"}
    assert len(runs(tmp_path)) == 2


def test_a_plugin_runs_again_when_the_server_refuses(tmp_path: Path) -> None:
    says(tmp_path, token="first")
    found = credentials(tmp_path, plugin(tmp_path, ""))
    refused = found.headers()
    says(tmp_path, token="second")
    assert found.refresh(refused)
    # Another thread, refused with the same token, takes the new one.
    assert found.refresh(refused)
    assert found.headers() == {"Authorization": "Bearer second"}
    assert len(runs(tmp_path)) == 2


def test_a_clock_that_is_wrong_does_not_run_the_plugin_for_each_request(tmp_path: Path) -> None:
    says(tmp_path, token="first", expirationTimestamp="2020-01-01T00:00:00Z")
    found = credentials(tmp_path, plugin(tmp_path, ""))
    for _ in range(3):
        found.headers()
    assert len(runs(tmp_path)) == 1


def test_a_plugin_is_told_what_it_is_for(tmp_path: Path) -> None:
    says(tmp_path, token="t")
    config = plugin(tmp_path, "", provide_cluster_info=True, env=[EnvVar("COLOUR", "blue")], args=["x"])
    credentials(tmp_path, config).headers()
    (told,) = runs(tmp_path)
    assert told == {
        "apiVersion": VERSION,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://one.example.com"}},
    }


def test_a_plugin_is_told_the_authority_of_a_file_too(tmp_path: Path) -> None:
    says(tmp_path, token="t")
    (tmp_path / "clusters").mkdir()
    (tmp_path / "clusters" / "ca.crt").write_bytes(b"authority")
    cluster = Cluster(server="https://one.example.com", certificate_authority="ca.crt")
    config = plugin(tmp_path, "", provide_cluster_info=True)
    found = ExecCredentials(config, cluster, f"{tmp_path}/config", "a test", cluster_file=f"{tmp_path}/clusters/config")
    found.headers()
    (told,) = runs(tmp_path)
    assert told["spec"]["cluster"]["certificate-authority-data"] == base64.b64encode(b"authority").decode()


def test_a_plugin_of_certificates_runs_once_for_all_that_were_refused(tmp_path: Path) -> None:
    says(tmp_path, clientCertificateData="certificate", clientKeyData=SECRET)
    found = credentials(tmp_path, plugin(tmp_path, ""))
    refused = found.headers()
    for _thread in range(3):
        assert found.refresh(refused)
    assert len(runs(tmp_path)) == 2


def test_a_plugin_at_a_terminal_can_be_answered(tmp_path: Path) -> None:
    """What it asks is seen by whom it asks."""
    says(tmp_path, token="t")
    path = tmp_path / "asking"
    path.write_text(
        f'#!/bin/sh\necho "the code?" >&2\nread code\necho "$code" > {tmp_path}/code\ncat {tmp_path}/answer\n'
    )
    path.chmod(0o755)
    program = (
        "from volumehost.api.kubernetes.exec_plugin import ExecCredentials\n"
        "from volumehost.api.kubernetes.kubeconfig_file import Cluster, ExecConfig\n"
        f"config = ExecConfig(command='./asking', api_version={VERSION!r}, interactive_mode='IfAvailable')\n"
        f"assert ExecCredentials(config, Cluster(), {str(tmp_path / 'config')!r}, 'a test').headers()\n"
    )
    ours, theirs = os.openpty()
    try:
        os.write(ours, b"1234\n")
        done = subprocess.run(
            [sys.executable, "-c", program], stdin=theirs, capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert (done.returncode, done.stderr) == (0, "the code?\n")
    assert (tmp_path / "code").read_text() == "1234\n"


def test_a_plugin_may_give_a_certificate(tmp_path: Path) -> None:
    says(tmp_path, clientCertificateData="certificate", clientKeyData=SECRET)
    found = credentials(tmp_path, plugin(tmp_path, ""))
    certificate = found.certificate()
    assert certificate is not None
    assert (certificate[0].data, certificate[1].data) == (b"certificate", SECRET.encode())
    assert found.headers() == {}
    assert SECRET not in repr(certificate)


@pytest.mark.parametrize(
    ("status", "answer", "told"),
    [
        ({"token": SECRET}, "echo it is broken >&2; exit 3", "ended with 3: it is broken"),
        ({"token": SECRET}, f"echo {SECRET * 3} >&2; exit 3", r"ended with 3: \.\.\."),
        ({"token": SECRET}, "echo more", "no ExecCredential"),
        ({}, "", "neither a token nor a certificate"),
        ({"clientCertificateData": "c"}, "", "without a key"),
        ({"token": SECRET, "expirationTimestamp": "soon"}, "", "is no time"),
    ],
)
def test_what_a_plugin_does_wrong_is_told(tmp_path: Path, status: dict[str, str], answer: str, told: str) -> None:
    says(tmp_path, **status)
    with pytest.raises(ClusterConfigError, match=told) as caught:
        credentials(tmp_path, plugin(tmp_path, answer)).headers()
    assert "'plugin' of a test" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_plugin_that_is_not_installed(tmp_path: Path) -> None:
    config = ExecConfig(command="acme-login-absent", api_version=VERSION, install_hint="pip install acme-login")
    with pytest.raises(ClusterConfigError, match="pip install acme-login"):
        credentials(tmp_path, config).headers()


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (ExecConfig(api_version=VERSION), "no command"),
        (ExecConfig(command="x", api_version="client.authentication.k8s.io/v1alpha1"), "v1alpha1"),
        (ExecConfig(command="x", api_version=VERSION, interactive_mode="Always"), "no terminal"),
    ],
)
def test_plugins_that_cannot_be_used(tmp_path: Path, config: ExecConfig, told: str) -> None:
    with pytest.raises(ClusterConfigError, match=told):
        credentials(tmp_path, config)


# --- in a pod ---

ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_the_configuration_of_a_pod(tmp_path: Path) -> None:
    for name, content in (("token", f"{SECRET}\n"), ("ca.crt", "pem"), ("namespace", "apps\n")):
        (tmp_path / name).write_text(content)
    config = in_cluster_config(ENVIRONMENT, str(tmp_path))
    assert (config.server, config.namespace) == ("https://10.0.0.1:443", "apps")
    assert config.authority.path == str(tmp_path / "ca.crt")
    assert config.credentials.headers() == {"Authorization": f"Bearer {SECRET}"}
    six = in_cluster_config(ENVIRONMENT | {"KUBERNETES_SERVICE_HOST": "fd00::1"}, str(tmp_path))
    assert six.server == "https://[fd00::1]:443"


def test_a_pod_without_a_token(tmp_path: Path) -> None:
    with pytest.raises(ClusterConfigError, match="automountServiceAccountToken"):
        in_cluster_config(ENVIRONMENT, str(tmp_path))
    for name in ("token", "ca.crt"):
        (tmp_path / name).write_text("")
    with pytest.raises(ClusterConfigError, match="empty"):
        in_cluster_config(ENVIRONMENT, str(tmp_path))
