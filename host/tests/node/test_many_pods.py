"""Many pods at once: begun and waited for together, refreshed a few at a time, one thread as long as it is quick."""

import os
import threading
import time

import pytest

from volumehost.api.convert import to_object
from volumehost.api.objects import Pod
from volumehost.node import upkeep
from volumehost.node.execution.computing import Computing
from volumehost.node.execution.workers import WorkerPool
from volumehost.node.journal.journal import Journal
from volumehost.node.populating.pod_objects import apply_pod


def _pod(name, *volumes):
    mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": list(volumes)}}


@pytest.mark.root
def test_many_pods_are_mounted_by_one_write_to_the_journal(manager, bind, nfs, mounts, monkeypatch):
    node = manager(bind())
    pods = [apply_pod(node.api, _pod(f"pod-{number}", nfs("a"), nfs("b"))) for number in range(12)]
    writes = []
    write = Journal.write
    monkeypatch.setattr(Journal, "write", lambda self, *records: writes.append(len(records)) or write(self, *records))
    assert node.mounting.begin_all(pods) == []
    assert writes == [24]
    assert node.mounting.wait_all([pod.metadata.uid for pod in pods], 20) == []
    assert len(mounts()) == 24


@pytest.mark.root
def test_a_pod_that_is_being_unmounted_or_fails_keeps_no_other(manager, bind, nfs, mounts):
    plugin = bind()
    node = manager(plugin)
    one, ended, failing = (apply_pod(node.api, _pod(name, nfs("a"))) for name in ("one", "ended", "failing"))
    node.parts.populator.end(ended.metadata.uid)
    failing.spec.volumes[0].nfs.path = "/not/there"
    assert node.mounting.begin_all([failing, ended, one]) == [ended]
    assert node.mounting.wait_all([one.metadata.uid], 20) == []
    assert node.mounting.wait_all([failing.metadata.uid], 0.1) == [failing.metadata.uid]
    assert len(mounts()) == 1


@pytest.mark.root
def test_only_pods_with_volumes_that_want_it_are_refreshed(manager, bind, nfs):
    plain, refreshed = bind(), bind("example.com/refreshed")
    refreshed.sources, refreshed.remount = ("iscsi",), True
    node = manager(plain, refreshed)
    iscsi = {"name": "b", "iscsi": {"targetPortal": "192.0.2.1:3260", "iqn": "iqn.2026-01.com.example:v", "lun": 0}}
    node.mount_pod(_pod("plain", nfs("a")), timeout=20)
    pod = apply_pod(node.api, _pod("refreshed", iscsi))
    node.mounting.begin_all([pod])
    assert node.mounting.followed() == [pod.metadata.uid]


@pytest.mark.root
def test_upkeep_refreshes_many_pods_a_few_at_a_time(manager, monkeypatch):
    parts = manager().parts
    later = []
    monkeypatch.setattr(type(parts), "later", lambda self, seconds, function: later.append((seconds, function)))

    class Mounting:
        def __init__(self):
            self.together = []

        def followed(self):
            return [str(number) for number in range(4000)]

        def sync(self, uids):
            self.together.append(len(list(uids)))

    mounting = Mounting()
    upkeep.Upkeep(parts, None, mounting, None)._sync()
    (next_round, _), *_ = later
    assert upkeep.SYNC_SECONDS <= next_round <= upkeep.SYNC_SECONDS * (1 + upkeep.SYNC_JITTER)
    del later[0]
    while later:
        (seconds, go_on) = later.pop()
        assert seconds == upkeep.SYNC_PAUSE
        go_on()
    assert sum(mounting.together) == 4000
    assert max(mounting.together) <= 4000 * upkeep.SYNC_PAUSE / upkeep.SYNC_SPREAD
    assert len(mounting.together) * upkeep.SYNC_PAUSE <= upkeep.SYNC_SPREAD


# --- threads --------------------------------------------------------------------------------------------------------


@pytest.fixture
def pool():
    made = WorkerPool(time.monotonic)
    yield made
    assert made.stop(20)


def test_nobody_joins_in_while_one_thread_computes_and_is_quick(clock, until, monkeypatch):
    """They would contend for the interpreter, and all of it would take longer."""
    pool = WorkerPool(clock)  # on a busy machine what is quick may take long
    monkeypatch.setattr(pool._computing, "any", lambda: True)
    left, begun = [3000], threading.Event()

    def compute():
        begun.set()
        sum(range(3000))
        left[0] -= 1

    try:
        pool.submit("lane", *[compute] * left[0])
        assert begun.wait(30)
        until(lambda: pool.hurry() is False)
        assert pool.threads == 1
        until(lambda: left[0] == 0)
    finally:
        assert pool.stop(30)


