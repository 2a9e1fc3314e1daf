"""An agent's housekeeping: what is left of pods that nobody knows goes, what may be somebody's stays (ORPHAN rules)."""

import contextlib
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from volumehost.mount import syscalls
from volumehost.node.restart.orphan_care import OrphanCounts

pytestmark = pytest.mark.root

FUSE_DAEMON = Path(__file__).parents[1] / "mount" / "fuse_daemon.py"


@pytest.fixture
def orphan(root):
    """Makes the directory of a pod that nobody knows, with a volume's directory in it; returns that."""

    def make(uid="u", volume="volumes/a.b~p/v"):
        path = f"{root}/pods/{uid}/{volume}"
        os.makedirs(path)
        return path

    return make


@pytest.fixture
def dead():
    """Mounts a FUSE filesystem somewhere, and kills its daemon."""

    def mount(path):
        daemon = subprocess.Popen([sys.executable, FUSE_DAEMON, path], stdout=subprocess.PIPE)
        with daemon, daemon.stdout:
            assert daemon.stdout.readline() == b"ready\n"
            daemon.kill()

    if not os.path.exists("/dev/fuse"):
        pytest.skip("needs /dev/fuse")
    return mount


def housekeep(node):
    return node.orphan_care.housekeep()


def test_orphan_01_directories_of_pods_that_nobody_knows_go(manager, bind, make_pod, nfs, orphan, root):
    node = manager(bind(), adopt=True)
    uid = node.mount_pod(make_pod(nfs())).uid
    orphan("u")
    orphan("w", volume="plugins/a.b~p/v")
    assert housekeep(node) == OrphanCounts(candidates=2, errors=0, removed=2)
    assert os.listdir(f"{root}/pods") == [uid]
    assert housekeep(node) == OrphanCounts(removed=2)


def test_br15_nothing_goes_before_all_pods_are_known(manager, bind, orphan):
    node = manager(bind(), adopt=True, told_pods=True)
    path = orphan()
    assert housekeep(node) == OrphanCounts()
    assert os.path.isdir(path)
    node.set_known_pods([])
    assert housekeep(node).removed == 1


def test_a_pod_of_the_api_that_this_manager_was_not_told_of_is_known(manager, bind, make_pod, orphan):
    node = manager(bind(), adopt=True)
    pod = node.api.create(make_pod())
    path = orphan(pod.metadata.uid)
    assert housekeep(node) == OrphanCounts()
    assert os.path.isdir(path)


def test_orphan_02_a_live_mount_keeps_everything_untouched(manager, bind, orphan, data, root):
    """BR-62, BR-84: by itself it never unmounts what lives."""
    node = manager(bind(), adopt=True)
    target = orphan()
    os.makedirs(f"{root}/pods/u/volumes/a.b~p/empty")
    syscalls.mount(data, target, "", syscalls.MS_BIND, "")
    assert housekeep(node) == OrphanCounts(candidates=1, errors=1)
    assert os.listdir(target) == ["file"]
    assert os.path.isdir(f"{root}/pods/u/volumes/a.b~p/empty")


def test_orphan_10_br64_a_dead_mount_of_an_unknown_pod_is_unmounted_first(manager, bind, orphan, dead, mounts, root):
    node = manager(bind(), adopt=True)
    dead(orphan())
    assert housekeep(node).removed == 1
    assert mounts() == []
    assert os.listdir(f"{root}/pods") == []


def test_orphan_07_08_what_stays_is_counted_each_time_and_told_once(manager, bind, orphan, clock, caplog, root):
    node = manager(bind(), adopt=True, clock=clock)
    for uid in ("u", "w"):
        Path(orphan(uid), "data").write_text("mine")
    caplog.set_level(logging.DEBUG, logger="volumehost.node.restart.orphan_care")
    for _ in range(5):
        assert housekeep(node) == OrphanCounts(candidates=2, errors=2)
        clock.move(200)
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 1
    assert "data" in told[0].getMessage()
    assert "1 more" in told[0].getMessage()
    os.unlink(f"{root}/pods/u/volumes/a.b~p/v/data")
    assert housekeep(node) == OrphanCounts(candidates=2, errors=1, removed=1)


def test_br53_what_stays_is_tried_after_longer_and_longer_times(manager, bind, orphan, clock, root):
    node = manager(bind(), adopt=True, clock=clock)
    file = Path(orphan(), "data")
    file.write_text("mine")
    housekeep(node)
    clock.move(0.6)
    housekeep(node)
    file.unlink()
    assert housekeep(node) == OrphanCounts(candidates=1, errors=1)
    clock.move(1.1)
    assert housekeep(node).removed == 1


def test_without_a_pods_directory_it_says_so(manager, bind, root):
    node = manager(bind(), adopt=True)
    os.rmdir(f"{root}/pods")
    with pytest.raises(FileNotFoundError):
        housekeep(node)


def test_br57_without_a_mount_table_everything_stays(manager, bind, orphan, troubled_mounter):
    from volumehost.errors import InconsistentMountTableError

    def fail():
        raise InconsistentMountTableError("it changes", action="reading", subject="")

    node = manager(bind(), adopt=True, mounter=troubled_mounter)
    path = orphan()
    troubled_mounter.list_mounts = fail
    assert housekeep(node) == OrphanCounts(candidates=1, errors=1)
    assert os.path.isdir(path)


def test_without_its_api_everything_stays(manager, bind, orphan):
    node = manager(bind(), adopt=True)
    path = orphan()
    node.api.close()
    with contextlib.suppress(Exception):
        housekeep(node)
    assert os.path.isdir(path)
