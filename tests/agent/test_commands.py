"""One-shot commands while an agent has the root directory: their wish goes into the store, and they wait for it."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from volumehost.mount.mountinfo import read_mount_table

pytestmark = pytest.mark.root

SCRATCH = {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}


def pod(name, *volumes):
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i", "volumeMounts": mounts}], "volumes": list(volumes)},
    }


def claim(name, size="320Mi"):  # xfs does not go below 300
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "grows",
            "resources": {"requests": {"storage": size}},
        },
    }


#: Mounted ext4 needs a capability to grow, xfs does not.
GROWS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "grows"},
    "provisioner": "loop.csi.volumehost",
    "allowVolumeExpansion": True,
    "parameters": {"csi.storage.k8s.io/fstype": "xfs"},
}


#: A claim of this class waits until somebody makes a volume for it.
MANUAL = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "manual"},
    "provisioner": "kubernetes.io/no-provisioner",
}
WAITS = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "later"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "manual",
        "resources": {"requests": {"storage": "1Mi"}},
    },
}
LATER = {"name": "data", "persistentVolumeClaim": {"claimName": "later"}}


@pytest.fixture
def command(root, tmp_path):
    """Runs volumehost on the root directory; manifests go in by standard input."""

    def run(*arguments, manifest=None, code=0, start=False):
        words = [sys.executable, "-m", "volumehost", arguments[0], "--root-dir", root, *arguments[1:]]
        pipe = subprocess.PIPE
        stdin = subprocess.DEVNULL if start else pipe
        process = subprocess.Popen(words, stdin=stdin, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path)
        if start:
            return process
        out, err = process.communicate(json.dumps(manifest) if manifest is not None else "", timeout=60)
        assert process.returncode == code, (process.returncode, out, err)
        assert "Traceback" not in err
        return out, err

    return run


def mounted_below(root):
    return [mount.path for mount in read_mount_table() if mount.path.startswith(f"{root}/pods/")]


def is_connected(root):
    """Whether somebody is connected to the agent's socket."""
    with open("/proc/net/unix", encoding="utf-8") as file:
        return any(line.split()[5] == "03" and f"{root}/agent.sock" in line for line in file.readlines()[1:])


def test_mount_and_unmount(running_agent, command, root):
    """DESIGN 7: the agent mounts, and the mounts are there when the command returns."""
    running_agent()
    out, _ = command("mount", "-f", "-", "-o", "json", manifest=pod("web", SCRATCH))
    (volume,) = json.loads(out)["pods"][0]["volumes"]
    assert volume["state"] == "mounted"
    assert mounted_below(root) == [volume["path"]]
    assert command("mount", "web")[0] == command("mount", "web")[0]
    out, _ = command("unmount", "web")
    assert out == "pod default/web unmounted\n"
    assert mounted_below(root) == []
    assert os.listdir(f"{root}/pods") == []
    command("unmount", "web", code=3)


def test_unmount_all_and_delete(running_agent, command, root):
    running_agent()
    for name in ("a", "b", "c"):
        command("mount", "-f", "-", manifest=pod(name, SCRATCH))
    assert command("delete", "pod", "b")[0] == "pod/b deleted\n"
    assert sorted(command("unmount", "--all")[0].splitlines()) == [
        "pod default/a unmounted", "pod default/c unmounted",
    ]  # fmt: skip
    assert mounted_below(root) == []
    assert command("get", "pods", "-o", "name")[0] == ""


def test_what_fails_is_told_as_without_an_agent(running_agent, command, root):
    """BR-83: volume, plugin, attempts and the last error, the other volumes mounted all the same."""
    missing = {"name": "missing", "hostPath": {"path": "/no/such/place", "type": "Directory"}}
    running_agent()
    out, err = command("mount", "-f", "-", manifest=pod("web", SCRATCH, missing), code=1)
    assert "hostPath type check failed" in err
    assert "3 attempts" in err
    assert "kubernetes.io/host-path" in err
    states = {line.split()[0]: line.split()[2] for line in out.splitlines()[1:]}
    assert states == {"scratch": "mounted", "missing": "failed"}


