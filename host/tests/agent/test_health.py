"""Which check fails when, and in which words."""

from types import SimpleNamespace

import pytest

from volumehost.agent.health import alive, ready, routes
from volumehost.agent.heart import BEAT_SECONDS, MISSED_SECONDS, PASS_SECONDS, Heart
from volumehost.daemon.http import answer


class Parts:
    """The parts of a manager that a heart looks at, with a clock that the test sets."""

    def __init__(self):
        self.now, self.due = 100.0, []
        self.reconciler = SimpleNamespace(at_work_since=None)
        self.timers = SimpleNamespace(call_later=lambda seconds, function: self.due.append((seconds, function)))


@pytest.fixture
def parts():
    return Parts()


@pytest.fixture
def heart(parts):
    made = Heart(parts, lambda: parts.now)
    made.start()
    return made


@pytest.fixture
def agent(heart):
    plugins = SimpleNamespace(loaded_plugins=lambda: [object()])
    return SimpleNamespace(
        heart=heart,
        at_work=SimpleNamespace(plugins=plugins),
        sources=SimpleNamespace(problems=list, complete=True),
        phase="it is at work",
        store_problem=lambda: "",
        settings=SimpleNamespace(cluster=False),
        metrics=None,
    )


def test_timers_that_come_round_beat(heart, parts):
    for _ in range(5):
        parts.now += BEAT_SECONDS
        ((_, beat),) = parts.due
        parts.due.clear()
        beat()
        assert heart.beats
    parts.now += MISSED_SECONDS + 1
    assert "31 s" in heart.timer_problem()
    assert not heart.beats


def test_a_pass_that_does_not_end_is_told(heart, parts):
    parts.reconciler.at_work_since = parts.now
    assert heart.beats
    parts.now += PASS_SECONDS + 1
    assert heart.reconciler_problem() == "the reconciler has been at one pass for 61 s"


def test_all_is_well(agent):
    assert set(alive(agent).values()) == set(ready(agent).values()) == {""}


@pytest.mark.parametrize(
    ("change", "check", "words"),
    [
        ({"at_work": None, "phase": "it waits for process 7"}, "volumes", "it waits for process 7"),
        ({"at_work": SimpleNamespace(plugins=SimpleNamespace(loaded_plugins=list))}, "plugins", "no volume plugin"),
        ({"store_problem": lambda: "is broken"}, "store", "is broken"),
        ({"sources": None}, "pods", "not begun"),
        ({"sources": SimpleNamespace(problems=lambda: ["a: x", "b: y"], complete=False)}, "pods", "a: x; b: y"),
        ({"sources": SimpleNamespace(problems=list, complete=False)}, "pods", "for the first time"),
    ],
)
def test_not_ready(agent, change, check, words):
    vars(agent).update(change)
    assert words in ready(agent)[check]
    found = answer(routes(agent), "/readyz")
    assert found.status == 503
    assert f"[-]{check} failed: " in found.body.decode()
    assert answer(routes(agent), "/healthz").body == b"ok"


def test_each_check_is_named_when_asked(agent, parts):
    assert answer(routes(agent), "/livez?verbose").body.decode() == (
        "[+]timers ok\n[+]reconciler ok\nhealthz check passed\n"
    )
    parts.now += 1000
    found = answer(routes(agent), "/healthz")
    assert (found.status, found.body.decode().splitlines()[-1]) == (503, "healthz check failed")


def test_without_a_place_to_serve_them_there_are_no_metrics(agent):
    assert answer(routes(agent), "/metrics").status == 404


def test_in_a_cluster_the_node_and_its_csi_node_are_checks_of_their_own(agent):
    """CSI-NIM-01: the reason that a kubelet would put on the Node."""
    agent.settings.cluster = True
    attachments = SimpleNamespace(problem="there is no Node object n1")
    agent.at_work.parts = SimpleNamespace(services=SimpleNamespace(attachments=attachments))
    agent.at_work.host = SimpleNamespace(kubelet_error=RuntimeError("it was not tried yet"))
    checks = ready(agent)
    assert checks["node"] == "there is no Node object n1"
    assert checks["csinode"] == "CSINode is not yet initialized: it was not tried yet"
    assert checks["api-server"] == ""
    assert "store" not in checks
    agent.at_work.host.kubelet_error, attachments.problem = None, ""
    assert not any(ready(agent).values())
    agent.at_work = None
    assert ready(agent)["csinode"] == ready(agent)["node"] == "it is at work"
