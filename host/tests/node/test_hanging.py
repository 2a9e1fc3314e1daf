"""A plugin that never returns: who else works on, and what is told of the one that hangs (BR-52)."""

import contextlib
import threading
import time

import pytest

from volumehost import hookimpl
from volumehost.errors import WaitTimeoutError
from volumehost.node.status.recorded import read_status

pytestmark = pytest.mark.root


def _pod(*volumes, name="web"):
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": list(volumes)}}


@pytest.fixture
def gate():
    """What hangs waits for it; open at the end."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def hang(gate):
    """Hangs; ``begun`` counts how many do."""

    def hangs_here():
        hangs_here.begun.release()
        gate.wait(100)

    hangs_here.begun = threading.Semaphore(0)
    return hangs_here


class StandingClock:
    """Stands until it is let run, and may be moved on before."""

    def __init__(self):
        self.now, self.since = 1000.0, None

    def __call__(self):
        return self.now if self.since is None else self.now + time.monotonic() - self.since

    def run(self):
        self.since = time.monotonic()


def _begin(node, pod):
    with pytest.raises(WaitTimeoutError):
        node.mount_pod(pod, timeout=0)


def _volume(status, pod="web"):
    (found,) = [volume for each in status if each.name == pod for volume in each.volumes]
    return found


def test_br52_a_mount_that_hangs_shows_also_when_its_pod_has_ended_meanwhile(manager, bind, nfs, until, hang, gate):
    plugin = bind()
    plugin.trouble["set_up"] = hang
    node = manager(plugin)
    _begin(node, _pod(nfs()))
    assert hang.begun.acquire(timeout=30)
    (pod,) = node.status()
    node.end_pod(pod.uid, pod.namespace, pod.name)
    until(lambda: _volume(node.status()).where)
    stuck = _volume(node.status())
    assert (stuck.volume, stuck.state, stuck.step) == ("v", "mounting", "set-up")
    left = node.parts.status.of_leftover(pod.uid)
    assert [(each.volume, each.step) for each in left.volumes] == [("v", "set-up")]
    assert "hangs_here" in str(node.explain(left).details())
    gate.set()
    until(lambda: node.parts.services.actual.pods() == [] and not node.parts.pending.running())


@pytest.mark.parametrize("step", ["new_mounter", "set_up"])
def test_br52_a_plugin_that_never_returns_shows_with_its_place_and_holds_up_no_other(
    manager, bind, nfs, root, until, hang, gate, step
):
    plugin = bind()
    plugin.trouble[step] = hang
    node = manager(plugin)
    _begin(node, _pod(nfs()))
    assert hang.begun.acquire(timeout=30)
    del plugin.trouble[step]
    for number in range(3):
        node.mount_pod(_pod(nfs(), name=f"other-{number}"), timeout=30)
        node.unmount_pod(f"other-{number}", timeout=30)
    until(lambda: _volume(node.status()).where)
    stuck = _volume(node.status())
    assert (stuck.state, stuck.operation) == ("mounting", "volume_mount")
    assert stuck.step == {"new_mounter": "check", "set_up": "set-up"}[step]
    assert stuck.age >= 1
    assert stuck.where.endswith(" hangs_here")
    assert "test_hanging.py:" in stuck.where
    assert stuck.where in stuck.explain()
    until(lambda: _volume(read_status(root).pods).where)
    recorded = _volume(read_status(root).pods)
    assert (recorded.step, recorded.where, recorded.age >= 1) == (stuck.step, stuck.where, True)
    gate.set()
    for status in (node.status, lambda: read_status(root).pods):
        until(lambda status=status: _volume(status()).ready)
        assert _volume(status()).where == ""


def test_br52_a_plugin_that_never_ends_a_teardown_shows_with_its_place(
    manager, bind, nfs, root, until, hang, gate, kept
):
    plugin = bind()
    node = manager(plugin)
    node.mount_pod(_pod(nfs()), timeout=30)
    plugin.trouble["tear_down"] = hang
    kept(node, "web", "hangs_here")
    del plugin.trouble["tear_down"]
    node.mount_pod(_pod(nfs(), name="other"), timeout=30)
    node.unmount_pod("other", timeout=30)
    stuck = _volume(node.status())
    assert (stuck.state, stuck.step) == ("unmounting", "tear-down")
    until(lambda: _volume(read_status(root).pods).where == stuck.where)
    gate.set()
    node.unmount_pod("web", timeout=30)
    until(lambda: read_status(root).pods == (), what="no record comes back of what is gone")


def test_br52_what_finds_no_worker_says_who_hangs(manager, bind, nfs, data, until, hang, gate):
    plugin, other = bind(), bind("example.com/other")
    other.sources = ("cephfs",)
    plugin.trouble["set_up"] = hang
    clock = StandingClock()
    node = manager(plugin, other, clock=clock)
    pods = [f"hung-{number}" for number in range(20)]
    for name in pods:
        _begin(node, _pod(nfs(), name=name))
    until(lambda: node.parts.pool.hurry() is False)
    for _ in range(16):
        assert hang.begun.acquire(timeout=30)
    cephfs = {"name": "v", "cephfs": {"monitors": ["m"], "path": data}}
    for number in range(10):
        node.mount_pod(_pod(cephfs, name=f"other-{number}"), timeout=30)
    told = "waiting for a worker, {} operations of example.com/bind hang"
    clock.now += 1.5
    assert sum(told.format(16) in _volume(node.status(), name).where for name in pods) == 4
    # Those that are stuck do not count against the plugin's share, so that these get their turn after a while.
    clock.run()
    until(lambda: plugin.count("set_up") == len(pods))
    assert node.parts.pool.threads <= 32 + 16
    gate.set()
    for name in pods:
        node.unmount_pod(name, timeout=60)


def test_br54_a_manager_lets_go_within_its_grace_though_a_plugin_hangs(bind, nfs, root, manager, hang, gate, caplog):
    plugin = bind()
    plugin.trouble["set_up"] = hang
    with contextlib.ExitStack() as stack:
        node = stack.enter_context(manager(plugin, enter=False, exit_grace=0.1))
        _begin(node, _pod(nfs()))
        assert hang.begun.acquire(timeout=30)
    assert "the root directory stays locked until this process ends: volume_mount" in caplog.text


def test_br54_nor_does_a_plugin_that_hangs_in_its_shutdown_keep_it(bind, nfs, root, manager, hang, gate, caplog):
    class Staying(bind):
        @hookimpl
        def shutdown(self):
            hang()

    with manager(Staying(), enter=False, exit_grace=0.1) as node:
        node.mount_pod(_pod(nfs()), timeout=30)
    assert hang.begun.acquire(timeout=30)
    assert "the plugins have not shut down" in caplog.text
    gate.set()
