"""The agent's life as seen from outside: it mounts, ends with mounts left alone, and goes on after kill -9."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from agent_world import DISK, MEMORY, claim, claimed, is_mounted, mounted_below, pod, pod_directories, volume_path

from volumehost.api.store import EmbeddedStore
from volumehost.mount import syscalls

pytestmark = pytest.mark.root


@pytest.mark.parametrize("end", ["term", "kill"])
def test_br66_memory_outlives_the_agent(running_agent, root, store, until, end):
    agent = running_agent()
    stored = store.create(pod("web", MEMORY, DISK))
    path = volume_path(root, stored.metadata.uid)
    until(lambda: is_mounted(path))
    Path(path, "file").write_text("kept")
    if end == "term":
        assert agent.stop() == 0
    else:
        agent.kill()
    assert is_mounted(path)
    agent = running_agent()
    assert Path(path, "file").read_text() == "kept"
    assert agent.stop() == 0
    assert Path(path, "file").read_text() == "kept"


def test_br58_claims_outlive_kill_and_lost_mounts_and_end_with_their_pod(running_agent, root, store, until):
    """A volume of the loop driver: what was written is there after kill -9, also when all was unmounted meanwhile: it
    is staged and published again. The pod ends when its object says so.
    """
    agent = running_agent()
    store.create(claim())
    uid = store.create(pod("web", claimed())).metadata.uid
    until(lambda: [path for path in mounted_below(root) if f"/pods/{uid}/" in path])
    (path,) = [path for path in mounted_below(root) if f"/pods/{uid}/" in path]
    Path(path, "file").write_text("kept")
    agent.kill()
    assert Path(path, "file").read_text() == "kept"
    for mounted in reversed(mounted_below(root)):
        syscalls.umount2(mounted, 0)
    agent = running_agent()
    until(lambda: is_mounted(path))
    assert Path(path, "file").read_text() == "kept"
    store.replace_status({**pod("web", claimed()), "status": {"phase": "Succeeded"}})
    until(lambda: mounted_below(root) == [] and pod_directories(root) == [])
    assert agent.stop() == 0


def test_the_second_agent_of_a_root_directory_is_told_which_process_has_it(running_agent, tmp_path):
    first = running_agent()
    second = running_agent(ready=False, log_file=tmp_path / "second.log")
    assert second.wait() == 1
    assert "another agent runs for it" in second.log
    assert str(first.pid) in second.log


def test_a_command_that_has_the_root_directory_is_waited_for(running_agent, root, until, make_holder):
    holder = make_holder()
    agent = running_agent(ready=False)
    agent.wait_told(lambda state: str(holder.pid) in state.get("STATUS", ""), "that it waits")
    assert "EXTEND_TIMEOUT_USEC" in {name for state in agent.told for name in state}
    holder.stdin.close()
    agent.wait_ready()
    assert agent.stop() == 0


def test_told_to_end_while_it_waits_it_ends(running_agent, make_holder):
    holder = make_holder()
    agent = running_agent(ready=False)
    agent.wait_told(lambda state: str(holder.pid) in state.get("STATUS", ""), "that it waits")
    assert agent.stop() == 0


@pytest.fixture
def make_holder(root):
    """Starts a program that works on the root directory until its standard input ends, as a command would."""
    started = []
    program = (
        "import sys; from volumehost import VolumeManager\n"
        "with VolumeManager(sys.argv[1]): print(flush=True); sys.stdin.read()"
    )

    def make():
        process = subprocess.Popen(
            [sys.executable, "-c", program, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout.readline() == "\n"
        return process

    yield make
    for process in started:
        process.kill()
        with process:  # waits, and closes its pipes
            pass


def test_systemd_is_told_what_happens(running_agent, until):
    agent = running_agent(environment={"WATCHDOG_USEC": "300000"})
    agent.wait_told(lambda state: state.get("WATCHDOG") == "1", "that it is alive")
    agent.wait_told(lambda state: state.get("STATUS") == "0 pods with volumes", "what there is")
    agent.signal(signal.SIGHUP)
    agent.wait_told(lambda state: "RELOADING" in state and state["MONOTONIC_USEC"].isdecimal(), "that it looks anew")
    until(lambda: sum("READY" in state for state in agent.told) == 2, what="that it has looked")
    assert agent.stop() == 0
    order = [next(iter(state)) for state in agent.told]
    assert order.index("READY") < order.index("RELOADING") < order.index("STOPPING")
    assert order.count("READY") == 2


def test_a_plain_socket_path_is_told_too(running_agent, tmp_path):
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        listener.settimeout(60)
        agent = running_agent(ready=False, environment={"NOTIFY_SOCKET": str(path)})
        while listener.recv(4096) != b"READY=1":
            pass
        assert agent.stop() == 0


def test_sigint_ends_it_and_a_second_signal_does_not_harm(running_agent):
    agent = running_agent()
    agent.signal(signal.SIGINT)
    agent.signal(signal.SIGTERM)
    assert agent.wait() in (0, 1)


@pytest.mark.parametrize("link", [False, True], ids=["unusual", "link"])
def test_br69_an_unusual_root_directory(running_agent, root, tmp_path, until, link):
    """A root directory that is a link is resolved once: what one agent mounted by it the next one finds."""
    given = os.path.join(os.path.dirname(root), "with blank")
    os.mkdir(given)
    if link:
        given = str(tmp_path / "link")
        os.symlink(os.path.dirname(root), given)
    agent = running_agent(root_dir=given, log_file=tmp_path / "agent.log")
    with EmbeddedStore(f"{given}/store.sqlite3") as store:
        uid = store.create(pod()).metadata.uid
        path = volume_path(os.path.realpath(given), uid)
        until(lambda: is_mounted(path))
        agent.kill()
        agent = running_agent(root_dir=given, log_file=tmp_path / "agent.log")
        store.replace_status({**pod(), "status": {"phase": "Failed"}})
        until(lambda: not is_mounted(path))
    assert agent.stop() == 0


def test_a_root_directory_that_cannot_be_used_is_refused(running_agent, tmp_path):
    (tmp_path / "file").write_text("")
    agent = running_agent(root_dir=str(tmp_path / "file"), ready=False, log_file=tmp_path / "agent.log")
    assert agent.wait() == 1
    assert "root directory" in agent.log


def test_its_log_tells_what_it_is_at_without_being_asked(running_agent, root, store, until):
    agent = running_agent("--node-name", "here", verbosity=0)
    store.create(pod("web", MEMORY))
    until(lambda: "all pods are known" in agent.log)
    until(lambda: mounted_below(root))
    assert agent.stop() == 0
    lines = [line.partition(": ")[2] for line in agent.log.splitlines()]
    assert lines[0] == f"at work on {root} as node here"
    assert all(line.startswith("INFO volumehost.agent.") for line in agent.log.splitlines()), "details are for -v"
