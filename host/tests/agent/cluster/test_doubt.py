"""While the view of the cluster may be old nothing is unmounted, and it is said why; then the agent catches up."""

import contextlib

import pytest

from volumehost.api.objects import Node
from volumehost.testing.api_server import Rule

pytestmark = pytest.mark.root

STATIC = """
apiVersion: v1
kind: Pod
metadata: {name: dns}
spec:
  containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Mi}}]
"""


def test_a_pod_that_goes_while_the_server_is_away_stays_until_that_is_known(node_agent, run_pod, until, server):
    with node_agent() as agent:
        pod = run_pod()
        until(lambda: agent.mounted() == {pod.metadata.uid})
        with server.unreachable():
            server.objects.delete("pods", "web")
            server.compact()
            until(lambda: "what is mounted stays" in agent.note(pod.metadata.uid))
            assert "what is mounted stays" in agent.problems()
            assert agent.connection.problem()
            assert agent.mounted() == {pod.metadata.uid}
        until(lambda: agent.mounted() == set())
        until(lambda: not agent.problems() and not agent.connection.problem())


def test_br54_static_pods_are_mounted_without_the_server_and_the_rest_is_caught_up(
    node_agent, run_pod, until, server, tmp_path
):
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    gone = run_pod("gone")
    stays = run_pod("stays")
    starting = node_agent(static_pods=str(manifests))
    with starting as agent:
        until(lambda: agent.mounted() == {gone.metadata.uid, stays.metadata.uid})
    (manifests / "dns.yaml").write_text(STATIC)
    with server.unreachable():
        server.objects.delete("pods", "gone")
        with starting as agent:
            until(lambda: len(agent.mounted()) == 3)
            assert not agent.sources.complete
            assert "API server" in agent.problems()
            new = server.objects.get("pods", "stays")
            assert new["metadata"]["uid"] in agent.mounted()
    with starting as agent:
        until(lambda: len(agent.mounted()) == 2 and stays.metadata.uid in agent.mounted())


def test_an_agent_that_began_without_the_server_goes_on_by_itself(node_agent, run_pod, until, server):
    pod = run_pod()
    starting = node_agent()
    with contextlib.ExitStack() as stack:
        with server.unreachable():
            agent = stack.enter_context(starting)
            until(agent.connection.problem)
        until(lambda: agent.mounted() == {pod.metadata.uid} and agent.sources.complete)


def test_what_is_forbidden_is_named_and_the_rest_goes_on(node_agent, run_pod, until, server):
    with server.deny(user="agent-n1", resource="pods"), node_agent() as agent:
        until(lambda: "forbidden" in agent.problems() and "pods" in agent.problems())
        assert not agent.sources.complete
        until(lambda: agent.manager.parts.services.attachments.node_uid)
    with server.deny(user="agent-n1", resource="persistentvolumes"), node_agent() as agent:
        pod = run_pod()
        until(lambda: agent.mounted() == {pod.metadata.uid})
        until(lambda: "persistentvolumes" in agent.connection.problem() and "forbidden" in agent.connection.problem())
        assert not agent.problems()


def test_expired_credentials_are_said_to_be_and_nothing_is_unmounted(node_agent, run_pod, until, server):
    with node_agent() as agent:
        pod = run_pod()
        until(lambda: agent.mounted() == {pod.metadata.uid})
        server.revoke("agent-n1")
        server.close_watches()
        until(lambda: "does not accept the credentials" in agent.problems())
        server.objects.delete("pods", "web")
        assert agent.mounted() == {pod.metadata.uid}


def test_a_write_that_is_refused_for_now_is_repeated_when_it_may_be(node_agent, until, server, api):
    server.faults.add(
        Rule(verb="patch", resource="nodes", user="agent-n1", code=429, retry_after=1),
        Rule(verb="patch", resource="nodes", user="agent-n1", code=500),
    )
    with node_agent():
        until(lambda: api.get(Node, "n1").metadata.annotations)
    assert server.requests.count(verb="patch", resource="nodes", user="agent-n1") == 3


def test_without_a_node_object_nothing_unknown_is_unmounted_and_it_is_said(node_agent, run_pod, until, server, api):
    pod = run_pod()
    starting = node_agent()
    with starting as agent:
        until(lambda: agent.mounted() == {pod.metadata.uid})
    server.objects.delete("pods", "web")
    server.objects.delete("nodes", "n1")
    with starting as agent:
        attachments = agent.manager.parts.services.attachments
        until(lambda: "there is no Node object n1" in attachments.problem)
        assert agent.mounted() == {pod.metadata.uid}
        server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        until(lambda: agent.sources.complete)
        # It is another Node, perhaps that of another cluster, which says nothing of this pod.
        assert agent.mounted() == {pod.metadata.uid}
        assert any("another one than before" in note for note in agent.manager.notes())
        agent.manager.unmount_pod(pod.metadata.uid, timeout=20)
        assert agent.mounted() == set()