def test_br52_others_join_in_where_one_thread_waits_for_somebody(pool, until):
    gate, waiting = threading.Event(), []

    def wait():
        waiting.append(None)
        gate.wait(30)

    pool.submit("lane", *[wait] * 4)
    until(lambda: pool.hurry() is False)
    until(lambda: len(waiting) == 4)
    gate.set()


def test_a_thread_that_computes_is_told_from_one_that_waits(until):
    begun, stop = threading.Event(), threading.Event()
    ids = []

    def compute():
        ids.append(threading.get_native_id())
        begun.set()
        while not stop.is_set():
            sum(range(1000))

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        assert begun.wait(30)
        one, other = Computing(), Computing()
        one.begin(ids[0])
        until(one.any)
        other.begin(threading.get_native_id())
        until(lambda: not other.any())
        one.end(ids[0])
        assert not one.any()
    finally:
        stop.set()
        thread.join(30)


def test_threads_that_contend_for_the_interpreter_compute_together(until):
    """Each of them waits most of the time, for the others."""
    stop, begun = threading.Event(), threading.Barrier(7, timeout=20)
    ids = []

    def compute():
        ids.append(threading.get_native_id())
        begun.wait()
        while not stop.is_set():
            sum(range(1000))

    threads = [threading.Thread(target=compute) for _ in range(6)]
    for thread in threads:
        thread.start()
    try:
        begun.wait()
        computing = Computing()
        for each in ids:
            computing.begin(each)
        until(computing.any)
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)


def test_of_threads_that_compute_all_but_one_stop(clock, until, monkeypatch):
    pool = WorkerPool(clock)
    begun, gate, at, done = threading.Semaphore(0), threading.Event(), set(), threading.Event()

    def wait():
        begun.release()
        gate.wait(30)

    try:
        pool.submit("lane", *[wait] * 3)
        monkeypatch.setattr(pool._computing, "any", lambda: False)
        until(lambda: pool.hurry() is False)
        for _ in range(3):
            assert begun.acquire(timeout=30)
        pool.submit("lane", *[lambda: at.add(threading.current_thread())] * 500, done.set)
        monkeypatch.setattr(pool._computing, "any", lambda: True)
        assert pool.hurry()
        gate.set()
        assert done.wait(30)
        assert len(at) == 1
    finally:
        gate.set()
        assert pool.stop(1000)


def test_a_thread_that_is_gone_computes_no_more():
    computing = Computing()
    thread = threading.Thread(target=lambda: computing.begin(threading.get_native_id()))
    thread.start()
    thread.join(30)
    assert not computing.any()


def test_threads_that_end_leave_no_descriptor(until):
    before = set(os.listdir("/proc/self/fd"))
    pool, gate = WorkerPool(time.monotonic), threading.Event()
    pool.submit("lane", *[lambda: gate.wait(30)] * 4)
    until(lambda: pool.hurry() is False)
    gate.set()
    assert pool.stop(20)
    until(lambda: pool.threads == 0)
    assert set(os.listdir("/proc/self/fd")) <= before


def test_many_pods_that_are_begun_together_are_read_once(make_pod):
    from volumehost.node.state.kept_pods import OBJECTS, KeptPods

    pods = KeptPods()
    told = [make_pod(name="web", uid=str(number)) for number in range(OBJECTS + 2)]
    with pods.all_as_objects():
        kept = [pods.keep(pod) for pod in told]
        assert all(one.pod is other for one, other in zip(kept, told, strict=True))
    assert [one.pod is other for one, other in zip(kept[:3], told, strict=False)] == [False, False, False]
    assert kept[-1].pod is told[-1]


def test_what_was_told_of_pods_is_their_own(make_pod):
    """A pod is kept as text, so what its teller does to the object later reaches nobody who reads it again."""
    from volumehost.node.state.kept_pods import OBJECTS, KeptPods

    pods, pod = KeptPods(), make_pod(name="web")
    kept = pods.keep(pod)
    pod.metadata.name = "changed"
    for number in range(OBJECTS):
        pods.keep(to_object(Pod, {"metadata": {"name": "x", "uid": str(number)}}))
    assert kept.pod.metadata.name == "web"
