"""One manager for each root directory: real processes, real kills."""

import os
import signal
import subprocess
import sys

import pytest

from volumehost.errors import RootDirectoryError, RootDirectoryLockedError
from volumehost.hosts.lock import RootDirLock, lock_holder

HOLDER = """
import sys, time
from volumehost.hosts.lock import RootDirLock
lock = RootDirLock(sys.argv[1])
lock.acquire()
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock; killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "locked\n"
    yield process
    process.kill()
    process.communicate()


def test_another_process_is_refused_with_the_holders_pid(tmp_path, holder):
    lock = RootDirLock(str(tmp_path))
    with pytest.raises(RootDirectoryLockedError) as caught:
        lock.acquire()
    assert caught.value.pid == holder.pid
    assert str(holder.pid) in str(caught.value)
    assert not lock.held


def test_the_lock_dies_with_its_process_even_by_kill_9(tmp_path, holder):
    assert lock_holder(str(tmp_path)) == holder.pid
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert lock_holder(str(tmp_path)) is None
    lock = RootDirLock(str(tmp_path))
    lock.acquire()
    assert lock_holder(str(tmp_path)) == os.getpid()
    lock.release()


def test_a_second_lock_of_the_same_process_is_refused_too(tmp_path):
    first, second = RootDirLock(str(tmp_path)), RootDirLock(str(tmp_path))
    first.acquire()
    first.acquire()
    with pytest.raises(RootDirectoryLockedError) as caught:
        second.acquire()
    assert caught.value.pid == os.getpid()
    first.release()
    first.release()
    second.acquire()
    second.release()


def test_a_child_that_the_holder_starts_does_not_keep_the_lock(tmp_path):
    lock = RootDirLock(str(tmp_path))
    lock.acquire()
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        lock.release()
        other = RootDirLock(str(tmp_path))
        other.acquire()
        other.release()
    finally:
        child.kill()
        child.communicate()


def test_looking_who_holds_it_never_takes_it(tmp_path):
    assert lock_holder(str(tmp_path)) is None
    assert not os.listdir(tmp_path)
    lock = RootDirLock(str(tmp_path))
    lock.acquire()
    lock.release()
    assert lock_holder(str(tmp_path)) is None


def test_a_lock_file_that_was_removed_meanwhile_is_not_what_is_locked(tmp_path):
    first, second = RootDirLock(str(tmp_path)), RootDirLock(str(tmp_path))
    first.acquire()
    os.unlink(tmp_path / "manager.lock")
    second.acquire()
    assert second.held
    second.release()
    first.release()


def test_a_link_in_the_place_of_the_lock_file_is_not_followed(tmp_path):
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "manager.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(RootDirectoryError):
        RootDirLock(str(tmp_path)).acquire()
    assert (tmp_path / "victim").read_text() == "mine"


def test_garbage_in_the_lock_file_does_no_harm(tmp_path):
    (tmp_path / "manager.lock").write_bytes(b"\xff not a pid")
    lock = RootDirLock(str(tmp_path))
    lock.acquire()
    assert (tmp_path / "manager.lock").read_text() == f"{os.getpid()}\n"
    lock.release()