def test_what_takes_too_long_is_told_as_without_an_agent(running_agent, command):
    running_agent()
    command("apply", "--no-wait", "-f", "-", manifest=MANUAL)
    command("apply", "--no-wait", "-f", "-", manifest=WAITS)
    _, err = command("mount", "-f", "-", "--timeout", "3s", manifest=pod("web", SCRATCH, LATER), code=4)
    assert re.search(r"unmounted volumes=\[data\] after [0-2]\.[0-9]+ s", err)
    assert "there is none of its class" in err
    assert "the agent goes on trying" in err


def test_status_shows_what_the_agent_is_at(running_agent, command):
    missing = {"name": "missing", "hostPath": {"path": "/no/such/place", "type": "Directory"}}
    agent = running_agent()
    command("mount", "-f", "-", manifest=pod("web", SCRATCH, missing), code=1)
    found = json.loads(command("status", "-o", "json")[0])
    assert found["managerPid"] == agent.pid
    volumes = {volume["volume"]: volume for volume in found["pods"][0]["volumes"]}
    assert volumes["missing"]["attempts"] >= 3
    assert volumes["scratch"]["state"] == "mounted"


def test_claims(running_agent, command):
    """The agent's controllers provide for a claim, grow it and take it away again."""
    running_agent()
    command("apply", "-f", "-", manifest=GROWS)
    command("apply", "-f", "-", manifest=claim("data"))
    assert command("get", "pvc", "data", "-o", "json")[0].count('"phase": "Bound"') == 1
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    command("mount", "-f", "-", manifest=pod("db", volume))
    command("expand", "data", "384Mi")
    got = json.loads(command("get", "pvc", "data", "-o", "json")[0])
    assert got["status"]["capacity"]["storage"] == "384Mi"
    command("unmount", "db")
    command("delete", "pvc", "data")
    assert command("get", "pv", "-o", "name")[0] == ""


def test_a_claim_that_cannot_be_provided_for(running_agent, command):
    """The controllers' own words, from the agent."""
    wrong = claim("data")
    wrong["spec"]["accessModes"] = ["ReadWriteMany"]
    running_agent()
    command("apply", "-f", "-", manifest=GROWS)
    _, err = command("apply", "-f", "-", manifest=wrong, code=1)
    assert "loop.csi.volumehost" in err


def test_the_agent_is_restarted_while_a_command_waits(running_agent, command, until, root, tmp_path):
    agent = running_agent()
    command("apply", "--no-wait", "-f", "-", manifest=MANUAL)
    command("apply", "--no-wait", "-f", "-", manifest=WAITS)
    command("apply", "-f", "-", manifest=pod("web", SCRATCH, LATER))
    waiting = command("mount", "web", "--timeout", "60s", start=True)
    until(lambda: mounted_below(root), what="the first volume")
    until(lambda: is_connected(root), what="the command to wait for the agent")
    before = mounted_below(root)
    agent.signal(signal.SIGKILL)
    agent.wait()
    agent.start().wait_ready()
    (tmp_path / "data").mkdir()
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "made-by-hand"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "manual",
            "capacity": {"storage": "1Mi"},
            "hostPath": {"path": str(tmp_path / "data")},
        },
    }
    command("apply", "-f", "-", manifest=volume)
    out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, err
    assert out.count("mounted") == 2
    assert set(before) <= set(mounted_below(root))


def test_a_command_waits_for_the_agent_that_starts(running_agent, command, root):
    """Between the lock and the socket the command waits, and does not give up."""
    agent = running_agent(ready=False)
    command("mount", "-f", "-", manifest=pod("web", SCRATCH))
    agent.wait_ready()
    assert len(mounted_below(root)) == 1


def test_applying_a_pod_mounts_it(running_agent, command, root, until):
    """With an agent every pod of the store is wanted."""
    running_agent()
    command("apply", "-f", "-", manifest=pod("web", SCRATCH))
    until(lambda: len(mounted_below(root)) == 1, what="the pod's volume")
    command("unmount", "web")
    assert mounted_below(root) == []


def test_without_the_agent_commands_go_on_with_its_mounts(running_agent, command, root):
    agent = running_agent()
    command("mount", "-f", "-", manifest=pod("web", SCRATCH))
    assert agent.stop() == 0
    assert len(mounted_below(root)) == 1
    assert command("status")[0].count("mounted") == 1
    command("unmount", "web")
    assert mounted_below(root) == []


def test_a_second_agent_says_so_at_once(running_agent, command):
    agent = running_agent()
    _, err = command("agent", code=1)
    assert f"another agent runs for it (process {agent.pid})" in err
