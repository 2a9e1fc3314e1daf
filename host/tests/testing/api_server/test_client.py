"""With the ``kubernetes`` package as the client: reading, errors, watches, TLS, and the server as a process."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from volumehost.testing.api_server import ApiServer

kubernetes = pytest.importorskip("kubernetes")


def core(path: str) -> Any:
    return kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(path))


@pytest.fixture
def api(server, tmp_path) -> Iterator[Any]:
    made = core(server.kubeconfig(tmp_path / "config"))
    yield made
    made.api_client.rest_client.pool_manager.clear()
    made.api_client.close()


def test_life_of_a_pod(api, pod) -> None:
    made = api.create_namespaced_pod("default", pod)
    assert made.spec.volumes[0].empty_dir is not None
    api.patch_namespaced_pod("web", "default", {"metadata": {"labels": {"a": "b"}}})
    running = api.patch_namespaced_pod_status("web", "default", {"status": {"phase": "Running"}})
    assert (running.status.phase, running.metadata.labels) == ("Running", {"a": "b"})
    found = api.list_pod_for_all_namespaces(label_selector="a=b", field_selector="status.phase=Running")
    assert [item.metadata.uid for item in found.items] == [made.metadata.uid]
    assert api.delete_namespaced_pod("web", "default").metadata.name == "web"


def test_errors_are_its_exceptions(api, pod) -> None:
    pod["metadata"]["name"] = "A B"
    with pytest.raises(kubernetes.client.ApiException) as caught:
        api.create_namespaced_pod("default", pod)
    assert (caught.value.status, '"reason":"Invalid"' in caught.value.body) == (422, True)


def test_watch(server, api, config_map) -> None:
    watch = kubernetes.watch.Watch()
    server.objects.put(config_map)
    seen = []
    for event in watch.stream(api.list_namespaced_config_map, "default", timeout_seconds=5):
        seen.append((event["type"], event["object"].metadata.name))
        watch.stop()
    assert seen == [("ADDED", "settings")]


def test_token_of_a_service_account(server, api) -> None:
    server.objects.put({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
    body = kubernetes.client.AuthenticationV1TokenRequest(
        spec=kubernetes.client.V1TokenRequestSpec(audiences=["vault"], expiration_seconds=600)
    )
    assert api.create_namespaced_service_account_token("robot", "default", body).status.token.count(".") == 2


@pytest.mark.parametrize("certificate", [False, True])
def test_tls(tmp_path, certificate) -> None:
    with ApiServer(tls=True) as server:
        assert server.url.startswith("https://")
        path = server.kubeconfig(tmp_path / "config", user="agent", groups=["team"], certificate=certificate)
        api = core(path)
        reviews = kubernetes.client.AuthenticationV1Api(api.api_client)
        user = reviews.create_self_subject_review({"metadata": {}}).status.user_info
        api.api_client.rest_client.pool_manager.clear()
        assert (user.username, user.groups) == ("agent", ["team", "system:authenticated"])


def test_certificates_need_tls(server, tmp_path) -> None:
    with pytest.raises(ValueError, match="tls=True"):
        server.kubeconfig(tmp_path / "config", certificate=True)


def test_as_a_process(tmp_path) -> None:
    objects = tmp_path / "objects.yaml"
    objects.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n")
    path = str(tmp_path / "config")
    command = [
        sys.executable,
        "-m",
        "volumehost.testing.api_server",
        "--kubeconfig-out",
        path,
        "--objects",
        str(objects),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("http://127.0.0.1:")
            api = core(path)
            assert api.read_node("n1").metadata.name == "n1"
            api.api_client.rest_client.pool_manager.clear()
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
