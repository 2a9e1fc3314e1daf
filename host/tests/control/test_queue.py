"""The queue: one run for a key at a time, no change missed, backoff."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from volumehost.control.machinery.controller import Key
from volumehost.control.machinery.queue import CONFLICTS, MAXIMUM_DELAY, Item, WorkQueue
from volumehost.errors import (
    ConflictError,
    DeletedVolumeInUseError,
    OperationError,
    StorageDriverError,
    StorageDriverUnavailableError,
)


class Owner:
    name = "owner"
    kind = object


A = Item(Owner(), Key("a"))  # type: ignore[arg-type]
B = Item(Owner(), Key("b"))  # type: ignore[arg-type]


@pytest.fixture
def queue(clock: Any) -> WorkQueue:
    return WorkQueue(clock, 1.0)


def fail(queue: WorkQueue, error: Exception, item: Item = A) -> None:
    assert queue.take(0) == item
    queue.finish(item, error=error)


def due_in(queue: WorkQueue, clock: Any, item: Item = A) -> float:
    record = queue.record(item)
    assert record is not None
    assert record.due_at is not None
    return float(record.due_at - clock())


def test_a_key_that_is_queued_is_not_queued_twice(queue: WorkQueue) -> None:
    queue.add(A)
    queue.add(A)
    assert queue.take(0) == A
    queue.finish(A)
    assert queue.take(0) is None


def test_a_key_that_runs_is_not_handed_out_and_comes_once_more(queue: WorkQueue) -> None:
    queue.add(A)
    queue.take(0)
    queue.add(A)
    queue.add(A)
    assert queue.take(0) is None
    queue.finish(A)
    assert queue.take(0) == A
    queue.finish(A)
    assert queue.take(0) is None
    assert queue.record(A) is None, "what is at rest is forgotten"


def test_a_change_that_is_not_urgent_is_not_missed_by_a_run_that_works(queue: WorkQueue) -> None:
    queue.add(A)
    queue.take(0)
    queue.add(A, urgent=False)
    queue.finish(A)
    assert queue.take(0) == A


# --- what an attempt writes itself ------------------------------------------------------------------------------------


def test_br53_what_a_failed_attempt_wrote_is_no_news_whenever_it_is_told(queue: WorkQueue, clock: Any) -> None:
    queue.add(A)
    queue.take(0)
    queue.add(A, fresh=True, version="7")  # told before the attempt has ended
    queue.finish(A, error=OperationError("no"), wrote=frozenset({"7", "8"}))
    assert queue.take(0) is None
    queue.add(A, fresh=True, version="8")  # and after
    assert queue.take(0) is None
    assert due_in(queue, clock) == 1.0


def test_br53_nor_is_what_an_earlier_one_wrote(queue: WorkQueue, clock: Any) -> None:
    queue.add(A)
    queue.take(0)
    queue.finish(A, error=OperationError("no"), wrote=frozenset({"7"}))
    clock.advance(1)
    queue.take(0)
    queue.add(A, fresh=True, version="7")
    queue.finish(A, error=OperationError("no"), wrote=frozenset({"9"}))
    assert due_in(queue, clock) == 2.0
    queue.add(A, version="7")
    queue.add(A, version="9")
    assert queue.take(0) is None


def test_what_others_write_is(queue: WorkQueue) -> None:
    queue.add(A)
    queue.take(0)
    queue.finish(A, error=OperationError("no"), wrote=frozenset({"7"}))
    queue.add(B, version="7")
    assert queue.take(0) == B, "it is news to others"
    queue.add(A, version="8")
    assert queue.take(0) == A


def test_what_a_good_attempt_wrote_brings_the_next_step(queue: WorkQueue) -> None:
    queue.add(A)
    queue.take(0)
    queue.add(A, version="7")
    queue.finish(A, wrote=frozenset({"7"}))
    assert queue.take(0) == A
    queue.finish(A, wrote=frozenset({"8"}))
    queue.add(A, version="8")
    assert queue.take(0) == A


def test_many_changes_during_a_run_are_remembered_in_bounded_space(queue: WorkQueue) -> None:
    queue.add(A)
    queue.take(0)
    for number in range(1000):
        queue.add(A, urgent=number == 999, version=str(number))
    record = queue.record(A)
    assert record is not None
    assert len(record.news) < 300
    queue.finish(A)
    assert queue.take(0) == A


def test_exa_10_backoff(queue: WorkQueue, clock: Any) -> None:
    queue.add(A)
    delays = []
    for _ in range(11):
        fail(queue, OperationError("no"))
        delays.append(due_in(queue, clock))
        assert queue.take(0) is None
        clock.advance(delays[-1])
    assert delays == [1, 2, 4, 8, 16, 32, 64, 128, 256, MAXIMUM_DELAY, MAXIMUM_DELAY]
    assert queue.take(0) == A
    queue.finish(A)
    queue.add(A)
    fail(queue, OperationError("no"))
    assert due_in(queue, clock) == 1, "success ends the row of failures"


def test_a_driver_that_is_away_is_looked_for_more_often(queue: WorkQueue, clock: Any) -> None:
    """BR-27."""
    queue.add(A)
    for expected in (1, 2, 4, *[5] * 9, 10, 20):
        fail(queue, StorageDriverUnavailableError("away", driver="d"))
        assert due_in(queue, clock) == expected
        clock.advance(expected)


def test_br_48_what_is_still_in_use_is_looked_at_again_before_long(queue: WorkQueue, clock: Any) -> None:
    queue.add(A)
    for expected in (1, 2, 4, 8, 15, 15):
        fail(queue, DeletedVolumeInUseError("a node has it"))
        assert due_in(queue, clock) == expected
        clock.advance(expected)


def test_br_39_a_busy_driver_gets_a_short_flat_retry(queue: WorkQueue, clock: Any) -> None:
    queue.add(A)
    for _ in range(5):
        fail(queue, StorageDriverError("busy", code="ABORTED"))
        assert due_in(queue, clock) == 1
        clock.advance(1)


def test_a_conflict_is_no_failure_until_there_are_too_many(queue: WorkQueue, clock: Any) -> None:
    queue.add(A)
    for _ in range(CONFLICTS):
        fail(queue, ConflictError("newer"))
        assert queue.record(A).error is None  # type: ignore[union-attr]
    fail(queue, ConflictError("newer"))
    assert due_in(queue, clock) == 1


def test_a_conflict_after_a_failure_is_not_the_end(queue: WorkQueue, clock: Any) -> None:
    queue.add(A)
    fail(queue, OperationError("no"))
    clock.advance(1)
    fail(queue, ConflictError("newer"))
    assert queue.take(0) == A


def test_urgent_changes_end_the_wait_and_others_do_not(queue: WorkQueue, clock: Any) -> None:
    queue.add(A)
    fail(queue, OperationError("no"))
    queue.add(A, urgent=False)
    assert queue.take(0) is None
    queue.add(A)
    fail(queue, OperationError("no"))
    assert due_in(queue, clock) == 2, "an early attempt still counts"


def test_br_53_former_failures_do_not_count_while_an_attempt_runs_that_was_asked_for(queue: WorkQueue) -> None:
    """Who asks again, after the cause is mended, must not be told that it has failed often enough."""

    def attempts() -> int:
        record = queue.record(A)
        assert record is not None
        return record.attempts

    for _ in range(3):
        queue.add(A)
        fail(queue, OperationError("no"))
    queue.add(A)
    assert queue.take(0) == A
    queue.add(A, fresh=True, version="7")  # a change of the object: whether the attempt made it is not known yet
    assert attempts() == 3
    queue.add(A, fresh=True)
    assert attempts() == 0
    queue.finish(A, error=OperationError("no"))
    assert attempts() == 1


def test_br_53_a_fresh_wish_begins_anew(queue: WorkQueue, clock: Any) -> None:
    queue.add(A)
    for _ in range(4):
        fail(queue, OperationError("no"))
        clock.advance(8)
    queue.add(A, fresh=True)
    fail(queue, OperationError("no"))
    assert due_in(queue, clock) == 1
    assert queue.record(A).attempts == 1  # type: ignore[union-attr]


def test_a_change_during_a_failing_run_brings_it_back_after_the_first_delay(queue: WorkQueue, clock: Any) -> None:
    queue.add(A)
    for _ in range(5):
        fail(queue, OperationError("no"))
        clock.advance(300)
    assert queue.take(0) == A
    queue.add(A)
    queue.finish(A, error=OperationError("no"))
    assert queue.take(0) is None
    assert due_in(queue, clock) == 1


def test_wake_brings_back_what_is_concerned(queue: WorkQueue) -> None:
    for item, error in ((A, OperationError("one")), (B, OperationError("two"))):
        queue.add(item)
        fail(queue, error, item)
    queue.wake(lambda error: "two" in str(error))
    assert queue.take(0) == B
    assert queue.take(0) is None


def test_a_key_may_come_again_by_itself(queue: WorkQueue, clock: Any) -> None:
    queue.add(A)
    queue.take(0)
    queue.finish(A, after=60)
    assert queue.idle()
    clock.advance(59)
    assert queue.take(0) is None
    clock.advance(1)
    assert queue.take(0) == A
    queue.finish(A)
    clock.advance(60)
    assert queue.take(0) is None


def test_stop_hands_out_nothing_more(queue: WorkQueue) -> None:
    queue.add(A)
    queue.stop()
    queue.add(B)
    assert queue.take(None) is None


class QueueMachine(RuleBasedStateMachine):
    """No key runs twice at once, and no change is forgotten."""

    keys = tuple(Item(A.controller, Key(name)) for name in "abc")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.queue = WorkQueue(lambda: self.now, 1.0)
        self.running: list[Item] = []
        self.unseen: set[Item] = set()

    @rule(item=st.sampled_from(keys), fresh=st.booleans())
    def add(self, item: Item, fresh: bool) -> None:
        self.queue.add(item, fresh=fresh)
        self.unseen.add(item)

    @rule()
    def take(self) -> None:
        item = self.queue.take(0)
        if item is not None:
            assert item not in self.running
            self.running.append(item)
            self.unseen.discard(item)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), result=st.sampled_from(["done", "later", "failed", "conflict"]))
    def finish(self, data: st.DataObject, result: str) -> None:
        item = data.draw(st.sampled_from(self.running))
        self.running.remove(item)
        if result in {"failed", "conflict"}:
            self.queue.finish(item, error=OperationError("no") if result == "failed" else ConflictError("newer"))
            self.unseen.add(item)
        else:
            self.queue.finish(item, after=5.0 if result == "later" else None)

    @rule(seconds=st.floats(0, 400))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def idle_means_that_nothing_is_unseen_but_what_failed(self) -> None:
        if self.queue.idle() and not self.running:
            for item in self.unseen:
                record = self.queue.record(item)
                assert record is not None
                assert record.due_at is not None

    def teardown(self) -> None:
        for item in self.running:
            self.queue.finish(item)
        self.now += 10_000
        seen = set()
        while (item := self.queue.take(0)) is not None:
            seen.add(item)
            self.queue.finish(item)
        assert self.unseen <= seen


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
