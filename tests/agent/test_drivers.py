"""Drivers and plugins under the agent: supervised, adopted after kill -9, ended with it, found while it runs."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from agent_world import claim, claimed, mounted_below, pod, pod_directories

from volumehost.api.objects import CSINode
from volumehost.api.store import EmbeddedStore
from volumehost.mount import syscalls

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


def test_a_driver_that_registers_by_its_socket_is_found(running_agent, until):
    """A driver that somebody else runs: its socket in the registration directory, which the agent watches."""
    with tempfile.TemporaryDirectory(prefix="vh-") as place:  # short enough for sockets
        syscalls.mount("root", place, "tmpfs", 0, "")
        root = f"{place}/r"
        agent = running_agent("--node-name", "node-1", root_dir=root)
        command = [sys.executable, "-m", "volumehost_csi_kit.fake", "--attached", "--node-id", "n"]
        command += ["--endpoint", f"unix://{place}/csi.sock", "--registration-dir", f"{root}/plugins_registry"]
        with EmbeddedStore(f"{root}/store.sqlite3") as store:
            driver = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            with driver:
                try:
                    assert driver.stdout.readline()
                    until(lambda: any(node.spec.drivers for node in store.list(CSINode).items))
                    (node,) = store.list(CSINode).items
                finally:
                    driver.kill()
        assert [each.name for each in node.spec.drivers] == ["fake.csi.example.com"]
        assert agent.stop() == 0
        for path in (root, place):
            syscalls.umount2(path, syscalls.MNT_DETACH)
