"""The same story with pods: the volume manager of a node, and a plugin that changes under its volumes."""

from __future__ import annotations

import os

import pytest

pytestmark = [pytest.mark.root, pytest.mark.slow]

NAME = "example.com/scratch"


def mounted(host):
    """Sources of what is mounted below the root directory: the plugin writes its version into them."""
    with open("/proc/self/mountinfo") as file:
        lines = [line for line in file if line.split()[4].startswith(f"{host.root_dir}/pods/")]
    return sorted(line.split(" - ")[1].split()[1] for line in lines)


def test_br12_pods_keep_the_plugin_that_mounted_their_volumes(environment, start_host, acme):
    host = start_host("node.py")
    assert host.error("mount", pod="early", driver=NAME) == "VolumesFailedError"
    environment.install(acme("1.0"))
    host("mount", pod="one", driver=NAME)
    assert mounted(host)[-1:] == ["scratch-1.0"]

    environment.install("--upgrade", acme("2.0"))
    host("mount", pod="two", driver=NAME)
    assert set(mounted(host)) == {"scratch-1.0"}
    status = host.status(NAME)
    assert (status["state"], status["version"], status["installed_version"]) == (
        "newer version installed",
        "1.0",
        "2.0",
    )
    assert len(status["users"]) >= 2

    for pod in ("one", "two", "early"):
        host("unmount", pod=pod)
    assert mounted(host) == []
    assert host.status(NAME)["version"] == "2.0"
    host("mount", pod="three", driver=NAME)
    assert mounted(host) == ["scratch-2.0"]

    environment.uninstall("acme-volumes")
    assert host.error("mount", pod="four", driver=NAME) == "VolumesFailedError"
    assert host.status(NAME)["state"] == "removed, still in use"
    assert mounted(host) == ["scratch-2.0"], "nothing was taken from a pod that runs"
    host("unmount", pod="three")
    host("unmount", pod="four")
    assert mounted(host) == []


def test_br15_a_restart_without_the_plugin_leaves_its_volumes_alone(environment, start_host, acme):
    """Gone while the host was down: the volume waits for its plugin, and is never taken for unwanted."""
    environment.install(acme("1.0"))
    host = start_host("node.py")
    host("mount", pod="one", driver=NAME)
    host.stop()
    assert mounted(host) == ["scratch-1.0"]
    environment.uninstall("acme-volumes")

    host = start_host("node.py", root_dir=host.root_dir)
    assert mounted(host) == ["scratch-1.0"]
    assert NAME not in host.statuses()
    assert "one" in host("states")

    environment.install(acme("1.0"))
    host("mount", pod="one", driver=NAME)
    assert mounted(host) == ["scratch-1.0"], "mounted once, and the same"
    host("unmount", pod="one")
    assert mounted(host) == []
    assert not os.listdir(host.root_dir / "pods")
