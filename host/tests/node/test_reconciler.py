"""The reconciler works on what changed and on nothing else (SCEN-08, -10, RECON-L-02, -11, -20)."""

import threading
import time

import pytest

from volumehost.loader.origin import Origin
from volumehost.node.execution.executor import Executor
from volumehost.node.execution.pending import OperationKey, PendingOperations
from volumehost.node.execution.timers import Timers
from volumehost.node.execution.workers import WorkerPool
from volumehost.node.journal.journal import Journal
from volumehost.node.local_control import LocalControl
from volumehost.node.operations.common import Services
from volumehost.node.reconciler import DirtyKeys, Reconciler
from volumehost.node.state.actual import ActualState
from volumehost.node.state.desired import DesiredState, VolumeUse
from volumehost.node.state.records import MountedVolume
from volumehost.node.state.states import Attachability, MountState
from volumehost.spec import Spec


class Wishes:
    """Says yes, and counts how often it was asked."""

    def __init__(self):
        self.asked = 0
        self.unwanted = set()
        self.mounting = True

    def may_mount(self, pod_uid):
        self.asked += 1
        return self.mounting

    def is_unwanted(self, volume, pod_uid):
        self.asked += 1
        return (volume, pod_uid) in self.unwanted

    def is_device_unwanted(self, volume):
        return False


class Plugin:
    name = "a.b/p"
    origin = Origin()


class Made:
    """A reconciler whose operations are started and wait for a worker that never comes."""

    def __init__(self, path):
        self.dirty, self.wishes, self.notified = DirtyKeys(), Wishes(), []
        self.timers = Timers(time.monotonic)
        self.journal = Journal(path, boot_id="b")
        self.journal.open()
        self.services = Services(
            plugins=None,
            host=None,
            desired=DesiredState(self.dirty.mark),
            actual=ActualState(self.dirty.mark),
            journal=self.journal,
            timers=self.timers,
            clock=time.monotonic,
            wall_clock=time.time,
            control=LocalControl(None, None, enabled=False),
        )
        self.pending = PendingOperations(time.monotonic)
        pool = WorkerPool(time.monotonic, size=0)
        self.executor = Executor(self.services, self.pending, pool, self.timers)
        self.reconciler = Reconciler(
            self.dirty, self.services, self.executor, self.wishes, self.timers, notify=self.notified.append
        )

    @property
    def started(self):
        return [(entry.name, entry.key.volume, entry.key.pod) for entry in self.pending.running()]

    def finish(self, error=None):
        """The one operation that runs ends."""
        (entry,) = self.pending.running()
        self.executor.on_finished(entry.key.volume, entry.pod_uid, self.pending.finish(entry, error))


@pytest.fixture
def made(tmp_path):
    parts = Made(str(tmp_path / "journal"))
    yield parts
    parts.timers.stop()
    parts.journal.close()


@pytest.fixture
def spec(make_pod):
    return Spec.from_volume(make_pod({"name": "v", "emptyDir": {}}).spec.volumes[0])


@pytest.fixture
def want(made, spec, make_pod):
    def make(volume, uid="u1", **fields):
        fields = {"attachable": False, "device_mountable": False, **fields}
        use = VolumeUse(volume, make_pod(uid=uid), spec, ("v",), Plugin(), **fields)
        made.services.desired.add(use)

    return make


@pytest.fixture
def have(made, spec):
    def make(volume, uid="u1", state=MountState.MOUNTED):
        made.services.actual.mark_attached(volume, "a.b/p", spec, Attachability.FALSE)
        made.services.actual.put_mount(MountedVolume(volume, uid, "web", "default", "a.b/p", "v", state))

    return make


def test_what_is_wanted_and_missing_is_mounted(made, want):
    want("a")
    made.reconciler.run()
    assert made.started == [("volume_mount", "a", "u1")]


def test_br39_on_a_volume_that_pods_share_one_operation_runs_at_a_time(made, want, have):
    want("a", device_mountable=True)
    want("a", "u2", device_mountable=True)
    have("a", "u3")
    have("a", "u4")
    made.wishes.unwanted |= {("a", "u3"), ("a", "u4")}
    seen = []
    made.reconciler.run()
    for _ in range(4):
        ((name, _volume, uid),) = made.started
        seen.append((name, uid))
        made.services.actual.mark_unmounted("a", uid)
        if name == "volume_mount":
            have("a", uid)
        made.finish()
    assert sorted(seen[:2]) == [("volume_unmount", "u3"), ("volume_unmount", "u4")]
    assert sorted(seen[2:]) == [("volume_mount", "u1"), ("volume_mount", "u2")]


def test_what_is_there_and_wanted_is_left_alone(made, want, have):
    want("a")
    have("a")
    made.reconciler.run()
    assert made.started == []


