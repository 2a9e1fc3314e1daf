"""The leak guard names everything that a test leaves behind, and takes away what can be taken away."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading

import pytest

from volumehost.mount import loop
from volumehost.mount.mounter import LinuxMounter
from volumehost.testing.leaks import Leak, LeakGuard
from volumehost.testing.process_state import running_children


@pytest.fixture
def guard(tmp_path):
    """A guard that does not wait for what is ending."""
    with LeakGuard(str(tmp_path), grace=0.0) as guard:
        yield guard
        guard.take_away()


def test_nothing_is_left_by_what_goes_again(guard, tmp_path):
    with open(tmp_path / "file", "w") as file:
        file.write("text")
    subprocess.run(["true"], check=True)
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    assert guard.leaks() == []


@pytest.mark.root
def test_mounts_are_named_and_taken_away_in_order(guard, tmp_path):
    below, above = tmp_path / "below", tmp_path / "below" / "above"
    below.mkdir()
    LinuxMounter().mount("leak", str(below), "tmpfs")
    above.mkdir()
    LinuxMounter().mount("leak", str(above), "tmpfs")
    assert guard.leaks() == [
        Leak("mount", f"{above} (tmpfs from leak)"),
        Leak("mount", f"{below} (tmpfs from leak)"),
    ]
    guard.take_away()
    assert guard.leaks() == []
    assert not os.path.ismount(below)


@pytest.mark.root
def test_mounts_on_top_of_each_other_are_counted(guard, tmp_path):
    LinuxMounter().mount("leak", str(tmp_path), "tmpfs")
    LinuxMounter().mount("leak", str(tmp_path), "tmpfs")
    assert len(guard.leaks()) == 2
    guard.take_away()
    assert guard.leaks() == []


@pytest.mark.root
def test_mounts_elsewhere_stay_when_the_namespace_is_shared(tmp_path):
    """In a process without mounts of its own, others mount too: only those below the directory are the test's."""
    program = """
import ctypes, os, sys
from volumehost.testing.leaks import LeakGuard
from volumehost.testing.namespaces import has_own_mounts
assert not has_own_mounts()
with LeakGuard(sys.argv[1] + "/within", grace=0.0) as guard:
    for name in ("within", "elsewhere"):
        assert ctypes.CDLL(None).mount(b"leak", f"{sys.argv[1]}/{name}".encode(), b"tmpfs", 0, None) == 0
    print(*[leak.what for leak in guard.leaks()])
    guard.take_away()
for name in ("within", "elsewhere"):
    print(os.path.ismount(f"{sys.argv[1]}/{name}"))
    ctypes.CDLL(None).umount2(f"{sys.argv[1]}/{name}".encode(), 2)
"""
    for name in ("within", "elsewhere"):
        (tmp_path / name).mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.stdout.splitlines() == [f"{tmp_path}/within (tmpfs from leak)", "False", "True"], done.stderr


@pytest.mark.root
def test_loop_devices_over_files_of_the_test_are_named_and_detached(guard, tmp_path):
    (tmp_path / "disk").write_bytes(bytes(1 << 20))
    device = loop.attach(str(tmp_path / "disk"))
    assert guard.leaks() == [Leak("loop device", f"{device} of {tmp_path}/disk")]
    guard.take_away()
    assert guard.leaks() == []
    assert loop.find(str(tmp_path / "disk")) == []


def test_threads_are_named_unless_they_are_daemons(guard):
    stop = threading.Event()
    threads = [
        threading.Thread(target=stop.wait, args=(30,), name="left behind", daemon=False),
        threading.Thread(target=stop.wait, args=(30,), name="a daemon", daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        assert guard.leaks() == [Leak("thread", "'left behind', not a daemon, still running")]
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert guard.leaks() == []


def test_threads_that_are_ending_get_their_time(tmp_path):
    with LeakGuard(str(tmp_path), grace=30.0) as guard:
        thread = threading.Thread(target=threading.Event().wait, args=(0.05,))
        thread.start()
        assert guard.leaks() == []


def test_processes_are_named_and_ended(guard):
    child = subprocess.Popen(["sleep", "1000"])
    assert guard.leaks() == [Leak("process", f"{child.pid}: sleep 1000")]
    guard.take_away()
    assert child.wait(30) == -9
    assert guard.leaks() == []


def test_processes_that_lost_their_parent_are_found(guard):
    """A daemon has no parent among the test's processes; without more ado it would belong to process 1."""
    done = subprocess.run(
        ["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"], check=True, capture_output=True, text=True
    )
    assert guard.leaks() == [Leak("process", f"{int(done.stdout)}: sleep 1000")]
    guard.take_away()
    assert guard.leaks() == []
    assert int(done.stdout) not in {process.pid for process in running_children()}


def test_processes_that_are_ending_get_their_time(tmp_path):
    with LeakGuard(str(tmp_path), grace=30.0) as guard, subprocess.Popen(["sleep", "0.05"]):
        assert guard.leaks() == []


def test_descriptors_are_named_with_what_they_are_open_on(guard, tmp_path):
    (tmp_path / "file").touch()
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    connection = socket.socket()
    try:
        left = guard.leaks()
        assert Leak("descriptor", f"{descriptor}, open on {tmp_path}/file") in left
        assert [leak.what.startswith(f"{connection.fileno()}, open on socket:") for leak in left].count(True) == 1
    finally:
        os.close(descriptor)
        connection.close()
    assert guard.leaks() == []


def test_what_garbage_collection_closes_is_not_left(guard, tmp_path):
    class Cycle:
        def __init__(self):
            self.descriptor = os.open(tmp_path, os.O_RDONLY)
            self.itself = self

        def __del__(self):
            os.close(self.descriptor)

    Cycle()
    assert guard.leaks() == []


def test_orphans_go_their_old_way_when_the_guard_is_closed(tmp_path):
    with LeakGuard(str(tmp_path), grace=0.0):
        pass
    done = subprocess.run(
        ["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"], check=True, capture_output=True, text=True
    )
    try:
        assert int(done.stdout) not in {process.pid for process in running_children()}
    finally:
        os.kill(int(done.stdout), 9)
