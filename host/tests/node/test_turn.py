from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from volumehost.errors import RootDirectoryError, WaitTimeoutError
from volumehost.hosts.lock import RootDirLock
from volumehost.hosts.root_dir import prepare_root_dir
from volumehost.node.manager import VolumeManager
from volumehost.node.turn import manager_in_turn


@pytest.fixture
def root_dir(tmp_path: Path) -> str:
    return prepare_root_dir(str(tmp_path / "root"))


@pytest.fixture
def lock(root_dir: str):
    held = RootDirLock(root_dir)
    held.acquire()
    yield held
    held.release()


def test_a_free_root_directory_is_entered_at_once_and_let_go_of(root_dir: str) -> None:
    waited: list[int | None] = []
    for _ in range(2):
        with manager_in_turn(lambda: VolumeManager(root_dir), 0, on_wait=waited.append) as manager:
            assert manager is not None
            assert manager.status() == []
    assert waited == []


def test_when_it_never_becomes_free_the_error_names_the_process(root_dir: str, lock: RootDirLock) -> None:
    import os

    waited: list[int | None] = []
    with (
        pytest.raises(WaitTimeoutError, match=f"process {os.getpid()}") as caught,
        manager_in_turn(lambda: VolumeManager(root_dir), 0.2, on_wait=waited.append),
    ):
        pytest.fail("must not be entered")
    assert caught.value.hint
    assert waited == [os.getpid()]


def test_it_is_entered_when_the_other_has_ended(root_dir: str, lock: RootDirLock) -> None:
    told = threading.Event()

    def let_go() -> None:
        assert told.wait(30)
        lock.release()

    thread = threading.Thread(target=let_go)
    thread.start()
    with manager_in_turn(lambda: VolumeManager(root_dir), 10, on_wait=lambda pid: told.set()) as manager:
        assert manager is not None
    thread.join(30)


def test_when_there_is_nothing_left_to_do_it_waits_no_longer(root_dir: str, lock: RootDirLock) -> None:
    began = time.monotonic()
    answers = iter([False, False, True])
    with manager_in_turn(lambda: VolumeManager(root_dir), 60, unless=lambda: next(answers)) as manager:
        assert manager is None
    assert time.monotonic() - began < 60


def test_other_errors_are_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RootDirectoryError), manager_in_turn(lambda: VolumeManager(tmp_path / "file"), 60):
        pytest.fail("must not be entered")


def test_what_the_block_raises_comes_out_and_the_root_directory_is_free(root_dir: str) -> None:
    with pytest.raises(ZeroDivisionError), manager_in_turn(lambda: VolumeManager(root_dir), 0):
        raise ZeroDivisionError
    with manager_in_turn(lambda: VolumeManager(root_dir), 0) as manager:
        assert manager is not None