def test_scen08_nothing_is_unmounted_that_is_not_certainly_unwanted(made, have):
    have("a")
    made.reconciler.run()
    assert made.started == []
    made.wishes.unwanted = {("a", "u1")}
    made.reconciler.resync()
    assert made.started == [("volume_unmount", "a", "u1")]


def test_recon_l11_unmount_comes_before_mount(made, want, have):
    want("b", "u2")
    have("a", "u1")
    made.wishes.unwanted = {("a", "u1")}
    made.reconciler.run()
    assert [name for name, *_ in made.started] == ["volume_unmount", "volume_mount"]


def test_a_pod_that_is_not_in_focus_is_not_mounted(made, want):
    made.wishes.mounting = False
    want("a")
    made.reconciler.run()
    assert made.started == []


def test_scen10_nothing_starts_while_something_runs_and_its_end_brings_it_back(made, want):
    made.pending.start(OperationKey("a", "u9"), "volume_unmount", "u9")
    want("a", device_mountable=True)
    made.reconciler.run()
    assert made.started == [("volume_unmount", "a", "u9")]
    made.finish()
    assert made.started == [("volume_mount", "a", "u1")]
    assert made.notified == ["u9", "a"]


def test_a_failure_is_looked_at_again_after_its_delay(made, want, until):
    want("a")
    made.reconciler.run()
    made.finish(ValueError())
    assert made.started == []
    made.reconciler.resync()
    assert made.started == []
    until(lambda: made.started == [("volume_mount", "a", "u1")])


def test_one_key_that_makes_trouble_does_not_stop_the_others(made, want, caplog):
    original = made.wishes.may_mount

    def trouble(pod_uid):
        if pod_uid == "bad":
            raise ValueError("oops")
        return original(pod_uid)

    made.wishes.may_mount = trouble
    want("a", "bad")
    want("b", "good")
    made.reconciler.run()
    assert made.started == [("volume_mount", "b", "good")]
    assert "could not be reconciled" in caplog.text


def test_nothing_starts_after_stop(made, want):
    made.reconciler.stop()
    want("a")
    made.reconciler.run()
    assert made.started == []


def test_ten_thousand_idle_volumes_cost_nothing_and_one_change_costs_one_look(made, want, have):
    for number in range(10_000):
        want(f"v{number}")
        have(f"v{number}")
    made.reconciler.run()
    made.wishes.asked = 0
    for _ in range(1000):
        made.reconciler.run()
    assert made.wishes.asked == 0
    want("one-more")
    made.reconciler.run()
    assert made.wishes.asked <= 4
    assert made.started == [("volume_mount", "one-more", "u1")]


def test_changes_that_come_while_it_works_are_taken_by_whoever_works(made, want):
    inside, go_on, done = threading.Event(), threading.Event(), []
    original = made.wishes.may_mount

    def slow(pod_uid):
        inside.set()
        go_on.wait(30)
        return original(pod_uid)

    made.wishes.may_mount = slow
    want("a")
    worker = threading.Thread(target=lambda: (made.reconciler.run(), done.append(1)))
    worker.start()
    assert inside.wait(30)
    want("b")
    made.reconciler.run()  # returns at once
    assert not done
    go_on.set()
    worker.join(30)
    assert {volume for _, volume, _ in made.started} == {"a", "b"}
    assert not made.dirty


def test_a_key_that_begins_to_wait_while_one_of_two_operations_ends_is_not_forgotten(made, want):
    """The end of the first takes along all that waited; the second must still find the key that came meanwhile."""

    class Name(str):
        """Called back each time that it is looked up in a table."""

        __slots__ = ()

        def __hash__(self):
            if looked_up:
                looked_up.pop()()
            return str.__hash__(self)

    def end(entry):
        made.executor.on_finished(entry.key.volume, entry.pod_uid, made.pending.finish(entry, None))

    first, second = (
        made.pending.start(OperationKey("a", uid), "volume_unmount", uid) for uid in ("u1", "u2")
    )  # of one volume, for two pods
    is_busy, looked_up = made.executor.is_busy, []

    def is_busy_and_then_ends(volume, pod_uid=""):
        busy = is_busy(volume, pod_uid)
        if pod_uid == "" and first.running:
            looked_up[:] = [lambda: end(first), lambda: None]  # at the second look-up: the key is being put aside
        return busy

    made.executor.is_busy = is_busy_and_then_ends
    want(Name("a"), "u3", device_mountable=True)
    made.reconciler.run()
    assert not first.running
    assert made.started == [("volume_unmount", "a", "u2")]
    end(second)
    assert made.started == [("volume_mount", "a", "u3")]
