"""Who may do what: tokens, refusals, and roles where they are enforced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from volumehost.testing.api_server import ApiServer

PODS = "/api/v1/namespaces/default/pods"
RBAC = "rbac.authorization.k8s.io"


class TestWho:
    def test_unknown_token(self, server, connect) -> None:
        reply = connect(server, token="wrong").get(PODS)
        assert (reply.code, reply.body["reason"], reply.body["message"]) == (401, "Unauthorized", "Unauthorized")

    def test_nobody(self, server, connect) -> None:
        reply = connect(server, token="").get(PODS)
        assert reply.code == 403
        assert 'User "system:anonymous" cannot list resource "pods"' in reply.body["message"]
        assert connect(server, token="").get("/readyz").code == 200

    def test_credentials_that_expired(self, server, connect) -> None:
        agent, other = connect(server, "agent"), connect(server, "other")
        server.revoke("agent")
        assert (agent.get(PODS).code, other.get(PODS).code) == (401, 200)
        assert connect(server, "agent").get(PODS).code == 200, "a new token is good"

    def test_who_one_is(self, server, connect) -> None:
        reply = connect(server, "agent").post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        assert reply.body["status"]["userInfo"] == {"username": "agent", "groups": ["system:authenticated"]}


class TestRefusals:
    def test_message_within_a_namespace(self, server, connect) -> None:
        server.deny(user="agent", verb="get", resource="secrets")
        reply = connect(server, "agent").get("/api/v1/namespaces/default/secrets/s")
        assert (reply.code, reply.body["reason"]) == (403, "Forbidden")
        assert reply.body["message"] == (
            'secrets "s" is forbidden: User "agent" cannot get resource "secrets" in API group "" in the namespace '
            '"default"'
        )
        assert reply.body["details"] == {"name": "s", "kind": "secrets"}

    def test_message_of_the_whole_cluster(self, server, http) -> None:
        server.deny(resource="volumeattachments")
        assert http.get("/apis/storage.k8s.io/v1/volumeattachments").body["message"] == (
            'volumeattachments.storage.k8s.io is forbidden: User "admin" cannot list resource "volumeattachments" in '
            'API group "storage.k8s.io" at the cluster scope'
        )

    def test_end_of_a_refusal(self, server, http) -> None:
        with server.deny(resource="pods"):
            assert http.get(PODS).code == 403
            assert http.patch(f"{PODS}/none/status", {}).code == 404, "a subresource is another resource"
        assert http.get(PODS).code == 200


class TestRoles:
    @pytest.fixture
    def cluster(self) -> Iterator[ApiServer]:
        with ApiServer(rbac=True) as made:
            yield made

    @pytest.fixture
    def agent(self, cluster, connect) -> Any:
        return connect(cluster, "agent")

    def grant(self, cluster: ApiServer, *rules: dict[str, Any], within: str = "", **subject: str) -> None:
        kind = "Role" if within else "ClusterRole"
        metadata = {"name": "r", **({"namespace": within} if within else {})}
        about = {"apiVersion": f"{RBAC}/v1", "metadata": metadata}
        cluster.objects.put(about | {"kind": kind, "rules": list(rules)})
        cluster.objects.put(
            about
            | {
                "kind": f"{kind}Binding",
                "roleRef": {"apiGroup": RBAC, "kind": kind, "name": "r"},
                "subjects": [subject or {"kind": "User", "apiGroup": RBAC, "name": "agent"}],
            }
        )

    def test_nothing_is_allowed_by_itself(self, agent) -> None:
        assert agent.get(PODS).code == 403
        assert agent.get("/version").code == agent.get("/apis").code == 200

    def test_masters_may_do_everything(self, cluster, connect) -> None:
        assert connect(cluster).get(PODS).code == 200

    @pytest.mark.parametrize(
        ("rule", "allowed"),
        [
            ({"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}, True),
            ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, True),
            ({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "watch"]}, False),
            ({"apiGroups": ["apps"], "resources": ["pods"], "verbs": ["list"]}, False),
            ({"apiGroups": [""], "resources": ["pods/status"], "verbs": ["list"]}, False),
            ({"apiGroups": [""], "resources": ["pods"], "resourceNames": ["web"], "verbs": ["list"]}, False),
        ],
    )
    def test_rules(self, cluster, agent, rule, allowed) -> None:
        self.grant(cluster, rule)
        assert agent.get(PODS).code == (200 if allowed else 403)

    def test_a_subresource_needs_its_own_rule(self, cluster, agent) -> None:
        self.grant(cluster, {"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]})
        cluster.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        assert agent.get("/api/v1/nodes/n1").code == 200
        assert agent.patch("/api/v1/nodes/n1/status", {}).code == 403

    def test_names(self, cluster, agent) -> None:
        rule = {"apiGroups": [""], "resources": ["nodes"], "resourceNames": ["n1"], "verbs": ["get", "list", "watch"]}
        self.grant(cluster, rule)
        for name in ("n1", "n2"):
            cluster.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        assert agent.get("/api/v1/nodes/n1").code == 200
        assert agent.get("/api/v1/nodes/n2").code == 403
        assert agent.get("/api/v1/nodes").code == 403
        assert agent.get("/api/v1/nodes", fieldSelector="metadata.name=n1").code == 200

    def test_role_counts_in_its_namespace_only(self, cluster, agent) -> None:
        self.grant(cluster, {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}, within="team")
        assert agent.get("/api/v1/namespaces/team/pods").code == 200
        assert agent.get(PODS).code == agent.get("/api/v1/pods").code == 403

    def test_groups_and_service_accounts(self, cluster, connect) -> None:
        rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
        self.grant(cluster, rule, kind="ServiceAccount", name="robot", namespace="team")
        assert connect(cluster, "system:serviceaccount:team:robot").get(PODS).code == 200
        self.grant(cluster, rule, kind="Group", name="system:serviceaccounts:other")
        assert connect(cluster, "system:serviceaccount:team:robot").get(PODS).code == 403
        assert connect(cluster, "system:serviceaccount:other:robot").get(PODS).code == 200

    def test_paths_outside_of_resources(self, cluster, agent) -> None:
        assert agent.get("/metrics").code == 403
        self.grant(cluster, {"nonResourceURLs": ["/metr*"], "verbs": ["get"]})
        assert agent.get("/metrics").code == 404

    def test_reviews(self, cluster, agent, connect) -> None:
        self.grant(cluster, {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]})

        def may(verb: str) -> bool:
            spec = {"resourceAttributes": {"verb": verb, "resource": "pods", "namespace": "default"}}
            path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
            return agent.post(path, {"spec": spec}).body["status"]["allowed"]

        assert (may("list"), may("delete")) == (True, False)
        spec = {"user": "agent", "resourceAttributes": {"verb": "list", "resource": "pods"}}
        reply = connect(cluster).post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
        assert reply.body["status"]["allowed"] is True
