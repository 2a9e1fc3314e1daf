"""Whatever the server answers, or does not, becomes an error that says what to do, and costs no more than it must."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from volumehost.api.kinds import kind_of
from volumehost.api.kubernetes import KubernetesClient, connect
from volumehost.api.kubernetes.asking import Asked
from volumehost.api.kubernetes.failures import error_of
from volumehost.api.objects import (
    ConfigMap,
    CSINode,
    Node,
    ObjectMeta,
    Pod,
    Secret,
    ServiceAccount,
    TokenRequest,
    VolumeSnapshot,
)
from volumehost.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidObjectError,
    KindNotServedError,
    NotAvailableOnHostError,
    ObjectNotFoundError,
    ServerFailedError,
    ServerTimeoutError,
    ServerUnreachableError,
    StoreError,
    TooManyRequestsError,
    UnauthorizedError,
)
from volumehost.testing.api_server import ApiServer, Rule

SECRET = "hunter2-do-not-show"


def test_forbidden_names_verb_resource_and_user(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.deny(verb="patch", resource="nodes/status")
    with pytest.raises(ForbiddenError, match="volumehost rbac") as caught:
        kubernetes_client.patch_status(Node, "n1", {"status": {}})
    error = caught.value
    assert (error.verb, error.resource, error.user) == ("patch", "nodes/status", "admin")
    assert kubernetes_client.server in str(error)


def test_forbidden_by_a_quota_is_no_missing_permission(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.faults.add(Rule(verb="create", code=403, message="configmaps is forbidden: exceeded quota: q"))
    with pytest.raises(ForbiddenError, match="exceeded quota") as caught:
        kubernetes_client.create(ConfigMap(metadata=ObjectMeta(name="c")))
    assert "rbac" not in str(caught.value)


def test_unauthorized_without_other_credentials_is_asked_once(
    server: ApiServer, kubernetes_client: KubernetesClient
) -> None:
    server.faults.add(Rule(code=401, times=None))
    with pytest.raises(UnauthorizedError, match="credentials"):
        kubernetes_client.get(Node, "n1")
    assert server.requests.count(verb="get", resource="nodes") == 1


def test_expired_credentials_are_fetched_anew_once(server: ApiServer, tmp_path: Path) -> None:
    """Also when the call is a watch, whose answer goes on."""
    token = tmp_path / "token"
    token.write_text(server.token("old", ["system:masters"]))
    path = Path(server.kubeconfig(tmp_path / "rotating"))
    document = msgspec.yaml.decode(path.read_bytes())
    document["users"][0]["user"] = {"tokenFile": "token"}
    path.write_bytes(msgspec.yaml.encode(document))
    with connect(str(path)) as client:
        version = client.list(Node).resource_version
        server.revoke("old")
        token.write_text(server.token("new", ["system:masters"]))
        server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        assert next(client.watch(Node, resource_version=version, timeout=20)).object.metadata.name == "n1"
        assert client.get(Node, "n1").metadata.name == "n1"
        server.revoke("new")
        with pytest.raises(UnauthorizedError):
            client.get(Node, "n1")


def test_a_proxy_is_asked_in_the_servers_stead(server: ApiServer, tmp_path: Path) -> None:
    path = Path(server.kubeconfig(tmp_path / "proxied"))
    document = msgspec.yaml.decode(path.read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as proxy, ThreadPoolExecutor(1) as pool:

        def serve() -> bytes:
            connection, _address = proxy.accept()
            with connection:
                asked = b""
                while not asked.endswith(b"\r\n\r\n"):
                    asked += connection.recv(4096)
                body = b'{"kind":"Node","metadata":{"name":"n1"}}'
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                return asked

        document["clusters"][0]["cluster"]["server"] = "http://api.example.com"
        document["clusters"][0]["cluster"]["proxy-url"] = f"http://me:{SECRET}@127.0.0.1:{proxy.getsockname()[1]}"
        path.write_bytes(msgspec.yaml.encode(document))
        asked = pool.submit(serve)
        with connect(str(path)) as client:
            assert client.get(Node, "n1").metadata.name == "n1"
        head = asked.result(20)
    assert head.startswith(b"GET http://api.example.com/api/v1/nodes/n1 HTTP/1.1")
    assert b"proxy-authorization: basic " in head.lower()
    with connect(str(path)) as client, pytest.raises(ServerUnreachableError) as caught:
        client.get(Node, "n1")
    assert SECRET not in str(caught.value)


def test_a_server_that_asks_for_patience(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    server.faults.add(Rule(verb="get", code=503, retry_after=1))
    assert kubernetes_client.get(Node, "n1").metadata.name == "n1"
    first, second = server.requests.all(verb="get", resource="nodes")
    assert second.at - first.at >= 0.99


@pytest.mark.parametrize(("code", "reason"), [(500, "ServerTimeout"), (504, "Timeout")])
def test_a_database_that_does_not_answer(
    server: ApiServer, kubernetes_client: KubernetesClient, code: int, reason: str
) -> None:
    """What reads is asked again when the server says when; of a write nobody knows whether it was done."""
    server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    server.faults.add(Rule(code=code, reason=reason, retry_after=1, message="please try again", times=2))
    with pytest.raises(ServerTimeoutError, match="please try again") as caught:
        kubernetes_client.patch(Node, "n1", {"metadata": {"labels": {"a": "b"}}})
    assert caught.value.retry_after == 1
    assert kubernetes_client.get(Node, "n1").metadata.name == "n1"
    assert (server.requests.count(verb="patch"), server.requests.count(verb="get")) == (1, 2)


def test_a_write_is_repeated_only_when_it_was_not_taken(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    """A proxy says 503 also when the connection broke after the write had arrived."""
    server.faults.add(Rule(verb="create", code=503, when="after"))
    with pytest.raises(TooManyRequestsError):
        kubernetes_client.create(ConfigMap(metadata=ObjectMeta(generate_name="c-")))
    assert server.requests.count(verb="create") == 1
    (made,) = kubernetes_client.list(ConfigMap).items
    server.faults.add(Rule(verb="create", code=429))
    assert kubernetes_client.create(ConfigMap(metadata=ObjectMeta(generate_name="c-"))) != made
    assert server.requests.count(verb="create") == 3


def test_the_reason_says_gone_whatever_the_code() -> None:
    status = {"kind": "Status", "status": "Failure", "reason": "Expired", "message": "too old resource version"}
    error = error_of(Asked("watch", kind_of(Node)), "a server", 0, msgspec.json.encode(status))
    assert isinstance(error, GoneError)


def test_patience_has_an_end(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.faults.add(Rule(code=429, retry_after=3600, times=None))
    with pytest.raises(TooManyRequestsError) as caught:
        kubernetes_client.get(Node, "n1")
    assert caught.value.retry_after == 3600
    assert server.requests.count() == 1


def test_waiting_for_patience_ends_when_the_client_is_closed(
    server: ApiServer, kubernetes_client: KubernetesClient
) -> None:
    server.faults.add(Rule(code=429, retry_after=5, times=None))
    kubernetes_client.close()
    with pytest.raises(StoreError, match="closed"):
        kubernetes_client.get(Node, "n1")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (500, ServerFailedError),
        (504, ServerTimeoutError),
        (418, ServerFailedError),
        (410, ApiError),
        (409, ConflictError),
    ],
)
def test_other_answers(server: ApiServer, kubernetes_client: KubernetesClient, code: int, kind: type[ApiError]) -> None:
    server.faults.add(Rule(code=code, reason="Odd", message="it is odd"))
    with pytest.raises(kind, match="it is odd"):
        kubernetes_client.get(Node, "n1")
    assert server.requests.count() == 1


def test_a_broken_connection_is_asked_again_for_reads_only(
    server: ApiServer, kubernetes_client: KubernetesClient
) -> None:
    server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    server.faults.add(Rule(verb="get", drop=True), Rule(verb="patch", drop=True))
    assert kubernetes_client.get(Node, "n1").metadata.name == "n1"
    with pytest.raises(ServerUnreachableError) as caught:
        kubernetes_client.patch(Node, "n1", {"metadata": {"labels": {"a": "b"}}})
    assert "patch node n1" in str(caught.value)
    assert server.requests.count(verb="patch") == 1


def test_a_lost_answer_of_a_write_is_no_success(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.faults.add(Rule(verb="create", drop=True, when="after"))
    with pytest.raises(ServerUnreachableError):
        kubernetes_client.create(ConfigMap(metadata=ObjectMeta(name="c")))
    assert kubernetes_client.get(ConfigMap, "c").metadata.name == "c"


def test_a_server_that_never_answers(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    kubernetes_client.caller.transport.read_seconds = 0.2
    server.faults.add(Rule(hang=True, times=None))
    with pytest.raises(ServerTimeoutError, match="in time"):
        kubernetes_client.get(Node, "n1")


def test_an_unreachable_server_is_named(
    server: ApiServer, kubernetes_client: KubernetesClient, kubeconfig: str
) -> None:
    with server.unreachable(), pytest.raises(ServerUnreachableError, match="refused") as caught:
        kubernetes_client.get(Node, "n1")
    assert server.url in str(caught.value)
    assert kubeconfig in str(caught.value)
    # And it works again with the same client.
    assert kubernetes_client.list(Node).items == []


@pytest.mark.parametrize(
    ("body", "content_type", "told"),
    [
        (b"<html>welcome</html>", "text/html", "not JSON"),
        (b"[]", "application/json", "no object"),
        (b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"n1"}}', "application/json", "a Pod"),
        (b'{"kind":"Node","spec":{"taints":"none"}}', "application/json", r"spec\.taints"),
    ],
)
def test_something_in_between_that_answers_in_its_stead(
    server: ApiServer, kubernetes_client: KubernetesClient, body: bytes, content_type: str, told: str
) -> None:
    server.faults.add(Rule(body=body, content_type=content_type))
    with pytest.raises(ServerFailedError, match=told):
        kubernetes_client.get(Node, "n1")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{}", "without a kind"),
        (b'{"kind":"NodeList","items":[]}', "without a resource version"),
        (b'{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]}', "PodList"),
        (b'{"kind":"NodeList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":5}}]}', "name"),
        (b"null", "no list|not JSON"),
    ],
)
def test_what_is_no_list_is_not_a_list_of_nothing(
    server: ApiServer, kubernetes_client: KubernetesClient, body: bytes, told: str
) -> None:
    server.faults.add(Rule(body=body, content_type="application/json"))
    with pytest.raises(ServerFailedError, match=told):
        kubernetes_client.list(Node)


@pytest.mark.parametrize("body", [b"404 page not found", b'{"kind":"Status","status":"Failure","reason":"NotFound"}'])
def test_a_404_that_names_no_object_does_not_say_that_it_is_gone(
    server: ApiServer, kubernetes_client: KubernetesClient, body: bytes
) -> None:
    server.faults.add(Rule(body=body, content_type="text/plain", code=404, times=None))
    with pytest.raises(KindNotServedError, match=r"volumesnapshots in snapshot\.storage\.k8s\.io/v1"):
        kubernetes_client.get(VolumeSnapshot, "s1")
    with pytest.raises(KindNotServedError):
        kubernetes_client.list(Pod)


def test_a_namespace_that_is_not_there(kubernetes_client: KubernetesClient) -> None:
    with pytest.raises(ObjectNotFoundError, match="namespaces gone"):
        kubernetes_client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="gone")))


@pytest.mark.parametrize("name", ["../nodes/n1", "a/b", "..", ".", "%2e%2e", "a%2fb"])
def test_names_cannot_leave_their_place_in_the_path(
    server: ApiServer, kubernetes_client: KubernetesClient, name: str
) -> None:
    for call in (kubernetes_client.get, kubernetes_client.delete):
        with pytest.raises(ObjectNotFoundError):
            call(Pod, name)
    with pytest.raises(ObjectNotFoundError):
        kubernetes_client.list(Pod, name)
    assert server.requests.count() == 0


def test_no_name_never_means_all_objects(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    calls: list[Callable[[], object]] = [
        lambda: kubernetes_client.get(Pod, ""),
        lambda: kubernetes_client.delete(Pod, ""),
        lambda: kubernetes_client.patch(Pod, "", {}),
        lambda: kubernetes_client.replace(Pod()),
    ]
    for call in calls:
        with pytest.raises(InvalidObjectError, match=r"metadata\.name"):
            call()
    assert server.requests.count() == 0


def test_a_secret_is_in_no_error(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    secret = Secret(metadata=ObjectMeta(name="s"), string_data={"password": SECRET})
    for rule in (Rule(code=500), Rule(drop=True), Rule(code=422)):
        server.faults.add(rule)
        with pytest.raises(ApiError) as caught:
            kubernetes_client.create(secret)
        assert SECRET not in str(caught.value)
        assert SECRET not in repr(caught.value)


def test_a_token_is_in_no_error(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    token = server.token()
    assert token not in repr(kubernetes_client.caller.transport.config)
    with server.unreachable(), pytest.raises(ServerUnreachableError) as caught:
        kubernetes_client.list(Node)
    assert token not in str(caught.value)


def test_status_is_only_for_kinds_that_have_one(kubernetes_client: KubernetesClient) -> None:
    with pytest.raises(ApiError, match="no status of its own"):
        kubernetes_client.replace_status(ConfigMap(metadata=ObjectMeta(name="c")))
    with pytest.raises(ApiError, match="no status of its own"):
        kubernetes_client.patch_status(CSINode, "n1", {})


def test_a_status_patch_leaves_the_rest_alone(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    kubernetes_client.patch_status(Node, "n1", {"status": {"volumesInUse": ["v"]}, "spec": {"unschedulable": True}})
    found = server.objects.get("nodes", "n1")
    assert found["status"]["volumesInUse"] == ["v"]
    assert "unschedulable" not in found.get("spec", {})


def test_tokens(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.objects.put({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "driver"}})
    request = TokenRequest()
    request.spec.audiences = ["example.com"]
    answered = kubernetes_client.request_token("default", "driver", request)
    assert answered.status.token
    assert answered.spec.audiences == ["example.com"]
    assert server.requests.count(verb="create", resource="serviceaccounts/token") == 1
    with pytest.raises(ObjectNotFoundError, match="gone"):
        kubernetes_client.request_token("default", "gone", request)
    with pytest.raises(NotAvailableOnHostError, match="request_token"):
        kubernetes_client.create(request)
    assert kubernetes_client.list(ServiceAccount).items[0].metadata.name == "driver"
