"""Lanes: whose turn it is, how much of the threads a lane may hold, and what counts as slow (BR-52)."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.api.convert import to_object
from volumehost.api.objects import PersistentVolume, Volume
from volumehost.node.execution.lanes import SLOW_SECONDS, Lanes, lane_of, lane_of_pod
from volumehost.spec import Spec


@pytest.fixture
def lanes():
    return Lanes(share=2, limit=64, stuck_after=10)


def named(name):
    """A task that can be told from others."""

    def task():
        raise NotImplementedError

    task.__name__ = name
    return task


def take(lanes, worker, now=0.0):
    taken = lanes.take(worker, now)
    return taken.task.__name__ if taken is not None else None


def test_lanes_take_turns_and_tasks_of_a_lane_keep_their_order(lanes):
    lanes.put("a", named("a1"), named("a2"), named("a3"))
    lanes.put("b", named("b1"))
    lanes.put("c", named("c1"), named("c2"))
    order = []
    while lanes.can_take(0):
        order.append(take(lanes, 1))
        lanes.end(1, 0)
    assert order == ["a1", "b1", "c1", "a2", "c2", "a3"]
    assert take(lanes, 1) is None


def test_a_lane_has_its_share_and_the_next_one_goes_on(lanes):
    lanes.put("a", *[named("a")] * 5)
    lanes.put("b", *[named("b")] * 5)
    assert [take(lanes, worker) for worker in range(5)] == ["a", "b", "a", "b", None]
    assert not lanes.can_take(0)
    lanes.end(1, 0)
    assert take(lanes, 9) == "b"


def test_one_quick_worker_goes_on_in_its_lane(lanes):
    """Which comes to the same as to end a task and take the next; in every other case it has to ask."""
    lanes.put("a", *map(named, ("a1", "a2", "a3", "a4", "a5")))
    assert lanes.go_on(1, 0.0) is None, "it is at no task"
    assert take(lanes, 1) == "a1"
    assert lanes.go_on(1, 0.05).__name__ == "a2"
    assert lanes.go_on(2, 0.05) is None, "another one"
    assert lanes.go_on(1, 0.05 + SLOW_SECONDS + 0.01) is None, "the last one took long"
    assert take(lanes, 2, 0.1) == "a3"
    assert lanes.go_on(1, 0.1) is None, "there are two at work"
    lanes.end(2, 0.1)
    lanes.put("b", named("b1"))
    assert lanes.go_on(1, 0.1) is None, "it is the turn of the other lane"
    assert take(lanes, 3, 0.1) == "a4"
    lanes.end(3, 0.1)
    assert take(lanes, 3, 0.1) == "b1"
    lanes.end(3, 0.1)
    assert lanes.go_on(1, 0.1).__name__ == "a5"
    assert lanes.go_on(1, 0.1) is None, "nothing is left"
    assert not lanes.can_take(0.1)
    lanes.put("a", named("a6"))
    lanes.nearly_end(1, 0.1)
    assert lanes.go_on(1, 0.1) is None, "it is at its end in another way"


def test_what_is_stuck_does_not_count_against_the_share(lanes):
    lanes.put("a", *[named("a")] * 5)
    assert [take(lanes, worker) for worker in range(3)] == ["a", "a", None]
    assert not lanes.can_take(10)
    assert [take(lanes, worker, 10.1) for worker in range(3, 6)] == ["a", "a", None]


def test_a_lane_is_slow_once_a_task_took_long_until_one_does_not(lanes):
    lanes.put("a", *[named("a")] * 4)
    assert not lanes.take(1, 0).alone
    assert lanes.take(2, SLOW_SECONDS * 2).alone, "the first is still at it"
    lanes.end(1, 1)
    lanes.end(2, 1)
    assert lanes.take(1, 2).alone, "the last one was"
    lanes.end(1, 2 + SLOW_SECONDS / 2)
    assert not lanes.take(1, 3).alone


def test_who_is_at_the_end_of_its_task_is_quick_and_leaves_its_place_in_the_lane(lanes):
    lanes.put("a", *[named("a")] * 3)
    lanes.take(1, 0)
    lanes.take(2, 0)
    assert not lanes.somebody_is_quick(1)
    assert not lanes.can_take(1)
    lanes.nearly_end(1, 1)
    assert lanes.somebody_is_quick(1)
    assert lanes.can_take(1)
    assert (lanes.busy, lanes.slow(1)) == (2, 1)
    lanes.end(1, 1)
    assert lanes.busy == 1
    lanes.nearly_end(7, 1)  # somebody who is at nothing
    lanes.end(7, 1)
    assert lanes.busy == 1


def test_what_waits_can_be_dropped(lanes):
    lanes.put("a", named("a"), named("a"))
    lanes.take(1, 0)
    lanes.clear()
    assert take(lanes, 2) is None
    lanes.put("a", named("again"))
    assert take(lanes, 2) == "again"


@given(st.lists(st.integers(1, 400), min_size=1, max_size=21))
def test_br52_however_many_operations_hang_in_twenty_lanes_another_lane_gets_a_thread(hung):
    """With the numbers of the real pool, after hours."""
    lanes, worker = Lanes(share=16, limit=256, stuck_after=2), 0
    for number, count in enumerate(hung):
        lanes.put(f"hung-{number}", *[named("hung")] * count)
    for now in range(0, 3600, 60):
        while lanes.take(worker, now) is not None:
            worker += 1
    assert lanes.busy < 256
    lanes.put("good", named("good"))
    assert take(lanes, -1, 3600) == "good"


def test_br52_one_lane_that_hangs_holds_a_fifth_of_the_threads(lanes):
    lanes = Lanes(share=16, limit=256, stuck_after=2)
    lanes.put("hung", *[named("hung")] * 1000)
    for now in range(100):
        while lanes.take(len(range(lanes.busy)), now) is not None:
            pass
    assert lanes.busy == 51


# --- which lane an operation is in ------------------------------------------------------------------------------------

CSI = {"driver": "fake.csi.example.com", "volumeHandle": "h"}
CLAIMED = Spec.from_persistent_volume(
    to_object(PersistentVolume, {"metadata": {"name": "pv"}, "spec": {"capacity": {"storage": "1"}, "csi": CSI}}), False
)
INLINE = Spec.from_volume(to_object(Volume, {"name": "v", "csi": {"driver": "inline.csi.example.com"}}))
OTHER = Spec.from_volume(to_object(Volume, {"name": "v", "emptyDir": {}}))


@pytest.mark.parametrize(
    ("spec", "lane"),
    [
        (CLAIMED, "fake.csi.example.com"),
        (INLINE, "inline.csi.example.com"),
        (OTHER, "example.com/plugin"),
        (None, "example.com/plugin"),
    ],
)
def test_the_lane_is_the_driver_or_else_the_plugin(spec, lane):
    operation = SimpleNamespace(spec=spec, plugin_name="example.com/plugin", key=SimpleNamespace(volume="v"))
    assert lane_of(operation, SimpleNamespace(get_volume=lambda name: None)) == lane


def test_a_teardown_without_a_spec_has_that_of_the_volume():
    operation = SimpleNamespace(spec=None, plugin_name="example.com/plugin", key=SimpleNamespace(volume="v"))
    actual = SimpleNamespace(get_volume=lambda name: SimpleNamespace(spec=CLAIMED))
    assert lane_of(operation, actual) == "fake.csi.example.com"


def test_pods_with_the_same_kinds_of_volumes_share_a_lane(make_pod):
    scratch, nfs = {"name": "a", "emptyDir": {}}, {"name": "b", "nfs": {"server": "s", "path": "/"}}
    assert lane_of_pod(make_pod(scratch, nfs)) == lane_of_pod(make_pod(nfs, scratch, name="other"))
    assert len({lane_of_pod(make_pod(*volumes)) for volumes in ((), (scratch,), (nfs,), (scratch, nfs))}) == 4
