"""A cluster's pod stays mounted until it is certain that it has ended (BR-51), and gets no finalizer of ours."""

import pytest

from volumehost.api.objects import Pod

pytestmark = pytest.mark.root

STARTED = "2026-01-01T00:00:00Z"


def running(name="c"):
    return {"name": name, "state": {"running": {"startedAt": STARTED}}}


def ended(name="c"):
    return {"name": name, "state": {"terminated": {"exitCode": 0, "startedAt": STARTED, "finishedAt": STARTED}}}


@pytest.fixture
def agent(node_agent):
    with node_agent() as made:
        yield made


@pytest.fixture
def web(run_pod, agent, until):
    pod = run_pod()
    until(lambda: agent.mounted() == {pod.metadata.uid})
    return pod


@pytest.fixture
def set_status(server):
    return lambda **status: server.objects.patch("pods", "web", {"status": status})


def seen(agent, condition):
    """Whether what the agent knows of the pod meets the condition."""
    return any(condition(entry.pod) for entry in list(agent.sources._entries.values()))


def test_only_pods_of_the_node_are_mounted_and_none_gets_a_finalizer(agent, web, run_pod, until, api, server):
    run_pod("elsewhere", node="n2")
    other = run_pod("other")
    until(lambda: agent.mounted() == {web.metadata.uid, other.metadata.uid})
    assert api.get(Pod, "web", "default").metadata.finalizers == []
    assert server.requests.count(verb="patch", resource="pods") == 0
    lists = server.requests.all(verb="list", resource="pods", user="agent-n1")
    assert {request.query["fieldSelector"] for request in lists} == {"spec.nodeName=n1"}


def test_a_deleted_pod_stays_until_its_containers_have_ended(agent, web, until, api, set_status):
    set_status(phase="Running", containerStatuses=[running()])
    api.delete(Pod, "web", "default")
    until(lambda: seen(agent, lambda pod: pod.metadata.deletion_timestamp is not None))
    assert agent.mounted() == {web.metadata.uid}
    assert "volumehost.io/workload-ended=true" in agent.manager.pod_status(api.get(Pod, "web", "default")).note
    set_status(containerStatuses=[ended()])
    until(lambda: agent.mounted() == set())


def test_a_phase_is_no_word_while_a_container_is_told_to_run(agent, web, until, set_status):
    """The pod garbage collector sets the phase of pods whose node does not answer."""
    set_status(phase="Failed", containerStatuses=[running()])
    until(lambda: seen(agent, lambda pod: pod.status.phase == "Failed"))
    assert agent.mounted() == {web.metadata.uid}
    set_status(containerStatuses=[ended()])
    until(lambda: agent.mounted() == set())


def test_whoever_runs_the_containers_may_say_so(agent, web, until, api):
    api.patch(Pod, "web", {"metadata": {"annotations": {"volumehost.io/workload-ended": "true"}}}, "default")
    until(lambda: agent.mounted() == set())
    assert api.get(Pod, "web", "default").metadata.deletion_timestamp is None


def test_a_pod_deleted_by_force_is_taken_away_by_what_is_recorded(agent, web, until, server):
    server.objects.delete("pods", "web")
    until(lambda: agent.mounted() == set())
    assert server.requests.count(verb="get", resource="pods", user="agent-n1") == 0


def test_a_command_on_the_node_is_no_word_on_it(agent, web):
    with pytest.raises(Exception, match="it is a pod of the cluster"):
        agent.manager.unmount_pod("web", timeout=1)
    assert agent.mounted() == {web.metadata.uid}


def test_a_pod_that_moves_is_unmounted_here_and_mounted_there(agent, web, until, run_pod, server, node_agent):
    """Two agents on one API server, with their own nodes and root directories."""
    with node_agent("n2") as other:
        server.objects.delete("pods", "web")
        moved = run_pod("web", node="n2")
        until(lambda: other.mounted() == {moved.metadata.uid} and agent.mounted() == set())
