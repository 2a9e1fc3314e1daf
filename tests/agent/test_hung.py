"""An agent with a filesystem that does not answer ends in time, and what it left is taken up by the next (BR-52)."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agent_world import is_mounted, mounted_below, pod, volume_path

pytestmark = pytest.mark.root

FUSE_DAEMON = Path(__file__).parents[2] / "host" / "tests" / "mount" / "fuse_daemon.py"


@pytest.fixture
def stopped(tmp_path):
    """Mounts a FUSE filesystem whose daemon is stopped; it goes on at the end, so that everything can end."""
    place = tmp_path / "remote"
    place.mkdir()
    daemon = subprocess.Popen([sys.executable, str(FUSE_DAEMON), str(place)], stdout=subprocess.PIPE, text=True)
    assert daemon.stdout.readline() == "ready\n"
    daemon.send_signal(signal.SIGSTOP)
    yield place, daemon
    daemon.kill()
    daemon.send_signal(signal.SIGCONT)
    with daemon:
        pass


def hanging(place):
    return {"name": "remote", "hostPath": {"path": str(place / "x"), "type": "Directory"}}


def test_br52_it_ends_within_its_grace_though_an_operation_hangs(running_agent, root, store, stopped, until):
    place, _ = stopped
    agent = running_agent("--grace", "500ms", environment={"WATCHDOG_USEC": "400000"})
    store.create(pod("hangs", hanging(place)))
    uid = store.create(pod("web")).metadata.uid
    until(lambda: is_mounted(volume_path(root, uid)))  # the other pod is none the worse for it
    alive = sum("WATCHDOG" in state for state in agent.told)
    until(lambda: sum("WATCHDOG" in state for state in agent.told) > alive)  # one hung volume is no hung agent
    assert agent.stop(timeout=30) in (0, 1)
    assert is_mounted(volume_path(root, uid))
    agent = running_agent()
    assert os.path.ismount(volume_path(root, uid))
    agent.kill()


def test_a_second_signal_ends_it_at_once(running_agent, root, store, stopped, until):
    place, _ = stopped
    agent = running_agent("--grace", "10m")
    store.create(pod("hangs", hanging(place)))
    until(lambda: "hangs" in agent.log or "remote" in agent.log or os.path.exists(f"{root}/volumes.journal"))
    agent.signal(signal.SIGTERM)
    agent.wait_told(lambda state: state.get("STOPPING") == "1", "that it ends")
    agent.signal(signal.SIGTERM)
    agent.wait(timeout=30)


def test_br54_drain_tells_what_it_cannot_unmount(running_agent, root, store, until):
    """What is in use stays mounted and is named; the rest goes; the pods stay, and the next agent goes on with them."""
    agent = running_agent("--drain", "--drain-timeout", "1s", "--grace", "1s")
    held = volume_path(root, store.create(pod("held")).metadata.uid)
    web = volume_path(root, store.create(pod("web")).metadata.uid)
    until(lambda: is_mounted(held) and is_mounted(web))
    with open(f"{held}/file", "w"):
        assert agent.stop() == 4
        assert mounted_below(root) == [held]
        assert "pod default/held: volume cache" in agent.log
        agent = running_agent()
        until(lambda: is_mounted(web))
        assert agent.stop() == 0
