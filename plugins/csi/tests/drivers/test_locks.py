"""Locks between hosts, which the kernel lets go of with their holder."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from volumehost_csi.drivers.keeper import nobody_holds
from volumehost_csi.drivers.locks import FileLock, locked


@pytest.fixture
def path(tmp_path):
    return f"{tmp_path}/lock"


def test_many_share_it_and_one_has_it_alone(path):
    first, second, third = FileLock(path), FileLock(path), FileLock(path)
    assert first.try_lock(shared=True)
    assert second.try_lock(shared=True)
    assert not third.try_lock()
    assert not third.held
    second.release()
    assert first.try_lock()
    assert not second.try_lock(shared=True)
    first.release()
    assert third.try_lock()
    third.release()
    third.release()


def test_a_wait_ends_with_its_time_its_stop_or_the_lock(path):
    holder, waiter, stop = FileLock(path), FileLock(path), threading.Event()
    assert holder.try_lock()
    assert not waiter.lock(0.05)
    stop.set()
    assert not waiter.lock(60, stop=stop)
    got = []
    thread = threading.Thread(target=lambda: got.append(waiter.lock(30)))
    thread.start()
    holder.release()
    thread.join(30)
    assert got == [True]
    waiter.release()


def test_the_block_tells_whether_it_has_it(path):
    with locked(path, 0) as first, locked(path, 0) as second:
        assert (first, second) == (True, False)
    with locked(path, 0) as again:
        assert again


def test_a_killed_holder_holds_nothing(path):
    code = (
        f"import fcntl, os, time; d = os.open({path!r}, os.O_CREAT | os.O_RDWR); "
        "fcntl.flock(d, fcntl.LOCK_SH); print('x', flush=True); time.sleep(99)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        with open(path) as file:
            assert not nobody_holds(file.fileno())
            holder.kill()
            holder.wait()
            assert nobody_holds(file.fileno())


def test_a_link_is_not_followed(path, tmp_path):
    import os

    os.symlink(f"{tmp_path}/elsewhere", path)
    with pytest.raises(OSError, match="symbolic"):
        FileLock(path).try_lock()
