"""Calls with a deadline: results, lateness, bounds, forks (BR-52)."""

from __future__ import annotations

import gc
import os
import signal
import threading
import weakref
from collections.abc import Callable

import pytest

from volumehost.mount import syscalls
from volumehost.mount.deadline import (
    DeadlineExceededError,
    DeadlineRunner,
    StillStuckError,
    TooManyStuckCallsError,
    in_seconds,
)


def test_the_result_and_the_exception_come_back() -> None:
    runner = DeadlineRunner()
    assert runner.run(divmod, 7, 2, timeout=30) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        runner.run(divmod, 7, 0, timeout=30)
    assert runner.in_progress() == []


def test_without_a_deadline_the_caller_runs_it_itself() -> None:
    assert DeadlineRunner().run(threading.get_ident, timeout=None) == threading.get_ident()
    assert DeadlineRunner().run(threading.get_ident, timeout=30) != threading.get_ident()


def test_one_helper_serves_one_call_after_the_other() -> None:
    runner = DeadlineRunner()
    assert len({runner.run(threading.get_ident, timeout=30) for _ in range(20)}) == 1


def test_a_late_call_is_given_up_shown_with_its_age_and_its_helper_used_again(until: Callable[..., None]) -> None:
    runner = DeadlineRunner()
    release = threading.Event()
    with pytest.raises(DeadlineExceededError, match=r"no answer within 0\.05 s"):
        runner.run(release.wait, 30, timeout=0.05, what="wait for the test")
    ((what, age),) = runner.in_progress()
    assert what == "wait for the test"
    assert age > 0
    release.set()
    until(lambda: runner.in_progress() == [])
    before = set(threading.enumerate())
    assert runner.run(int, "7", timeout=30) == 7
    assert set(threading.enumerate()) <= before


def test_others_are_not_held_up_by_a_stuck_call() -> None:
    runner = DeadlineRunner()
    release = threading.Event()
    try:
        with pytest.raises(DeadlineExceededError):
            runner.run(release.wait, 30, timeout=0)
        assert runner.run(int, timeout=30) == 0
    finally:
        release.set()


def test_the_number_of_stuck_calls_is_bounded(until: Callable[..., None]) -> None:
    runner = DeadlineRunner(limit=3)
    release = threading.Event()
    try:
        for _ in range(3):
            with pytest.raises(DeadlineExceededError):
                runner.run(release.wait, 30, timeout=0)
        with pytest.raises(TooManyStuckCallsError, match="3 calls into the kernel have not come back"):
            runner.run(int, timeout=0.05)
    finally:
        release.set()
    until(lambda: runner.in_progress() == [])
    assert runner.run(int, timeout=30) == 0


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_br52_what_is_stuck_is_not_begun_again_before_it_has_been_out_for_twice_as_long(
    until: Callable[..., None],
) -> None:
    """Somebody asks every second, for a week."""
    clock, release, begun = Clock(), threading.Event(), []
    runner = DeadlineRunner(clock=clock)

    def hang() -> None:
        begun.append(clock.now)
        release.wait(60)

    def ask() -> None:
        runner.run(hang, timeout=0, what="stat /mnt/hung")

    try:
        with pytest.raises(DeadlineExceededError, match="no answer within 0 s"):
            ask()
        until(lambda: begun == [0.0])
        clock.now = 29
        with pytest.raises(StillStuckError, match="no answer for 29 s to an earlier call"):
            ask()
        for _ in range(7 * 24 * 60):
            clock.now += 60
            before = len(runner.in_progress())
            with pytest.raises(DeadlineExceededError):
                ask()
            until(lambda before=before: len(begun) >= before)
        assert len(runner.in_progress()) < 20
        assert runner.run(int, "7", timeout=30, what="stat /mnt/well") == 7
    finally:
        release.set()
    until(lambda: runner.in_progress() == [])
    assert runner.run(int, "7", timeout=30, what="stat /mnt/hung") == 7


