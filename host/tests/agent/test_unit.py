"""The systemd unit: what it must say, and that systemd understands it."""

import shutil
import subprocess

import pytest

from volumehost.agent.settings import AgentSettings
from volumehost.agent.unit import unit_text


def _values(text, name):
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{name}=")]


def test_br68_only_the_agent_itself_is_ended():
    text = unit_text(AgentSettings("/var/lib/volumehost", grace=30, drain=True, drain_timeout=120))
    assert _values(text, "KillMode") == ["process"]
    assert _values(text, "Type") == ["notify"]
    assert int(_values(text, "TimeoutStopSec")[0]) > 150
    (command,) = _values(text, "ExecStart")
    assert command.endswith("--root-dir /var/lib/volumehost --grace=30s --drain --drain-timeout=120s -v")


def test_nothing_in_it_is_expanded_by_systemd():
    text = unit_text(AgentSettings('/srv/a b"c', node_name="n%i$x", static_pods="/etc/pods", http="127.0.0.1:1"), 2)
    (command,) = _values(text, "ExecStart")
    assert r'--root-dir "/srv/a b\"c" ' in command
    assert "--node-name=n%%i$$x --static-pods=/etc/pods --http=127.0.0.1:1 -vv" in command


def test_the_cluster_is_in_it():
    (command,) = _values(unit_text(AgentSettings("/r", kubeconfig="/etc/node.conf", context="c")), "ExecStart")
    assert "--kubeconfig=/etc/node.conf --context=c" in command
    (command,) = _values(unit_text(AgentSettings("/r", in_cluster=True)), "ExecStart")
    assert "--in-cluster" in command
    assert "--kubeconfig" not in command


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("root", ["/var/lib/volumehost", "/srv/with blank"])
def test_systemd_understands_it(tmp_path, root):
    unit = tmp_path / "volumehost.service"
    unit.write_text(unit_text(AgentSettings(root, static_pods="/etc/pods")))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
