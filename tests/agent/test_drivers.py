"""Drivers and plugins under the agent: supervised, adopted after kill -9, ended with it, found while it runs."""

import contextlib
import json
import os
import signal
from pathlib import Path

import pytest
from agent_world import claim, claimed, mounted_below, pod, pod_directories

pytestmark = pytest.mark.root

NAME = "loop.csi.volumehost"


@pytest.fixture
def driver_pid(root):
    """The process of the driver; None when none runs."""

    def find():
        with contextlib.suppress(FileNotFoundError, ValueError):
            pid = json.loads(Path(root, "drivers", NAME, "process.json").read_text())["pid"]
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            return pid if state not in "ZX" else None
        return None

    return find


def test_br68_mounts_go_on_though_agent_and_driver_are_killed(running_agent, root, store, driver_pid, until):
    """The driver is started again by itself; the one that a killed agent leaves is adopted or ended, never leaked."""
    agent = running_agent()
    store.create(claim())
    store.create(pod("web", claimed()))
    until(lambda: len(mounted_below(root)) == 2)
    first = driver_pid()
    os.kill(first, signal.SIGKILL)
    until(lambda: driver_pid() not in (None, first))
    agent.kill()
    agent = running_agent()
    store.create(claim("more"))
    store.create(pod("more", claimed("more")))
    until(lambda: len(mounted_below(root)) == 4)
    second = driver_pid()
    for name in ("web", "more"):
        store.replace_status({**pod(name, claimed(name if name == "more" else "data")), "status": {"phase": "Failed"}})
    until(lambda: mounted_below(root) == [] and pod_directories(root) == [])
    assert agent.stop() == 0
    until(lambda: driver_pid() is None)
    assert not os.path.exists(f"/proc/{second}/fd")


def test_sighup_finds_what_was_installed_meanwhile(running_agent, root, tmp_path, until):
    """A plugin in a directory of the search path, which is looked at anew."""
    site = tmp_path / "site"
    site.mkdir()
    agent = running_agent(
        environment={"PYTHONPATH": os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])}
    )
    (site / "acme_agent_plugin.py").write_text(PLUGIN)
    info = site / "acme_agent_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-agent-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[volumehost.plugins]\nacme = acme_agent_plugin:Plugin\n")
    (info / "RECORD").write_text("")
    agent.signal(signal.SIGHUP)
    until(lambda: "plugin=example.com/acme" in agent.log)
    assert agent.stop() == 0


PLUGIN = """
from volumehost import hookimpl

class Plugin:
    @hookimpl
    def get_plugin_name(self):
        return "example.com/acme"
    @hookimpl
    def get_volume_name(self, spec):
        return spec.name()
    @hookimpl
    def can_support(self, spec):
        return False
    @hookimpl
    def new_mounter(self, spec, pod):
        raise NotImplementedError
    @hookimpl
    def new_unmounter(self, volume_name, pod_uid):
        raise NotImplementedError
    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        raise NotImplementedError
"""
