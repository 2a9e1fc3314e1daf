"""Where an agent works on the root directory of this machine, commands on the cluster ask it about its pods."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest

from volumehost.mount import syscalls
from volumehost.mount.mountinfo import read_mount_table
from volumehost.testing.agents import PATIENCE, AgentProcess

pytestmark = pytest.mark.root


def pod(name, node, source):
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    spec = {"nodeName": node, "containers": [container], "volumes": [{"name": "v", **source}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


@pytest.fixture
def agent(server, kubeconfig, root_dir, tmp_path):
    server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}})
    options = ["--kubeconfig", kubeconfig, "--node-name", "node-1"]
    with AgentProcess(root_dir, *options, log_file=tmp_path / "agent.log") as agent:
        yield agent
    for mount in reversed(read_mount_table()):
        if f"{mount.path}/".startswith(f"{tmp_path}/"):
            with contextlib.suppress(OSError):
                syscalls.umount2(mount.path, syscalls.MNT_DETACH)


def test_commands_tell_what_the_agent_knows(server, volumehost, agent, root_dir):
    server.objects.put(pod("web", "node-1", {"emptyDir": {"medium": "Memory"}}))
    server.objects.put(pod("broken", "node-1", {"hostPath": {"path": "/none", "type": "Directory"}}))
    server.objects.put(pod("elsewhere", "node-2", {"emptyDir": {}}))
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    while True:
        pods = {each["name"]: each for each in volumehost("status", "-o", "json").json()["pods"]}
        if pods["web"]["state"] == "mounted" and pods["broken"]["volumes"][0]["error"]:
            break
        assert time.monotonic() < deadline, f"{pods}\n{agent.log}"
        pause.wait(0.05)
    assert pods["web"]["volumes"][0]["path"].startswith(f"{root_dir}/pods/")
    assert pods["elsewhere"]["volumes"][0]["path"] == ""

    told = volumehost("explain", "broken", "-o", "json").json()
    assert told["live"] is True
    assert "/none" in " ".join(told["volumes"][0]["error"])
    assert volumehost("explain", "elsewhere", "-o", "json").json()["live"] is False
    assert f"{root_dir}/pods/" in volumehost("describe", "pod", "web").out
    (exported,) = volumehost("export", "web", "--format", "json").json()["containers"]
    assert exported["container"] == "c"


def test_without_an_agent_nothing_is_exported(server, volumehost, root_dir):
    root_dir.mkdir()
    server.objects.put(pod("web", "node-1", {"emptyDir": {}}))
    done = volumehost("export", "web")
    assert done.code == 1
    assert "agent" in done.err