def test_calls_without_a_name_are_never_alike(until: Callable[..., None]) -> None:
    runner, release = DeadlineRunner(), threading.Event()
    try:
        for _ in range(3):
            with pytest.raises(DeadlineExceededError, match="no answer within 0 s"):
                runner.run(release.wait, 30, timeout=0)
    finally:
        release.set()
    until(lambda: runner.in_progress() == [])


def test_many_threads_at_once_each_get_their_own_result() -> None:
    runner = DeadlineRunner()
    wrong: list[int] = []

    def call(number: int) -> None:
        wrong.extend(number for _ in range(200) if runner.run(abs, -number, timeout=30) != number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


def test_more_calls_than_helpers_take_turns() -> None:
    runner = DeadlineRunner(limit=2)
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda: results.extend(runner.run(int, "7", timeout=30) for _ in range(50)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [7] * 300


def test_results_that_race_with_the_deadline_are_never_mixed_up(until: Callable[..., None]) -> None:
    runner = DeadlineRunner()
    results = []
    for number in range(300):
        try:
            results.append((number, runner.run(lambda n=number: n, timeout=0.0)))
        except DeadlineExceededError:
            continue
    assert all(number == result for number, result in results)
    until(lambda: runner.in_progress() == [])
    assert runner.run(str, 7, timeout=30) == "7"


def test_a_result_that_comes_too_late_is_discarded_as_the_caller_said(until: Callable[..., None]) -> None:
    runner = DeadlineRunner()
    release = threading.Event()
    discarded: list[str] = []

    def late() -> str:
        release.wait(30)
        return "late"

    with pytest.raises(DeadlineExceededError):
        runner.run(late, timeout=0, discard=discarded.append)
    release.set()
    until(lambda: discarded == ["late"])
    assert runner.run(str, "in time", timeout=30, discard=discarded.append) == "in time"
    assert discarded == ["late"]


class InterruptedWaitError(Exception):
    """Raised by a signal handler, as KeyboardInterrupt is."""


@pytest.mark.parametrize("_", range(5))
def test_an_interrupted_wait_leaves_the_runner_usable(_: int, until: Callable[..., None]) -> None:
    """Ctrl-C while a call is awaited."""
    runner = DeadlineRunner(limit=1)
    release = threading.Event()
    interrupted: list[int] = []

    def handler(number: int, frame: object) -> None:
        if not interrupted:
            interrupted.append(number)
            raise InterruptedWaitError

    def interrupt() -> None:
        # Once may be too early: before the wait has begun.
        while not release.wait(0.01):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(InterruptedWaitError):
            runner.run(interrupt, timeout=60)
        release.set()
        until(lambda: runner.in_progress() == [])
    finally:
        release.set()
        signal.signal(signal.SIGUSR1, before)
    assert runner.run(int, "7", timeout=30) == 7


@pytest.mark.root
def test_a_call_runs_in_the_mount_namespace_of_its_caller() -> None:
    """Also where helpers of another namespace are idle."""
    runner = DeadlineRunner()

    def namespace() -> str:
        return os.readlink("/proc/thread-self/ns/mnt")

    here = namespace()
    assert runner.run(namespace, timeout=30) == here
    seen: list[tuple[str, str]] = []

    def elsewhere() -> None:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        seen.append((namespace(), runner.run(namespace, timeout=30)))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(30)
    ((own, helped),) = seen
    assert own == helped != here
    assert runner.run(namespace, timeout=30) == here


def test_a_result_is_not_kept_alive() -> None:
    class Thing:
        pass

    runner = DeadlineRunner()
    seen = weakref.ref(runner.run(Thing, timeout=30))
    gc.collect()
    assert seen() is None


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_it_works_after_a_fork() -> None:
    runner = DeadlineRunner()
    runner.run(int, timeout=30)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if runner.run(int, "3", timeout=30) == 3 else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (1.3e-05, "0 s"),
        (0.05, "0.05 s"),
        (1.79629, "1.8 s"),
        (9.4, "9.4 s"),
        (9.96, "10 s"),
        (123.0, "123 s"),
    ],
)
def test_how_long_was_waited_is_told_in_few_digits(seconds, text):
    assert in_seconds(seconds) == text
