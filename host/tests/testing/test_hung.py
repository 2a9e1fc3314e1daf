"""``hung_filesystem`` hangs whoever asks it, dies when told to, and leaves nothing behind (BR-52, BR-64)."""

import errno
import os
import subprocess
import sys
import threading

import pytest

from volumehost.errors import CorruptedMountError
from volumehost.mount import syscalls
from volumehost.mount.mount_point import is_mount_point
from volumehost.mount.mountinfo import read_mount_table
from volumehost.mount.places import Places
from volumehost.testing.hung import FS_TYPE, hung_filesystem

pytestmark = pytest.mark.root


@pytest.fixture
def place(tmp_path):
    (tmp_path / "m").mkdir()
    return str(tmp_path / "m")


def mounted(place):
    return [mount for mount in read_mount_table() if mount.path == place]


def asking(question):
    """A thread that asks; its answer is an errno, or 0."""
    answers, begun = [], threading.Event()

    def ask():
        begun.set()
        try:
            question()
        except OSError as error:
            answers.append(error.errno)
        else:
            answers.append(0)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    assert begun.wait(30)
    return thread, answers


@pytest.mark.parametrize(
    "question", [os.stat, os.listdir, os.statvfs, lambda place: os.open(f"{place}/x", os.O_RDONLY)]
)
def test_br52_no_question_is_answered_before_it_dies(place, question):
    with hung_filesystem(place) as hung:
        thread, answers = asking(lambda: question(place))
        thread.join(0.05)
        assert thread.is_alive()
        hung.die()
        thread.join(30)
        assert answers == [errno.ENOTCONN]


def test_br64_a_dead_one_is_a_corrupted_mount_that_can_be_unmounted(place):
    with hung_filesystem(place) as hung:
        hung.die()
        with pytest.raises(CorruptedMountError) as caught:
            is_mount_point(place)
        assert caught.value.errno == errno.ENOTCONN
        syscalls.umount2(place, 0)
        assert not mounted(place)


def test_the_house_finds_it_silent_within_its_deadline(place):
    with hung_filesystem(place), pytest.raises(CorruptedMountError) as caught:
        is_mount_point(place, Places(answer_seconds=0.1))
    assert caught.value.errno == errno.ETIMEDOUT


def test_it_is_gone_at_the_end_whatever_the_test_did(place):
    with pytest.raises(ZeroDivisionError), hung_filesystem(place):
        assert 1 / (FS_TYPE not in [mount.fs_type for mount in mounted(place)])
    assert not mounted(place)
    with hung_filesystem(place):
        syscalls.umount2(place, syscalls.MNT_DETACH)
    assert not mounted(place)


def test_a_process_that_waits_for_it_can_be_killed(place):
    with hung_filesystem(place):
        program = f"import os; print('here', flush=True); os.stat({place!r})"
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "here\n"
        process.kill()
        process.communicate(timeout=30)
        assert process.returncode == -9
