"""The worker pool: bounded, never blocked by what hangs, never in the way of the process's end (BR-52)."""

import subprocess
import sys
import threading
import time

import pytest

from volumehost.node.execution.workers import WorkerPool


@pytest.fixture
def pool():
    made = []

    def make(**options):
        made.append(WorkerPool(time.monotonic, **options))
        return made[-1]

    yield make
    for each in made:
        each.stop(10)


def test_tasks_run(pool):
    done = threading.Event()
    pool().submit("lane", done.set)
    assert done.wait(30)


def test_a_task_that_raises_ends_nothing(pool, caplog):
    workers, done = pool(size=1), threading.Event()
    workers.submit("lane", lambda: 1 / 0)
    workers.submit("lane", done.set)
    assert done.wait(30)
    assert "must not" in caplog.text


def test_slow_tasks_run_side_by_side_once_somebody_is_impatient(pool, until):
    workers = pool(size=8)
    together = threading.Barrier(8, timeout=20)
    finished = threading.Semaphore(0)

    def task():
        together.wait()
        finished.release()

    workers.submit("lane", *[task] * 8)
    until(lambda: not workers.hurry())
    for _ in range(8):
        assert finished.acquire(timeout=30)


def test_every_task_of_a_burst_runs_once(pool):
    workers, done = pool(size=4), threading.Semaphore(0)
    for _ in range(500):
        workers.submit("lane", done.release)
    for _ in range(500):
        assert done.acquire(timeout=30)
    assert not done.acquire(timeout=0.05)
    assert workers.threads <= 4


def test_a_task_that_comes_while_another_hangs_gets_a_thread_at_once(pool, clock):
    workers, gate, begun, done = WorkerPool(clock), threading.Event(), threading.Event(), threading.Event()
    try:
        workers.submit("lane", lambda: (begun.set(), gate.wait(30)))
        assert begun.wait(30)
        clock.move(0.01)
        workers.submit("lane", done.set)
        assert done.wait(30)
    finally:
        gate.set()
        assert workers.stop(1000)


def test_a_burst_is_worked_off_by_one_thread_unless_somebody_is_impatient(pool, clock):
    workers, gate, begun, done = WorkerPool(clock), threading.Event(), threading.Event(), threading.Semaphore(0)
    try:
        workers.submit("lane", lambda: (begun.set(), gate.wait(30)), *[done.release] * 5)
        assert begun.wait(30)
        assert workers.threads == 1
        assert not done.acquire(timeout=0.05)
        assert workers.hurry()
        for _ in range(5):
            assert done.acquire(timeout=30)
        assert not workers.hurry()
    finally:
        gate.set()
        assert workers.stop(1000)


def test_no_more_tasks_of_a_lane_at_a_time_than_its_share(pool):
    workers, gate, running = pool(share=3, stuck_after=1000), threading.Event(), threading.Semaphore(0)

    def task():
        running.release()
        gate.wait(30)

    workers.submit("lane", *[task] * 10)
    for _ in range(3):
        workers.hurry()
        assert running.acquire(timeout=30)
    workers.hurry()
    assert not running.acquire(timeout=0.1)
    assert workers.threads == 3
    gate.set()
    for _ in range(7):
        assert running.acquire(timeout=30)


def test_br52_stuck_tasks_leave_their_share_of_a_lane_to_others(pool, clock):
    workers = WorkerPool(clock, share=2, limit=64, stuck_after=10)
    gate, running = threading.Event(), threading.Semaphore(0)

    def hang():
        running.release()
        gate.wait(30)

    try:
        workers.submit("lane", hang, hang)
        for _ in range(2):
            workers.hurry()
            assert running.acquire(timeout=30)
        done = threading.Event()
        workers.submit("lane", done.set)
        assert not done.wait(0.05)
        clock.move(11)
        workers.hurry()
        assert done.wait(30)
        assert workers.threads == 3
    finally:
        gate.set()
        clock.move(1000)
        assert workers.stop(1000)


def test_br52_a_lane_that_hangs_does_not_delay_another(clock):
    """Nobody has to be impatient: a lane whose tasks take long is known."""
    workers, gate, begun = WorkerPool(clock), threading.Event(), threading.Semaphore(0)

    def hang():
        begun.release()
        gate.wait(30)

    try:
        workers.submit("hung", *[hang] * 300)
        assert begun.acquire(timeout=30)
        clock.move(1)
        for _ in range(20):
            done = threading.Event()
            workers.submit("good", done.set)
            assert done.wait(30)
    finally:
        gate.set()
        clock.move(1000)
        assert workers.stop(1000)


def test_br52_ten_lanes_that_hang_leave_threads_to_the_eleventh(clock, until):
    workers, gate = WorkerPool(clock, limit=64), threading.Event()
    try:
        for number in range(10):
            workers.submit(f"hung-{number}", *[lambda: gate.wait(60)] * 100)
        for _ in range(60):  # a minute and more passes
            clock.move(1)
            until(lambda: clock.move(0.01) or not workers.hurry())
        assert workers.threads < 64
        done = threading.Event()
        workers.submit("good", done.set)
        assert done.wait(30)
        assert workers.threads <= 64
    finally:
        gate.set()
        clock.move(1000)
        assert workers.stop(1000)


def test_br52_threads_that_came_in_the_place_of_hung_ones_end_when_those_come_back(clock, until):
    workers, gate, begun = WorkerPool(clock, size=2, share=2, limit=64, stuck_after=1), threading.Event(), []

    def hang():
        begun.append(1)
        gate.wait(30)

    try:
        workers.submit("lane", *[hang] * 10)
        for number in range(1, 11):
            workers.hurry()
            until(lambda number=number: len(begun) >= number)
            clock.move(2)
        assert workers.threads == 10
        gate.set()
        until(lambda: workers.threads == 2)
    finally:
        gate.set()
        clock.move(1000)
        assert workers.stop(1000)


def test_stop_drops_what_is_queued_and_tells_whether_all_ended(pool):
    workers, gate, begun = pool(size=1), threading.Event(), threading.Event()
    after = []

    def hang():
        begun.set()
        gate.wait(30)

    workers.submit("lane", hang)
    assert begun.wait(30)
    workers.submit("lane", lambda: after.append(1))
    assert not workers.stop(0.01)
    with pytest.raises(RuntimeError):
        workers.submit("lane", hang)
    gate.set()
    assert workers.stop(10)
    assert after == []


def test_idle_threads_end_with_the_pool(pool, until):
    workers, done = pool(), threading.Event()
    workers.submit("lane", done.set)
    assert done.wait(30)
    assert workers.stop(10)
    until(lambda: workers.threads == 0)


def test_br52_a_hung_task_does_not_keep_the_process_from_ending():
    program = (
        "import time, threading\n"
        "from volumehost.node.execution.workers import WorkerPool\n"
        "begun = threading.Event()\n"
        "pool = WorkerPool(time.monotonic)\n"
        "pool.submit('lane', lambda: (begun.set(), time.sleep(600)))\n"
        "begun.wait(30)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_what_a_task_submits_at_its_end_wakes_nobody(clock):
    workers, ran = WorkerPool(clock), []
    done = threading.Event()

    def last():
        ran.append(threading.current_thread())
        done.set()

    def first():
        ran.append(threading.current_thread())
        clock.move(1)  # it was not quick
        workers.nearly_done()
        workers.submit("lane", last)

    workers.submit("lane", first)
    assert done.wait(30)
    assert ran[0] is ran[1]
    assert workers.threads == 1
    workers.stop(10)
