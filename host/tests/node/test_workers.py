"""The worker pool: bounded, never blocked by what hangs, never in the way of the process's end (BR-52)."""

import subprocess
import sys
import threading
import time

import pytest

from volumehost.node.workers import WorkerPool


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
    pool().submit(done.set)
    assert done.wait(10)


def test_a_task_that_raises_ends_nothing(pool, caplog):
    workers, done = pool(size=1), threading.Event()
    workers.submit(lambda: 1 / 0)
    workers.submit(done.set)
    assert done.wait(10)
    assert "must not" in caplog.text


def test_slow_tasks_run_side_by_side_once_somebody_is_impatient(pool, until):
    workers = pool(size=8)
    together = threading.Barrier(8, timeout=20)
    finished = threading.Semaphore(0)

    def task():
        together.wait()
        finished.release()

    workers.submit(*[task] * 8)
    until(lambda: not workers.hurry())
    for _ in range(8):
        assert finished.acquire(timeout=20)


def test_every_task_of_a_burst_runs_once(pool):
    workers, done = pool(size=4), threading.Semaphore(0)
    for _ in range(500):
        workers.submit(done.release)
    for _ in range(500):
        assert done.acquire(timeout=20)
    assert not done.acquire(timeout=0.05)
    assert workers.threads <= 4


def test_a_task_that_comes_while_another_hangs_gets_a_thread_at_once(pool, clock):
    workers, gate, begun, done = WorkerPool(clock), threading.Event(), threading.Event(), threading.Event()
    try:
        workers.submit(lambda: (begun.set(), gate.wait(30)))
        assert begun.wait(10)
        clock.move(0.01)
        workers.submit(done.set)
        assert done.wait(10)
    finally:
        gate.set()
        assert workers.stop(1000)


def test_a_burst_is_worked_off_by_one_thread_unless_somebody_is_impatient(pool, clock):
    workers, gate, begun, done = WorkerPool(clock), threading.Event(), threading.Event(), threading.Semaphore(0)
    try:
        workers.submit(lambda: (begun.set(), gate.wait(30)), *[done.release] * 5)
        assert begun.wait(10)
        assert workers.threads == 1
        assert not done.acquire(timeout=0.05)
        assert workers.hurry()
        for _ in range(5):
            assert done.acquire(timeout=10)
        assert not workers.hurry()
    finally:
        gate.set()
        assert workers.stop(1000)


def test_no_more_threads_than_its_size(pool):
    workers, gate, running = pool(size=3), threading.Event(), threading.Semaphore(0)

    def task():
        running.release()
        gate.wait(20)

    workers.submit(*[task] * 10)
    for _ in range(3):
        workers.hurry()
        assert running.acquire(timeout=10)
    workers.hurry()
    assert not running.acquire(timeout=0.1)
    assert workers.threads == 3
    gate.set()
    for _ in range(7):
        assert running.acquire(timeout=10)


def test_br52_stuck_threads_are_replaced_up_to_the_limit(pool, clock):
    workers = WorkerPool(clock, size=2, limit=3, stuck_after=10)
    gate, running = threading.Event(), threading.Semaphore(0)

    def hang():
        running.release()
        gate.wait(30)

    try:
        workers.submit(hang, hang)
        for _ in range(2):
            workers.hurry()
            assert running.acquire(timeout=10)
        done = threading.Event()
        workers.submit(done.set)
        assert not done.wait(0.05)
        clock.move(11)
        workers.hurry()
        assert done.wait(10)
        assert workers.threads == 3
    finally:
        gate.set()
        clock.move(1000)
        assert workers.stop(1000)


def test_stop_drops_what_is_queued_and_tells_whether_all_ended(pool):
    workers, gate, begun = pool(size=1), threading.Event(), threading.Event()
    after = []

    def hang():
        begun.set()
        gate.wait(20)

    workers.submit(hang)
    assert begun.wait(10)
    workers.submit(lambda: after.append(1))
    assert not workers.stop(0.01)
    with pytest.raises(RuntimeError):
        workers.submit(hang)
    gate.set()
    assert workers.stop(10)
    assert after == []


def test_idle_threads_end_with_the_pool(pool, until):
    workers, done = pool(), threading.Event()
    workers.submit(done.set)
    assert done.wait(10)
    assert workers.stop(10)
    until(lambda: workers.threads == 0)


def test_br52_a_hung_task_does_not_keep_the_process_from_ending():
    program = (
        "import time, threading\n"
        "from volumehost.node.workers import WorkerPool\n"
        "begun = threading.Event()\n"
        "pool = WorkerPool(time.monotonic)\n"
        "pool.submit(lambda: (begun.set(), time.sleep(600)))\n"
        "begun.wait(10)\n"
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
        workers.submit(last)

    workers.submit(first)
    assert done.wait(10)
    assert ran[0] is ran[1]
    assert workers.threads == 1
    workers.stop(10)
