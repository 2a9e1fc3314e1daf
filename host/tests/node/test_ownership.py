"""fsGroup through the manager: how far it is, ended on the way, made again after a restart (FSGRP, BR-52)."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from volumehost.api.objects import Event, Pod
from volumehost.errors import WaitTimeoutError
from volumehost.node.status.recorded import read_status

pytestmark = pytest.mark.root

GROUP = 4321
OTHER_GROUP = 4322


def _pod(*volumes, name="web", group=GROUP, policy=None):
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    context = {"fsGroup": group, **({"fsGroupChangePolicy": policy} if policy else {})}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [container], "volumes": list(volumes), "securityContext": context},
    }


@pytest.fixture
def data(tmp_path):
    """A directory with some files, for plugins to mount."""
    directory = tmp_path / "data"
    for name in ("a", "b", "c"):
        (directory / name).mkdir(parents=True)
        (directory / name / "file").write_text("content")
    return str(directory)


def _groups(directory):
    entries = [os.path.join(place, name) for place, dirs, files in os.walk(directory) for name in (*dirs, *files)]
    return [os.stat(path).st_gid for path in (*entries, directory)]


@pytest.fixture
def slow_disk(monkeypatch):
    """A filesystem on which each change waits for ``turns``; ``calls`` counts them."""

    class Disk:
        turns = threading.Semaphore(0)
        calls = 0
        opened = False

        def open(self):
            self.opened = True
            self.turns.release(1000)

    disk, chown = Disk(), os.chown

    def slow(*args, **options):
        disk.calls += 1
        if not disk.opened:
            disk.turns.acquire(timeout=60)
        return chown(*args, **options)

    monkeypatch.setattr(os, "chown", slow)
    yield disk
    disk.open()


def _volume(status, pod="web"):
    (found,) = [volume for each in status if each.name == pod for volume in each.volumes]
    return found


def test_the_group_is_applied_and_counted_fsgrp09(manager, bind, nfs, data):
    seen = []

    class Metrics:
        def observe(self, operation, seconds, error, labels):
            seen.append((operation, error, labels.plugin))

        def mounted(self, seconds, labels):
            pass

    with manager(bind(), enter=False, metrics=Metrics()) as node:
        node.mount_pod(_pod(nfs()), timeout=30)
        assert set(_groups(data)) == {GROUP}
        assert stat.S_IMODE(os.stat(data).st_mode) & 0o2770 == 0o2770
        assert _volume(node.status()).progress == ""
    assert ("volume_apply_access_control", None, "example.com/bind") in seen


@pytest.mark.parametrize(("policy", "walked"), [("OnRootMismatch", False), ("Always", True), (None, True)])
def test_fsgrp05_the_policy_of_the_pod_decides_whether_a_right_root_is_enough(manager, bind, nfs, data, policy, walked):
    node = manager(bind())
    node.mount_pod(_pod(nfs()), timeout=30)
    os.chown(f"{data}/a/file", -1, OTHER_GROUP)
    node.mount_pod(_pod(nfs(), name="again", policy=policy), timeout=30)
    assert (os.stat(f"{data}/a/file").st_gid == GROUP) is walked


def test_a_walk_that_takes_long_shows_how_far_it_is_and_holds_up_no_other(
    manager, bind, nfs, root, data, until, slow_disk
):
    node = manager(bind())
    with pytest.raises(WaitTimeoutError):
        node.mount_pod(_pod(nfs()), timeout=0)
    slow_disk.turns.release(2)
    until(lambda: "2 entries" in _volume(node.status()).progress)
    stuck = _volume(node.status())
    assert (stuck.step, stuck.progress) == ("set-up", "ownership, 2 entries")
    assert "ownership, 2 entries" in stuck.explain()
    for number in range(3):
        node.mount_pod({**_pod(nfs(), name=f"other-{number}", group=None)}, timeout=30)
    until(lambda: _volume(read_status(root).pods).progress == "ownership, 2 entries")
    until(lambda: "chown" in _volume(node.status()).where or "slow" in _volume(node.status()).where)
    slow_disk.open()
    until(lambda: _volume(node.status()).ready)
    assert set(_groups(data)) == {GROUP}


def test_a_pod_that_goes_does_not_wait_for_the_walk(manager, bind, nfs, data, mounts, slow_disk, until, caplog):
    node = manager(bind())
    with pytest.raises(WaitTimeoutError):
        node.mount_pod(_pod(nfs()), timeout=0)
    until(lambda: slow_disk.calls == 1)
    with pytest.raises(WaitTimeoutError):
        node.unmount_pod("web", timeout=0)
    slow_disk.turns.release(1)  # the call that the walk was in ends; no other is begun
    node.unmount_pod("web", timeout=30)
    assert slow_disk.calls == 1
    assert mounts() == []
    assert os.stat(data).st_gid != GROUP
    assert [event.reason for event in node.api.list(Event).items] == []
    assert "failed" not in caplog.text
    slow_disk.open()
    node.mount_pod(_pod(nfs(), name="next", policy="OnRootMismatch"), timeout=30)
    assert set(_groups(data)) == {GROUP}


def test_br54_a_manager_that_stops_ends_the_walk_and_the_next_one_makes_it(
    manager, bind, nfs, root, data, mounts, slow_disk, until
):
    with manager(bind(), enter=False) as node:
        with pytest.raises(WaitTimeoutError):
            node.mount_pod(_pod(nfs(), policy="OnRootMismatch"), timeout=0)
        until(lambda: slow_disk.calls == 1)
        slow_disk.turns.release(1)
        entry = node.parts.pending.running()[0]
        threading.Thread(target=lambda: (until(lambda: entry.stopping), slow_disk.turns.release(1))).start()
    assert slow_disk.calls <= 2
    assert os.stat(data).st_gid != GROUP
    slow_disk.open()
    with manager(bind(), enter=False) as node:
        (pod,) = node.api.list(Pod).items
        node.sync_pod(pod)
        assert node.wait_for_pod(pod, timeout=30).ready
    assert set(_groups(data)) == {GROUP}
    assert len(mounts()) == 1


def test_fsgrp06_a_walk_in_which_the_process_was_killed_is_made_again(manager, bind, nfs, root, data, mounts):
    """The child dies in its third change; the root, which would say that all is done, comes last."""
    program = Path(__file__).with_name("killed_in_a_walk.py")
    pod = json.dumps(_pod(nfs(), policy="OnRootMismatch"))
    done = subprocess.run([sys.executable, str(program), root, pod], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert os.stat(data).st_gid != GROUP
    assert GROUP in _groups(data)
    node = manager(bind())
    (pod,) = node.api.list(Pod).items
    node.sync_pod(pod)
    assert node.wait_for_pod(pod, timeout=30).ready
    assert set(_groups(data)) == {GROUP}
    assert len(mounts()) == 1
