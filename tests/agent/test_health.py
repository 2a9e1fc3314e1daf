"""Health and metrics over HTTP, as a probe and a scraper see them."""

import re
import socket
import urllib.error
import urllib.request

import pytest
from agent_world import is_mounted, pod, volume_path

pytestmark = pytest.mark.root


@pytest.fixture
def ask(until):
    """Asks an agent for a path; returns status and text."""

    def get(agent, path):
        until(lambda: re.search(r"health and metrics at (\S+)", agent.log))
        url = re.findall(r"health and metrics at (\S+)", agent.log)[-1]
        try:
            with urllib.request.urlopen(f"{url}{path}", timeout=30) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    return get


def test_health_readiness_and_metrics(running_agent, ask, root, store, until):
    agent = running_agent("--http", "127.0.0.1:0")
    uid = store.create(pod()).metadata.uid
    until(lambda: is_mounted(volume_path(root, uid)))
    assert ask(agent, "/healthz") == (200, "ok")
    until(lambda: ask(agent, "/readyz")[0] == 200)
    status, text = ask(agent, "/readyz?verbose")
    assert status == 200
    assert set(re.findall(r"\[\+\](\S+) ok", text)) == {"volumes", "plugins", "store", "pods", "timers", "reconciler"}
    counted = r'^storage_operation_duration_seconds_count\{.*operation_name="volume_mount".*\} 1\.0$'
    # It is counted when all of it is done, a moment after the mount is there.
    until(lambda: re.search(counted, ask(agent, "/metrics")[1], re.MULTILINE))
    assert ask(agent, "/metrics")[0] == 200
    assert ask(agent, "/nothing")[0] == 404
    assert agent.stop() == 0


def test_not_ready_is_told_with_its_reason(running_agent, ask, manifests, until, make_unreadable_store):
    """While a source of pods cannot be read the agent is alive, and not ready."""
    make_unreadable_store()
    manifests("web.yaml", "{")
    agent = running_agent("--http", "127.0.0.1:0", "--static-pods", manifests.path)
    assert ask(agent, "/livez") == (200, "ok")
    until(lambda: "[-]store failed: " in ask(agent, "/readyz")[1] and "web.yaml" in ask(agent, "/readyz")[1])
    status, text = ask(agent, "/readyz")
    assert status == 503
    assert text.splitlines()[-1] == "readyz check failed"


@pytest.fixture
def make_unreadable_store(root):
    import os
    from pathlib import Path

    def make():
        os.makedirs(root)
        Path(root, "store.sqlite3").mkdir()

    return make


def test_an_address_that_is_taken_is_told_before_anything_is_done(running_agent, root):
    import os

    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        agent = running_agent("--http", address, ready=False)
        assert agent.wait() == 1
    assert f"serving health and metrics on {address}: Address already in use" in agent.log
    assert not os.path.exists(root)
